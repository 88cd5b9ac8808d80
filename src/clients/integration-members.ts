import { isDeepStrictEqual } from 'node:util'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { check } from '../domain/check.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import { consentRules, defaultGrantTypes, type Scope } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { formatScope, isScope, parseScope } from '../domain/scope.ts'
import type { IntegrationChange, IntegrationRequest } from './integration-request.ts'
import type { ClientMember } from './members.ts'
import { localizableMembers } from './metadata.ts'

/** How a member of client metadata is declared. */
export type DeclaredClientMember = ClientMember & {
  readonly schema: TSchema
  /** The flag of `lychgate client` names a file: reads the member from its content. */
  readonly readFile?: (content: string) => unknown
}

interface Declarations {
  readonly clientMetadata: Readonly<Record<string, DeclaredClientMember>>
}

const optionalText = (description: string) => Type.Optional(Type.String({ description }))
const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }))
const choice = (values: readonly string[], description: string) =>
  Type.Optional(Type.Unsafe<string>({ type: 'string', enum: values, description }))

/** The members that the core knows; features add to them. */
const members = {
  client_name: optionalText('The name that users see.'),
  redirect_uris: texts('https and loopback redirect URIs.'),
  post_logout_redirect_uris: texts('Redirect URIs after logout.'),
  token_endpoint_auth_method: optionalText('Absent when it is added: a secret, by basic or post.'),
  grant_types: texts('Absent when it is added: authorization_code and refresh_token.'),
  scope: optionalText(
    'The scopes it may request, separated by spaces. Absent: all but those of the admin API.',
  ),
  id_token_signed_response_alg: choice(signingAlgorithms, 'The algorithm that signs its ID Tokens.'),
  resources: texts(
    'APIs: whose tokens a resource server may introspect, or for which client_credentials gets tokens.',
  ),
  pkce: choice(['required', 'optional'], 'Whether PKCE is required; optional for confidential clients only.'),
  consent: choice(consentRules, 'Ask the user always, for new scopes only, or never.'),
  client_uri: optionalText('Its website.'),
  logo_uri: optionalText('Its logo.'),
  policy_uri: optionalText('Its privacy policy.'),
  tos_uri: optionalText('Its terms of service.'),
  contacts: texts('Contacts, such as email addresses.'),
}
type Members = Static<ReturnType<typeof Type.Object<typeof members>>>

/** What a new client has unless its operator says something else. */
export const integrationDefaults = {
  redirectUris: [],
  postLogoutRedirectUris: [],
  pkce: 'required',
  idTokenSignedResponseAlg: 'RS256',
} as const satisfies Partial<IntegrationRequest>

/** Returns the schema of what is changed about a client, under the names of RFC 7591 §2. */
export function clientMembers(
  { clientMetadata }: Declarations,
  title: string,
  required: readonly string[] = [],
) {
  const added = Object.entries(clientMetadata).map(
    ([name, { schema }]) => [name, Type.Optional(schema)] as const,
  )
  const properties: Record<string, TSchema> = { ...Object.fromEntries(added), ...members }
  return Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    title,
    properties,
    // RFC 7591 §2.2: `client_name#fr`.
    patternProperties: { [`^(?:${localizableMembers.join('|')})#[A-Za-z0-9-]{1,35}$`]: { type: 'string' } },
    additionalProperties: false,
    minProperties: 1,
    ...(required.length > 0 && { required }),
  })
}

/** Reads what a body of this schema changes about a client. */
export function readClientMembers(body: Readonly<Record<string, unknown>>): IntegrationChange {
  // `as`: the schema says so.
  const known = body as Members
  const { client_name, redirect_uris, post_logout_redirect_uris, token_endpoint_auth_method, ...more } = known
  const { grant_types, scope, id_token_signed_response_alg, resources, pkce, consent, ...description } = more
  return omitUndefined({
    name: client_name,
    redirectUris: redirect_uris,
    postLogoutRedirectUris: post_logout_redirect_uris,
    authenticationMethod: token_endpoint_auth_method,
    grantTypes: grant_types,
    scope: scope === undefined ? undefined : readScope(scope),
    idTokenSignedResponseAlg: id_token_signed_response_alg as IntegrationChange['idTokenSignedResponseAlg'],
    resources,
    pkce: pkce as IntegrationChange['pkce'],
    consent: consent as IntegrationChange['consent'],
    description: Object.keys(description).length === 0 ? undefined : description,
  })
}

/** Reads all that an operator says about a client: what is absent has its default. */
export function readIntegration(body: Readonly<Record<string, unknown>>): IntegrationRequest {
  const { name = '', ...wanted } = readClientMembers(body)
  return { ...integrationDefaults, ...wanted, name } as IntegrationRequest // nothing is undefined
}

/** Writes a request as a body of this schema, without members that have their default. */
export function writeClientMembers(request: IntegrationRequest): Readonly<Record<string, unknown>> {
  const { name, redirectUris, postLogoutRedirectUris, grantTypes = [], scope, resources = [] } = request
  const { authenticationMethod, idTokenSignedResponseAlg, pkce, consent, description } = request
  const isUsual = isDeepStrictEqual(grantTypes, defaultGrantTypes)
  const described = {
    client_name: name,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    token_endpoint_auth_method: authenticationMethod,
    grant_types: isUsual ? [] : grantTypes,
    scope: scope === undefined ? undefined : formatScope(scope),
    id_token_signed_response_alg:
      idTokenSignedResponseAlg === integrationDefaults.idTokenSignedResponseAlg
        ? undefined
        : idTokenSignedResponseAlg,
    resources,
    pkce: pkce === integrationDefaults.pkce ? undefined : pkce,
    consent,
    ...description,
  }
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0
  const written = Object.entries(omitUndefined(described)).filter(([, value]) => !isEmpty(value))
  return Object.fromEntries(written)
}

/** Names the members that differ between two requests. */
export function changedMembers(before: IntegrationRequest, after: IntegrationRequest): readonly string[] {
  const [old, now] = [writeClientMembers(before), writeClientMembers(after)]
  return Object.keys({ ...old, ...now }).filter((name) => !isDeepStrictEqual(old[name], now[name]))
}

/** As at registration: what is wrong is the metadata, not the scope of a request. */
function readScope(text: string): Scope {
  check(
    isScope(text),
    'rfc7591-2-scope-string',
    'invalid_client_metadata',
    'scope must be a string of scope names separated by spaces',
  )
  return parseScope(text)
}

/** Returns the members that an operator may set with an initial access token. */
export function membersByToken({ clientMetadata }: Declarations) {
  return Object.fromEntries(Object.entries(clientMetadata).filter(([, { byToken }]) => byToken))
}
