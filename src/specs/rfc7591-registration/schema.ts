import { Type } from '@sinclair/typebox'
import { openWithToken } from '../../clients/members.ts'
import type { Declared } from '../../feature/deps.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'

const text = (description: string) => Type.String({ description })
const texts = (description: string) =>
  Type.Unsafe<readonly string[]>(Type.Array(Type.String(), { description }))

// The client metadata that is sent and returned, RFC 7591 §2.
const described = {
  client_name: Type.Optional(text('The name that users see; `client_name#fr` is its French name.')),
  client_uri: Type.Optional(text('Its home page, http or https.')),
  logo_uri: Type.Optional(
    text('Its logo, http or https; with an initial access token it is shown if it is PNG, JPEG or WebP.'),
  ),
  policy_uri: Type.Optional(text('Its privacy policy, http or https.')),
  tos_uri: Type.Optional(text('Its terms of service, http or https.')),
  contacts: Type.Optional(texts('How to reach its developers.')),
  software_id: Type.Optional(text('The same for every instance of the software.')),
  software_version: Type.Optional(text('The version of the software.')),
  default_max_age: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Seconds since the sign-in when a request has no `max_age`.' }),
  ),
  post_logout_redirect_uris: Type.Optional(
    texts(
      'Where a user may be redirected after signing out: loopback, or https with an initial access token.',
    ),
  ),
}

const redirectUris = texts(
  '`http://127.0.0.1[:port]/path`, and the same with `[::1]` or `localhost`; the port is free. With an initial access token also https.',
)
const grantTypes = texts('`authorization_code`, and `refresh_token`; both by default.')
const responseTypes = texts('`code`.')
const applicationType = Type.String({
  enum: ['native', 'web'],
  description: 'In the response `native` if a redirect is loopback, otherwise `web`.',
})
const scope = text('Names separated by spaces: the most it may ask for. Left out: the whole catalogue.')
const subjectType = Type.String({ enum: ['public'] })
const algorithm = text('The signature algorithm of its ID Tokens; RS256 by default.')
const requireAuthTime = Type.Boolean({ description: 'Whether every ID Token must have `auth_time`.' })

const tags = ['registration']
const security = [{ registrationAccessToken: [] }]

// The client in the path, RFC 7592 §2.
const ClientPath = Type.Object({ client_id: text('The identifier of the client.') })

/** The routes of RFC 7591 §3 and RFC 7592 §2, with the client metadata that features add. */
export function registrationRoutes({ clientMetadata, clientAuthentication }: Declared) {
  const added = Object.fromEntries(
    Object.entries(openWithToken(clientMetadata)).map(([name, { schema }]) => [name, Type.Optional(schema)]),
  )
  const authenticationMethod = Type.String({
    enum: Object.keys(openWithToken(clientAuthentication)),
    description:
      'Its authentication method; `none` by default for loopback, `client_secret_basic` for https redirect URIs.',
  })
  // Client metadata as sent, RFC 7591 §2.
  const ClientRegistrationRequest = Type.Object({
    redirect_uris: redirectUris,
    token_endpoint_auth_method: Type.Optional(authenticationMethod),
    grant_types: Type.Optional(grantTypes),
    response_types: Type.Optional(responseTypes),
    application_type: Type.Optional(applicationType),
    scope: Type.Optional(scope),
    subject_type: Type.Optional(subjectType),
    id_token_signed_response_alg: Type.Optional(algorithm),
    require_auth_time: Type.Optional(requireAuthTime),
    ...described,
    ...added,
  })
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
      redirect_uris: redirectUris,
      token_endpoint_auth_method: authenticationMethod,
      grant_types: grantTypes,
      response_types: responseTypes,
      application_type: applicationType,
      scope,
      subject_type: subjectType,
      id_token_signed_response_alg: algorithm,
      require_auth_time: requireAuthTime,
      ...described,
      ...added,
    },
    {
      additionalProperties: false,
      patternProperties: { '^(client_name|client_uri|logo_uri|policy_uri|tos_uri)#': Type.String() },
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
