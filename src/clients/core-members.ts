import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { configuredIdTokenClaims, idTokenClaimsOf } from '../domain/claims.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import { type Client, consentRules, defaultGrantTypes, type Scope } from '../domain/model.ts'
import { pkceRuleOf } from '../domain/pkce-auto.ts'
import { formatScope, narrowScope } from '../domain/scope.ts'
import {
  type ClientMember,
  type JsonObject,
  readChoice,
  readContacts,
  readContextClasses,
  readFlag,
  readSeconds,
  readText,
  readUri,
} from './members.ts'
import { localizableOf } from './read-members.ts'

/** The scopes that the wire form of a client depends on. */
export interface ShownScopes {
  /** Scopes that a client may have without an operator: the effective scope of a client without a ceiling. */
  readonly open: Scope
  /** Names of the scope catalogue. */
  readonly catalogue: Scope
}

/**
 * How a member of client metadata is declared. Registration, the admin API, files, `lychgate client`, pages, development
 * clients and the descriptions of all of them follow from it.
 */
export type DeclaredClientMember = ClientMember & {
  readonly schema: TSchema
  /** The same for clients that register themselves, where other rules apply to them. */
  readonly registrationSchema?: TSchema
  /** Every response of registration has it. */
  readonly isAlways?: true
  /** The flag of `lychgate client`, if it is not the name of the member: `--auth <method>`. */
  readonly flag?: string
  /** The flag has the names of these declarations as its choices. */
  readonly choices?: 'grantTypes' | 'clientAuthentication'
  /** The flag of `lychgate client` names a file: reads the member from its content. */
  readonly readFile?: (content: string) => unknown
  /** What a client has unless it, or its operator, says something else. */
  readonly default?: unknown
  /** Returns what is shown about a client. Absent: what is stored. */
  readonly show?: (client: Client, scopes: ShownScopes) => unknown
  /** Returns what an operator configured. Absent: what is shown. */
  readonly configured?: (client: Client) => unknown
}

const text = (description: string) => Type.String({ description })
const texts = (description: string) =>
  Type.Unsafe<readonly string[]>(Type.Array(Type.String(), { description }))
const choice = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>(Type.String({ enum: values, description }))
const lifetime = (of: string) => {
  const description = `How long ${of}, in seconds; at most as long as those of the server.`
  return {
    schema: Type.Integer({ minimum: 1, description }),
    operatorOnly: true,
    read: (members: JsonObject, name: string) => readSeconds(members, name) || undefined,
  } as const
}
const uri = { localizable: true, read: readUri } as const

/** The members that the core knows, by their names of RFC 7591 §2. Features declare more. */
export const coreMembers = {
  client_name: {
    schema: text('The name that users see; `client_name#fr` is its French name.'),
    flag: '--name <text>',
    property: 'name',
    localizable: true,
    read: readText,
    configured: ({ name, id }: Client) => name ?? id,
  },
  redirect_uris: {
    schema: texts('Redirect URIs: https, loopback, and those of apps on a device (com.example.app:/path).'),
    registrationSchema: texts(
      '`http://127.0.0.1[:port]/path`, and the same with `[::1]` or `localhost`; the port is free. With an initial access token also https.',
    ),
    isAlways: true,
    flag: '--redirect-uri <uri>',
    property: 'redirectUris',
    default: [],
  },
  post_logout_redirect_uris: {
    schema: texts('Where a user may be redirected after signing out; the same kinds as redirect URIs.'),
    registrationSchema: texts(
      'Where a user may be redirected after signing out: loopback, or https with an initial access token.',
    ),
    flag: '--post-logout-redirect-uri <uri>',
    property: 'postLogoutRedirectUris',
    default: [],
    show: ({ postLogoutRedirectUris }: Client) => unlessEmpty(postLogoutRedirectUris),
  },
  any_redirect_scheme: {
    schema: Type.Boolean({
      description: 'Whether an app may have a redirect scheme without a dot, which other apps can take.',
    }),
    operatorOnly: true,
    read: (members, name) => readFlag(members, name) || undefined,
  },
  token_endpoint_auth_method: {
    schema: text('Its authentication method. Absent when it is added: a secret, by basic or post.'),
    registrationSchema: text(
      'Its authentication method; `none` by default for loopback, `client_secret_basic` for https redirect URIs.',
    ),
    isAlways: true,
    flag: '--auth <method>',
    choices: 'clientAuthentication',
    property: 'authenticationMethod',
    configured: ({ anySecretMethod, authenticationMethod }: Client) =>
      anySecretMethod ? undefined : authenticationMethod,
  },
  grant_types: {
    schema: texts('The allowed grant types. Absent when it is added: authorization_code and refresh_token.'),
    registrationSchema: texts('`authorization_code`, and `refresh_token`; both by default.'),
    isAlways: true,
    flag: '--grant-type <names...>',
    choices: 'grantTypes',
    property: 'grantTypes',
    default: defaultGrantTypes,
    // A resource server has none, unless it exchanges tokens.
    configured: ({ origin, grantTypes }: Client) =>
      origin === 'resource-server' && grantTypes.length === 0 ? undefined : grantTypes,
  },
  response_types: {
    schema: texts('`code`.'),
    isAlways: true,
    isDerived: true,
    show: ({ grantTypes }: Client) => (grantTypes.includes('authorization_code') ? ['code'] : []),
  },
  application_type: {
    schema: choice(
      ['native', 'web'],
      'In the response `native` if a redirect is loopback or of an app, otherwise `web`.',
    ),
    isAlways: true,
    isDerived: true,
    property: 'applicationType',
  },
  scope: {
    schema: text('The scopes it may request, separated by spaces. Absent: all but those of the admin API.'),
    registrationSchema: text(
      'Names separated by spaces: the most it may ask for. Left out: the whole catalogue.',
    ),
    isAlways: true,
    flag: '--scope <names>',
    property: 'scope',
    show: ({ scope }: Client, { open, catalogue }: ShownScopes) =>
      formatScope(scope === undefined ? open : narrowScope(scope, catalogue)),
    configured: ({ scope }: Client) => (scope === undefined ? undefined : formatScope(scope)),
  },
  subject_type: {
    schema: choice(['public'], '`public`.'),
    isAlways: true,
    isDerived: true,
    show: () => 'public',
  },
  id_token_signed_response_alg: {
    schema: choice(signingAlgorithms, 'The algorithm that signs its ID Tokens; RS256 by default.'),
    isAlways: true,
    flag: '--id-token-alg <name>',
    property: 'idTokenSignedResponseAlg',
    default: 'RS256',
    read: (members, name, offered = signingAlgorithms) =>
      readChoice(members, name, offered, 'oidc-reg-2-id-token-alg') ?? 'RS256',
  },
  id_token_claims: {
    schema: choice(
      ['scope', 'none'] as const,
      'Whether its ID Tokens have the claims of the granted scopes profile, email and groups, as UserInfo has. Absent when it is added: scope, or none for a public client.',
    ),
    operatorOnly: true,
    property: 'idTokenClaims',
    show: idTokenClaimsOf,
    configured: configuredIdTokenClaims,
  },
  resources: {
    schema: texts(
      'APIs: whose tokens a resource server may introspect, or for which client_credentials gets tokens.',
    ),
    operatorOnly: true,
    flag: '--resource <uri>',
    property: 'resources',
    default: [],
    configured: ({ resources, introspects }: Client) => resources ?? introspects,
  },
  pkce: {
    schema: choice(
      ['required', 'optional', 'auto'],
      'Whether PKCE is required; optional for confidential clients only. auto: optional until the client has used it once, then required.',
    ),
    operatorOnly: true,
    default: 'required',
    show: pkceRuleOf,
  },
  consent: {
    schema: choice(
      consentRules,
      'Ask the user always, for new scopes only (remember), or never (skip). Absent: remember; always for public loopback clients.',
    ),
    operatorOnly: true,
    property: 'consent',
  },
  client_uri: { schema: text('Its website, http or https; users see it.'), property: 'clientUri', ...uri },
  logo_uri: {
    schema: text(
      'Its logo, http or https: PNG, JPEG or WebP of 64 KiB at most. Users see it if an operator or an initial access token vouches for the client.',
    ),
    property: 'logoUri',
    ...uri,
  },
  policy_uri: {
    schema: text('Its privacy policy, http or https; users see it.'),
    property: 'policyUri',
    ...uri,
  },
  tos_uri: { schema: text('Its terms of service, http or https; users see it.'), property: 'tosUri', ...uri },
  contacts: {
    schema: texts('How to reach its developers, such as email addresses.'),
    flag: '--contact <text>',
    property: 'contacts',
    default: [],
    read: readContacts,
    show: ({ contacts }: Client) => unlessEmpty(contacts),
  },
  software_id: {
    schema: text('The same for every instance of the software.'),
    property: 'softwareId',
    read: readText,
  },
  software_version: {
    schema: text('The version of the software.'),
    property: 'softwareVersion',
    read: readText,
  },
  default_max_age: {
    schema: Type.Integer({
      minimum: 0,
      description: 'Seconds since the sign-in when a request has no `max_age`.',
    }),
    property: 'defaultMaxAgeSeconds',
    read: readSeconds,
  },
  default_acr_values: {
    schema: texts(
      'Context classes of a sign-in when a request names none, the most wanted first; of `acr_values_supported`.',
    ),
    flag: '--default-acr <class>',
    read: readContextClasses,
  },
  access_token_seconds: lifetime('its access tokens are valid'),
  id_token_seconds: lifetime('its ID Tokens are valid'),
  refresh_token_idle_seconds: lifetime('a refresh token is valid that is not used'),
  refresh_token_absolute_seconds: lifetime('refresh tokens of one sign-in are valid, from then on'),
  require_auth_time: {
    schema: Type.Boolean({ description: 'Whether every ID Token must have `auth_time`.' }),
    isAlways: true,
    property: 'requireAuthTime',
    default: false,
    read: readFlag,
  },
} as const satisfies Readonly<Record<string, DeclaredClientMember>>

/**
 * What an operator says about a client, by the names on the wire: the members of the core, and those of features. In a
 * change a member that is undefined gets the default of a new client back.
 */
export type OperatorClientMembers = {
  readonly [K in keyof typeof coreMembers]?: Static<(typeof coreMembers)[K]['schema']> | undefined
} & JsonObject

interface Declarations {
  readonly clientMetadata: Readonly<Record<string, DeclaredClientMember>>
}

/** Returns the members that an operator may set with an initial access token. */
export function membersByToken({ clientMetadata }: Declarations) {
  return Object.fromEntries(Object.entries(clientMetadata).filter(([, { byToken }]) => byToken))
}

/** Returns the schema of what an operator says about a client. */
export function clientMembers<T extends object = object>(
  { clientMetadata }: Declarations,
  title: string,
  required: readonly string[] = [],
  more: Readonly<Record<string, TSchema>> = {},
) {
  const settable = Object.entries(clientMetadata).filter(([, { isDerived }]) => !isDerived)
  const properties = Object.fromEntries(settable.map(([name, { schema }]) => [name, Type.Optional(schema)]))
  return Type.Unsafe<OperatorClientMembers & T>({
    type: 'object',
    title,
    properties: { ...properties, ...more },
    // RFC 7591 §2.2: `client_name#fr`.
    patternProperties: {
      [`^(?:${localizableOf(clientMetadata).join('|')})#[A-Za-z0-9-]{1,35}$`]: { type: 'string' },
    },
    additionalProperties: false,
    minProperties: 1,
    ...(required.length > 0 && { required }),
  })
}

function unlessEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length > 0 ? list : undefined
}
