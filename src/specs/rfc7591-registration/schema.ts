import { Type } from '@sinclair/typebox'
import type { DeclaredClientMember } from '../../clients/core-members.ts'
import { openWithToken } from '../../clients/members.ts'
import { localizableOf } from '../../clients/read-members.ts'
import type { Declared } from '../../feature/deps.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'

const text = (description: string) => Type.String({ description })
const tags = ['registration']
const security = [{ registrationAccessToken: [] }]

// The client in the path, RFC 7592 §2.
const ClientPath = Type.Object({ client_id: text('The identifier of the client.') })

/** The routes of RFC 7591 §3 and RFC 7592 §2, with the client metadata that is declared. */
export function registrationRoutes({ clientMetadata, clientAuthentication }: Declared) {
  const open = Object.entries(openWithToken(clientMetadata)).map(([name, member]) => {
    const schema = member.registrationSchema ?? member.schema
    const names =
      member.choices === 'clientAuthentication' && Object.keys(openWithToken(clientAuthentication))
    return [name, { ...member, schema: names ? { ...schema, enum: names } : schema }] as const
  })
  /** @param isRequired Which members are always there. */
  const members = (isRequired: (name: string, member: DeclaredClientMember) => boolean | undefined) =>
    Object.fromEntries(
      open.map(([name, member]) => [
        name,
        isRequired(name, member) ? member.schema : Type.Optional(member.schema),
      ]),
    )
  // Client metadata as sent, RFC 7591 §2.
  const ClientRegistrationRequest = Type.Object(members((name) => name === 'redirect_uris'))
  // Client metadata as sent in an update, RFC 7592 §2.2.
  const ClientUpdateRequest = Type.Object({
    client_id: text('The identifier of this client.'),
    client_secret: Type.Optional(text('The current secret; it cannot be chosen.')),
    ...ClientRegistrationRequest.properties,
  })
  // The client information response, RFC 7591 §3.2.1 and RFC 7592 §3.
  const ClientInformation = Type.Object(
    {
      client_id: text('The identifier of the client.'),
      client_id_issued_at: Type.Integer({ description: 'Seconds since the epoch.' }),
      client_secret: Type.Optional(text('Returned only at registration.')),
      client_secret_expires_at: Type.Optional(
        Type.Integer({ description: '0: the secret does not expire.' }),
      ),
      registration_client_uri: text('Where the client reads, updates and deletes itself, RFC 7592 §2.'),
      registration_access_token: text('The bearer token for `registration_client_uri`.'),
      ...members((_, { isAlways }) => isAlways),
    },
    {
      additionalProperties: false,
      patternProperties: { [`^(${localizableOf(clientMetadata).join('|')})#`]: Type.String() },
    },
  )
  return {
    register: {
      operationId: 'registerClient',
      summary: 'Register a client, RFC 7591 §3.1',
      tags,
      security: [{}, { initialAccessToken: [] }],
      body: ClientRegistrationRequest,
      response: {
        201: ClientInformation,
        ...badBody,
        401: ErrorResponse,
        429: ErrorResponse,
        503: ErrorResponse,
      },
    },
    read: {
      operationId: 'readClient',
      summary: 'Read its own registration, RFC 7592 §2.1',
      tags,
      security,
      params: ClientPath,
      response: { 200: ClientInformation, 401: ErrorResponse, 429: ErrorResponse, 503: ErrorResponse },
    },
    update: {
      operationId: 'updateClient',
      summary: 'Replace its own registration, RFC 7592 §2.2',
      tags,
      security,
      params: ClientPath,
      body: ClientUpdateRequest,
      response: {
        200: ClientInformation,
        ...badBody,
        401: ErrorResponse,
        429: ErrorResponse,
        503: ErrorResponse,
      },
    },
    delete: {
      operationId: 'deleteClient',
      summary: 'Delete its own registration and everything granted to it, RFC 7592 §2.3',
      tags,
      security,
      params: ClientPath,
      response: {
        204: Type.Unsafe<undefined>({ type: 'null', description: 'Deleted.' }),
        ...badBody,
        401: ErrorResponse,
        429: ErrorResponse,
        503: ErrorResponse,
      },
    },
  }
}
