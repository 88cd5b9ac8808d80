import t from 'tap'
import { rotateClientSecret } from '../../src/clients/operator-client.ts'
import { secretMatches } from '../../src/domain/secret.ts'
import { declared } from '../../src/features.ts'
import {
  addOperatorClient,
  changeOperatorClient,
  type OperatorClientRequest,
} from '../helpers/client-request.ts'

const fresh = { id: Buffer.alloc(16, 1), secret: Buffer.alloc(32, 2) }
const known = {
  declared,
  scopes: ['openid', 'courses:read'],
  resources: ['https://auth.example.com', 'https://api.example.com'],
}
const web: OperatorClientRequest = {
  name: 'Course app',
  redirectUris: ['https://app.example.com/callback'],
  postLogoutRedirectUris: [],
  authenticationMethod: 'client_secret_basic',
  pkce: 'required',
  idTokenSignedResponseAlg: 'RS256',
}
const loopback = { ...web, redirectUris: ['http://127.0.0.1/callback'] }
const api = { ...web, redirectUris: [], resources: ['https://api.example.com'] }

t.test('a client added by an operator is a web client with a secret', async (t) => {
  const { client, secret } = addOperatorClient(web, known, fresh, 50)
  t.match(client, {
    id: `client_${fresh.id.toString('base64url')}`,
    origin: 'integration',
    issuedAt: 50,
    usedAt: 50,
    applicationType: 'web',
    grantTypes: ['authorization_code', 'refresh_token'],
    consent: 'remember',
    pkceOptional: false,
    introspects: [],
  })
  t.equal(client.scope, undefined)
  t.equal(secret, `lyc_secret_${fresh.secret.toString('base64url')}`)
  t.ok(secretMatches(String(secret), client.secretHash))
})

t.test('a redirect URI may have an empty path, and is stored as written', async (t) => {
  const uris = ['https://app.example.com', 'https://app.example.com:8443', 'http://localhost:3000']
  const { client } = addOperatorClient(
    { ...web, redirectUris: uris, postLogoutRedirectUris: uris },
    known,
    fresh,
    50,
  )
  t.strictSame([client.redirectUris, client.postLogoutRedirectUris], [uris, uris])
})

t.test('without a registered method a client may send its secret either way', async (t) => {
  const { client, secret } = addOperatorClient({ ...web, authenticationMethod: undefined }, known, fresh, 50)
  t.match(client, { authenticationMethod: 'client_secret_basic', anySecretMethod: true })
  t.ok(secretMatches(String(secret), client.secretHash))
  const changed = (change: Partial<OperatorClientRequest>, before = client) => {
    const decision = changeOperatorClient(before, change, known, { by: 'operator', at: 60 })
    if (!('result' in decision)) throw new Error('refused')
    return decision.result
  }
  t.equal(changed({ name: 'Other' }).anySecretMethod, true)
  const fixed = changed({ authenticationMethod: 'client_secret_post' })
  t.equal(fixed.authenticationMethod, 'client_secret_post')
  t.notOk('anySecretMethod' in fixed)
  t.notOk('anySecretMethod' in changed({ name: 'Other' }, addOperatorClient(web, known, fresh, 50).client))
})

t.test('a public client added by an operator has no secret', async (t) => {
  const { client, secret } = addOperatorClient({ ...web, authenticationMethod: 'none' }, known, fresh, 50)
  t.equal(secret, undefined)
  t.notOk('secretHash' in client)
  t.equal(client.consent, 'remember', 'its https callback assures who it is')
})

t.test('a client with loopback redirects is native', async (t) => {
  for (const uri of ['http://127.0.0.1:7777/cb', 'http://[::1]/cb', 'http://localhost/cb']) {
    t.equal(
      addOperatorClient({ ...web, redirectUris: [uri] }, known, fresh, 50).client.applicationType,
      'native',
    )
  }
})

t.test('a client has the grant types that the operator names', async (t) => {
  const grantTypes = ['authorization_code']
  t.strictSame(addOperatorClient({ ...web, grantTypes }, known, fresh, 50).client.grantTypes, grantTypes)
  const described = { grantTypes: { service: { operatorOnly: true } }, clientMetadata: {} } as const
  const other = { ...known, declared: { ...declared, ...described } }
  const service = { ...web, grantTypes: ['service'], redirectUris: [] }
  t.strictSame(addOperatorClient(service, other, fresh, 50).client.grantTypes, ['service'])
  t.throws(() => addOperatorClient(service, known, fresh, 50), { code: 'invalid_client_metadata' })
})

t.test('a public client on loopback needs consent every time', async (t) => {
  const request = { ...loopback, authenticationMethod: 'none' } as const
  t.equal(addOperatorClient(request, known, fresh, 50).client.consent, 'always')
  for (const consent of ['remember', 'skip'] as const) {
    t.throws(() => addOperatorClient({ ...request, consent }, known, fresh, 50), {
      code: 'invalid_client_metadata',
      message: 'consent must be always for a public client with a loopback redirect URI',
    })
    t.equal(
      addOperatorClient({ ...loopback, consent }, known, fresh, 50).client.consent,
      consent,
      'with a secret',
    )
  }
})

t.test('a resource server has resources, a secret and no way to get tokens', async (t) => {
  const { client, secret } = addOperatorClient(api, known, fresh, 50)
  t.match(client, {
    origin: 'resource-server',
    grantTypes: [],
    redirectUris: [],
    introspects: api.resources,
  })
  t.ok(secretMatches(String(secret), client.secretHash))
})

const rejected: [string, OperatorClientRequest, string, RegExp][] = [
  ['no name', { ...web, name: ' ' }, 'invalid_client_metadata', /^name /],
  ['a name that turns the text around', { ...web, name: 'a\u202eb' }, 'invalid_client_metadata', /^name /],
  ['a long name', { ...web, name: 'x'.repeat(201) }, 'invalid_client_metadata', /^name /],
  ['no redirect URI', { ...web, redirectUris: [] }, 'invalid_redirect_uri', /^redirect-uri is missing/],
  [
    'http',
    { ...web, redirectUris: ['https://a.example/', 'http://a.example/'] },
    'invalid_redirect_uri',
    /^redirect-uri 2 /,
  ],
  [
    'a fragment',
    { ...web, redirectUris: ['https://a.example/#x'] },
    'invalid_redirect_uri',
    /^redirect-uri 1 /,
  ],
  ['a scheme of its own', { ...web, redirectUris: ['app:/cb'] }, 'invalid_redirect_uri', /^redirect-uri 1 /],
  ['127.1', { ...web, redirectUris: ['http://127.1/cb'] }, 'invalid_redirect_uri', /^redirect-uri 1 /],
  [
    'a foreign logout',
    { ...web, postLogoutRedirectUris: ['http://a.example/'] },
    'invalid_redirect_uri',
    /^post-logout-redirect-uri 1 /,
  ],
  [
    'optional PKCE without a secret',
    { ...web, authenticationMethod: 'none', pkce: 'optional' },
    'invalid_client_metadata',
    /^pkce /,
  ],
  ['a public resource server', { ...api, authenticationMethod: 'none' }, 'invalid_client_metadata', /^auth /],
  [
    'a resource server with a callback',
    { ...api, redirectUris: web.redirectUris },
    'invalid_redirect_uri',
    /^a resource server /,
  ],
  ['an unknown scope', { ...web, scope: ['openid', 'nope'] }, 'invalid_client_metadata', /^scope /],
  [
    'an unknown resource',
    { ...api, resources: ['https://other.example'] },
    'invalid_client_metadata',
    /^resource /,
  ],
]
for (const [what, request, code, message] of rejected) {
  t.test(`${what} is rejected`, async (t) => {
    t.throws(() => addOperatorClient(request, known, fresh, 50), { name: 'OAuthError', code, message })
  })
}

t.test('a resource server may exchange tokens, and gets none in another way', async (t) => {
  const grantTypes = { ...declared.grantTypes, exchange: { operatorOnly: true, fromToken: true } as const }
  const exchanging = { ...known, declared: { ...declared, grantTypes } }
  const asked = { ...api, grantTypes: ['authorization_code', 'exchange'] }
  const { client } = addOperatorClient(asked, exchanging, fresh, 50)
  t.match(client, { origin: 'resource-server', introspects: api.resources, grantTypes: ['exchange'] })
  const context = { by: 'operator', at: 60 } as const
  const changed = changeOperatorClient(client, { name: 'Other' }, exchanging, context)
  t.match(changed, { result: { name: 'Other', grantTypes: ['exchange'], introspects: api.resources } })
  t.throws(
    () =>
      addOperatorClient(
        { ...web, authenticationMethod: 'none', grantTypes: ['exchange'] },
        exchanging,
        fresh,
        50,
      ),
    { code: 'invalid_client_metadata', message: /^auth must not be none/ },
  )
})

t.test('only the secret of a confidential client can be rotated', async (t) => {
  const context = { by: 'operator', at: 60 } as const
  const { client } = addOperatorClient(web, known, fresh, 50)
  const decision = rotateClientSecret(client, Buffer.alloc(32, 3), context)
  const secret = `lyc_secret_${Buffer.alloc(32, 3).toString('base64url')}`
  t.match(decision, {
    result: { secret },
    writes: [
      { op: 'update', kind: 'client', record: { id: client.id, name: client.name } },
      { op: 'insert', kind: 'auditEvent', record: { name: 'client-secret-changed', clientId: client.id } },
    ],
  })
  const [write] = decision.writes
  t.ok(write?.op === 'update' && write.kind === 'client' && secretMatches(secret, write.record.secretHash))
  const open = addOperatorClient({ ...web, authenticationMethod: 'none' }, known, fresh, 50).client
  t.throws(() => rotateClientSecret(open, fresh.secret, context), {
    message: 'a public client has no secret',
  })
  t.throws(() => rotateClientSecret(undefined, fresh.secret, context), { message: 'no client has this id' })
})
