import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { clientForm } from '../../src/admin/pages/client-form.ts'
import { addMetadataFlags } from '../../src/cli/client-metadata.ts'
import { filesSchema } from '../../src/cli/files/schema.ts'
import { clientMetadata, configuredOf } from '../../src/clients/describe.ts'
import { openToAll, openWithToken } from '../../src/clients/members.ts'
import { parseClientMetadata } from '../../src/clients/metadata.ts'
import { addOperatorClient } from '../../src/clients/operator-client.ts'
import { seedClients } from '../../src/dev/clients.ts'
import type { Write } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { vocabularyOf } from '../../src/feature/client-vocabulary.ts'
import { declared } from '../../src/features.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { makeClientKey } from '../helpers/assertions.ts'

/** A value of each member that is not its default, and other members it needs. */
const samples: Readonly<Record<string, readonly [value: unknown, needed?: object]>> = {
  client_name: ['Other'],
  redirect_uris: [['http://127.0.0.1/other']],
  post_logout_redirect_uris: [['http://127.0.0.1/bye']],
  any_redirect_scheme: [true],
  token_endpoint_auth_method: ['client_secret_post'],
  grant_types: [['authorization_code']],
  scope: ['openid email'],
  id_token_signed_response_alg: ['ES256'],
  id_token_claims: ['scope'],
  resources: [['http://localhost:9400'], { grant_types: ['client_credentials'], scope: 'courses:read' }],
  pkce: ['optional'],
  consent: ['skip'],
  client_uri: ['https://app.example'],
  logo_uri: ['https://app.example/logo.png'],
  policy_uri: ['https://app.example/privacy'],
  tos_uri: ['https://app.example/terms'],
  contacts: [['Ada <ada@app.example>']],
  software_id: ['software'],
  software_version: ['1.0'],
  default_max_age: [60],
  default_acr_values: [['phr', 'https://refeds.org/profile/mfa']],
  access_token_seconds: [300],
  id_token_seconds: [300],
  refresh_token_idle_seconds: [86_400],
  refresh_token_absolute_seconds: [864_000],
  require_auth_time: [true],
  jwks: [{ keys: [{ ...makeClientKey().jwk, alg: 'ES256' }] }],
  jwks_uri: ['https://app.example/keys'],
  token_endpoint_auth_signing_alg: ['ES256'],
  trusted_issuers: [[{ issuer: 'https://ci.example', subject: 'repo' }]],
  legacy_audience: [true],
  exchanged_by: ['orders-api'],
  backchannel_logout_uri: ['https://app.example/logout'],
  backchannel_logout_session_required: [true],
  refresh_tokens: ['session'],
  request_object_signing_alg: ['ES256'],
  require_signed_request_object: [true],
  request_uris: [['https://app.example/request']],
  require_pushed_authorization_requests: [true],
  dpop_bound_access_tokens: [true],
  security_profile: ['fapi2-message-signing'],
  authorization_signed_response_alg: ['ES256'],
  response_modes: [['jwt', 'form_post']],
  userinfo_signed_response_alg: ['ES256'],
  initiate_login_uri: ['https://app.example/start'],
  allowed_groups: [['group_0123456789abcdefghijkl']],
  forward_auth: [
    { host: 'app.example', rules: [{ path: '/public/*', access: 'public' }] },
    { redirect_uris: ['https://app.example/.lychgate/callback'] },
  ],
  required_sign_in: ['passkey from 2027-01-31'],
  token_claims: [[{ claim: 'tenant', in: ['id_token', 'userinfo'], value: 'one' }]],
}
const base = { client_name: 'App', redirect_uris: ['http://127.0.0.1/callback'] }
const config = loadConfig({ mode: 'dev', flags: {} })
const known = vocabularyOf(config, declared)
const settable = Object.entries(declared.clientMetadata).filter(([, { isDerived }]) => !isDerived)
const names = settable.map(([name]) => name)

function add(members: object): Client {
  const fresh = { id: systemRandom(16), secret: systemRandom(32) }
  return addOperatorClient({ ...base, ...members }, known, fresh, { by: 'operator', at: systemClock() })
    .client
}

/** Returns the properties of a schema of a description of the API, by the path of its route. */
function bodyOf(file: string, path: RegExp, method: string): object {
  const api = JSON.parse(readFileSync(file, 'utf8'))
  const route = Object.keys(api.paths).find((one) => path.test(one)) ?? ''
  const { schema } = api.paths[route][method].requestBody.content['application/json']
  const { $ref = '' } = schema
  return (api.components?.schemas[$ref.split('/').at(-1)] ?? schema).properties
}

t.test('every member that is declared has a sample here', async (t) => {
  t.strictSame([...names].sort(), Object.keys(samples).sort())
})

t.test(
  'every member has a flag, is in the description of the admin API and in the schema of files',
  async (t) => {
    const command = addMetadataFlags(new Command('add'))
    t.equal(command.options.length, names.length + 1, 'the other flag is for other languages')
    const file = filesSchema(declared)['properties'].clients.items.properties
    for (const method of ['post', 'patch', 'put']) {
      const path = method === 'post' ? /\/clients$/ : /\/clients\/\{client_id\}$/
      const body = bodyOf('openapi/admin.json', path, method)
      t.strictSame(
        names.filter((name) => !Object.hasOwn(body, name)),
        [],
        method,
      )
    }
    t.strictSame(
      names.filter((name) => !Object.hasOwn(file, name)),
      [],
    )
  },
)

t.test('every member that is open is in the description of registration', async (t) => {
  const body = bodyOf('openapi/openapi.json', /\/register$/, 'post')
  const open = Object.keys(openWithToken(declared.clientMetadata))
  t.strictSame(
    open.filter((name) => !Object.hasOwn(body, name)),
    [],
  )
})

for (const [name, [value, needed = {}]] of Object.entries(samples)) {
  t.test(`${name} is kept through every door`, async (t) => {
    const client = add({ ...needed, [name]: value })
    t.strictSame(configuredOf(client)[name], value, 'operators: the admin API, files and commands')
    t.strictSame(
      configuredOf(add(configuredOf(client))),
      configuredOf(client),
      'what is exported is read again',
    )
    const added: Write[] = []
    const store = { write: async (...writes: readonly Write[]) => void added.push(...writes) }
    const parts = { clock: systemClock, random: systemRandom }
    const method = { token_endpoint_auth_method: 'client_secret_basic' }
    await seedClients(store, [{ ...base, ...method, ...needed, [name]: value }], config, parts)
    const [write] = added
    const seeded = write?.op === 'insert' && write.kind === 'client' ? write.record : undefined
    t.strictSame(seeded && configuredOf(seeded)[name], value, 'a development server')
    const { formOf, changeOf } = clientForm(declared)
    const kind = name === 'resources' ? 'machine' : 'web'
    // The page of a client has its groups.
    if (name !== 'allowed_groups') {
      const changed = add({ ...needed, ...changeOf(kind, formOf(client)) })
      t.strictSame(configuredOf(changed)[name], value, 'the form of the admin pages')
    }
    if (!Object.hasOwn(openToAll(declared.clientMetadata), name)) return
    const policy = {
      ...config.registration,
      redirectUris: 5,
      metadataBytes: 8192,
      scopes: known.openScopes ?? [],
      algorithms: ['RS256', 'ES256'] as const,
      declared,
    }
    const { authenticationMethod = 'none', ...read } = parseClientMetadata({ ...base, [name]: value }, policy)
    const shown = clientMetadata({ ...client, ...read, authenticationMethod }, known.openScopes ?? [])
    t.strictSame(shown[name], value, 'registration')
  })
}
