import type { IntegrationChange, IntegrationRequest } from '../../clients/integration-request.ts'
import { type Client, consentRules } from '../../domain/model.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import type { Declared } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'

/** What an app is, as an administrator chooses it. Each has its own fields. */
export const clientKinds = ['web', 'native', 'machine', 'device', 'api'] as const
export type ClientKind = (typeof clientKinds)[number]

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const clientCredentials = 'client_credentials'

/** Returns the kinds that this server can add: some need a grant type of a feature. */
export function offeredKinds({ grantTypes }: Declared): readonly ClientKind[] {
  const needed: Partial<Record<ClientKind, string>> = { machine: clientCredentials, device: deviceGrant }
  return clientKinds.filter((kind) => needed[kind] === undefined || Object.hasOwn(grantTypes, needed[kind]))
}

/** Returns which of the kinds a client is. */
export function kindOf({ origin, grantTypes, authenticationMethod }: Client): ClientKind {
  if (origin === 'resource-server') return 'api'
  if (grantTypes.includes(clientCredentials)) return 'machine'
  if (grantTypes.includes(deviceGrant)) return 'device'
  return authenticationMethod === 'none' ? 'native' : 'web'
}

/** What a kind is, as the client model says it: the explanation of each choice is on its page. */
const fixed: Readonly<Record<ClientKind, IntegrationChange>> = {
  web: {},
  native: { authenticationMethod: 'none' },
  machine: { grantTypes: [clientCredentials] },
  device: { authenticationMethod: 'none', grantTypes: [deviceGrant, 'refresh_token'] },
  api: {},
}

/** The fields of the form, as they were typed. */
export interface TypedClient {
  readonly name: string
  readonly redirectUris: string
  readonly postLogoutRedirectUris: string
  readonly consent: Client['consent'] | ''
  readonly scope: readonly string[]
  readonly resources: readonly string[]
  readonly clientUri: string
  readonly policyUri: string
  readonly tosUri: string
}

/** The fields that are several check boxes. */
export const repeatedClientFields: readonly string[] = ['scope', 'resource']

/** The fields with their labels. None is for a secret. */
export const clientFields = {
  name: msg('admin.name'),
  redirect_uris: msg('admin.client.redirects'),
  post_logout_redirect_uris: msg('admin.client.postLogout'),
  consent: msg('admin.client.consent'),
  scope: msg('admin.client.scope'),
  resource: msg('admin.client.resources'),
  client_uri: msg('consent.website'),
  policy_uri: msg('consent.privacy'),
  tos_uri: msg('consent.terms'),
}

/** Reads the form. */
export function readClientForm(form: Parameters): TypedClient {
  const text = (name: string) => (single(form, name) ?? '').trim()
  const consent = consentRules.find((rule) => rule === single(form, 'consent')) ?? ''
  return {
    name: text('name'),
    redirectUris: text('redirect_uris'),
    postLogoutRedirectUris: text('post_logout_redirect_uris'),
    consent,
    scope: every(form, 'scope'),
    resources: every(form, 'resource'),
    clientUri: text('client_uri'),
    policyUri: text('policy_uri'),
    tosUri: text('tos_uri'),
  }
}

/** Returns what the form shows about a client. */
export function formOf(client: Client): TypedClient {
  return {
    name: client.name ?? '',
    redirectUris: client.redirectUris.join('\n'),
    postLogoutRedirectUris: client.postLogoutRedirectUris.join('\n'),
    consent: client.consent,
    scope: client.scope ?? [],
    resources: client.resources ?? client.introspects,
    clientUri: client.clientUri ?? '',
    policyUri: client.policyUri ?? '',
    tosUri: client.tosUri ?? '',
  }
}

/** Returns what the form changes about a client of a kind: what the form of the kind does not have stays. */
export function changeOf(kind: ClientKind, typed: TypedClient): IntegrationChange {
  const isAtBrowser = kind === 'web' || kind === 'native'
  return {
    name: typed.name,
    ...(isAtBrowser && {
      redirectUris: linesOf(typed.redirectUris),
      postLogoutRedirectUris: linesOf(typed.postLogoutRedirectUris),
      ...(typed.consent !== '' && { consent: typed.consent }),
    }),
    ...(kind !== 'api' && { scope: typed.scope }),
    ...((kind === 'api' || (kind === 'machine' && typed.resources.length > 0)) && {
      resources: typed.resources,
    }),
    ...(kind !== 'api' && {
      description: { client_uri: typed.clientUri, policy_uri: typed.policyUri, tos_uri: typed.tosUri },
    }),
  }
}

/** Returns the request for a new client of a kind. */
export function requestFor(kind: ClientKind, typed: TypedClient): IntegrationRequest {
  return {
    redirectUris: [],
    postLogoutRedirectUris: [],
    pkce: 'required',
    idTokenSignedResponseAlg: 'RS256',
    ...fixed[kind],
    ...changeOf(kind, typed),
  } as IntegrationRequest // neither has a member that is undefined
}

function linesOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((line) => line !== '')
}
