/** The plans of docs/conformance.md, in the order in which they run, and what each needs. */

/** How Lychgate is configured; each kind begins with an empty folder. */
export type ServerKind = 'default' | 'no-ed25519' | 'upstreams'

/** The arguments of `lychgate client` for a client. */
type Command = (clientId: string) => readonly string[]

/** A test configuration of configuration.ts. */
export type ConfigurationName = 'basic' | 'dynamic' | 'logout' | 'fapi2' | 'fapi2-oauth' | 'fapi2-client'

export interface Plan {
  /** Its name on the command line. */
  readonly name: string
  /** Its name in the suite. */
  readonly id: string
  /** The first two cells of its row. */
  readonly title: string
  readonly note: string
  /** What the suite leaves open. */
  readonly variant?: Readonly<Record<string, string>>
  /** Absent for a plan of Relying Parties. */
  readonly configuration?: ConfigurationName
  readonly server: ServerKind
  /** Commands to run first with each of these clients, which have the names of docs/testing.md. */
  readonly before?: { readonly clients: readonly string[]; readonly commands: readonly Command[] }
  /** Modules that cannot pass, with their result; docs/conformance.md says why. */
  readonly expected?: Readonly<Record<string, string>>
}

const fapiClients = ['Suite, FAPI one', 'Suite, FAPI two'] as const
const signMessages: Command = (id) => ['profile', 'fapi2-message-signing', id]
const staticClient = { client_registration: 'static_client' } as const
const logout = { ...staticClient, response_type: 'code' } as const
const fapi2 = {
  client_auth_type: 'private_key_jwt',
  sender_constrain: 'dpop',
  authorization_request_type: 'simple',
  openid: 'openid_connect',
  fapi_profile: 'plain_fapi',
} as const
const signed = { ...fapi2, fapi_request_method: 'signed_non_repudiation' } as const
const relyingParty = { ...staticClient, request_type: 'plain_http_request' } as const

/** @param callbacks Where the suite takes responses and logout tokens. */
export const plansOf = (callbacks: string): readonly Plan[] => [
  {
    name: 'basic',
    id: 'oidcc-basic-certification-test-plan',
    title: 'OpenID Connect Core: Basic',
    note: '',
    variant: { ...staticClient, server_metadata: 'discovery' },
    configuration: 'basic',
    server: 'default',
  },
  {
    name: 'config',
    id: 'oidcc-config-certification-test-plan',
    title: 'OpenID Connect Core: Config',
    note: '',
    configuration: 'basic',
    server: 'default',
  },
  {
    name: 'form-post',
    id: 'oidcc-formpost-basic-certification-test-plan',
    title: 'OpenID Connect Core: Form Post, basic',
    note: '',
    variant: { ...staticClient, server_metadata: 'discovery' },
    configuration: 'basic',
    server: 'default',
  },
  {
    name: 'third-party',
    id: 'oidcc-3rdparty-init-login-certification-test-plan',
    title: 'OpenID Connect Core: 3rd party-init login',
    note: 'code',
    variant: { response_type: 'code' },
    configuration: 'dynamic',
    server: 'default',
  },
  {
    name: 'logout',
    id: 'oidcc-rp-initiated-logout-certification-test-plan',
    title: 'RP-Initiated Logout',
    note: 'code',
    variant: logout,
    configuration: 'logout',
    server: 'default',
  },
  {
    name: 'backchannel',
    id: 'oidcc-backchannel-rp-initiated-logout-certification-test-plan',
    title: 'Back-Channel Logout',
    note: 'code',
    variant: logout,
    configuration: 'logout',
    server: 'default',
    // Modules of the plans above fail when they get a logout token.
    before: {
      clients: ['Suite, client'],
      commands: [(id) => ['set', id, '--backchannel-logout-uri', `${callbacks}/backchannel_logout`]],
    },
  },
  {
    name: 'fapi2',
    id: 'fapi2-security-profile-final-test-plan',
    title: 'FAPI 2.0 Security Profile Final',
    note: 'OpenID Connect, private key, DPoP',
    variant: fapi2,
    configuration: 'fapi2',
    server: 'default',
  },
  {
    name: 'fapi2-oauth',
    id: 'fapi2-security-profile-final-test-plan',
    title: 'FAPI 2.0 Security Profile Final',
    note: 'plain OAuth, private key, DPoP',
    variant: { ...fapi2, openid: 'plain_oauth' },
    configuration: 'fapi2-oauth',
    server: 'default',
  },
  {
    name: 'fapi2-client',
    id: 'fapi2-security-profile-final-test-plan',
    title: 'FAPI 2.0 Security Profile Final',
    note: 'client credentials, private key, DPoP',
    variant: { ...fapi2, openid: 'plain_oauth', fapi_profile: 'fapi_client_credentials_grant' },
    configuration: 'fapi2-client',
    server: 'default',
  },
  {
    name: 'signing-jarm',
    id: 'fapi2-message-signing-final-test-plan',
    title: 'FAPI 2.0 Message Signing Final',
    note: 'signed requests, JARM',
    variant: { ...signed, fapi_response_mode: 'jarm' },
    configuration: 'fapi2',
    server: 'default',
    before: { clients: fapiClients, commands: [signMessages] },
  },
  {
    name: 'signing',
    id: 'fapi2-message-signing-final-test-plan',
    title: 'FAPI 2.0 Message Signing Final',
    note: 'signed requests, plain responses',
    variant: { ...signed, fapi_response_mode: 'plain_response' },
    configuration: 'fapi2',
    server: 'default',
    before: { clients: fapiClients, commands: [signMessages, (id) => ['set', id, '--response-modes', '']] },
  },
  {
    name: 'dynamic',
    id: 'oidcc-dynamic-certification-test-plan',
    title: 'OpenID Connect Core: Dynamic',
    note: 'code, `keys.ed25519: off`',
    variant: { response_type: 'code' },
    configuration: 'dynamic',
    server: 'no-ed25519',
    expected: { 'oidcc-discovery-endpoint-verification': 'FAILED' },
  },
  {
    name: 'rp-basic',
    id: 'oidcc-client-basic-certification-test-plan',
    title: 'Relying Party: Basic',
    note: 'code, secret',
    variant: relyingParty,
    server: 'upstreams',
  },
  {
    name: 'rp-config',
    id: 'oidcc-client-config-certification-test-plan',
    title: 'Relying Party: Config',
    note: 'code, secret',
    variant: { ...relyingParty, client_auth_type: 'client_secret_basic', response_mode: 'default' },
    server: 'upstreams',
  },
]
