import t from 'tap'
import { coreMembers } from '../../src/clients/core-members.ts'
import type { ClientMember } from '../../src/clients/members.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { clientOf, type DocumentPolicy, readDocument } from '../../src/specs/client-id-metadata/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { rejectionOf } from '../helpers/rejection.ts'
import { publicClient } from '../helpers/samples.ts'

const id = 'https://client.example/client.json'
const redirect = 'https://client.example/callback'
const asSent: ClientMember = { read: (members, name) => members[name] }
const ofOperator = { ...asSent, operatorOnly: true } as const
/** What the client with keys has of the members of features. */
const checked: unknown[] = []
const policy: DocumentPolicy = {
  mode: 'any',
  allowed: [],
  formerHosts: [],
  metadataBytes: 8192,
  isDevelopment: false,
  scopes: ['openid', 'courses:read', 'courses:write'],
  algorithms: ['RS256', 'ES256'],
  declared: {
    clientMetadata: {
      ...coreMembers,
      open_member: asSent,
      operator_member: ofOperator,
      jwks: ofOperator,
      jwks_uri: ofOperator,
      token_endpoint_auth_signing_alg: ofOperator,
    },
    grantTypes: { authorization_code: {}, refresh_token: {}, device: {}, client_credentials: ofOperator },
    clientAuthentication: {
      client_secret_basic: { usesSecret: true },
      private_key_jwt: { assertRegistered: (extra) => void checked.push(extra) },
      broken: {
        assertRegistered: () => {
          throw new TypeError('a defect')
        },
      },
    },
  },
}
const document = { client_id: id, redirect_uris: [redirect] }
const read = (members: object) => readDocument({ ...document, ...members }, id, policy)
const invalid = (rule: string, description: string, detail: object) => ({
  code: 'invalid_client',
  description,
  rule,
  status: 400,
  ...detail,
})
const unusable = (description: string, detail: object = {}) =>
  invalid('cimd-4.1-json-document', `the client metadata document cannot be used: ${description}`, detail)
/** A text without repetition in any 100 characters, to see where it was cut. */
const long = Array.from({ length: 100 }, (_, n) => `${n}.`).join('')

t.test('[cimd-3-no-normalization] a default port makes another client_id', async (t) => {
  const withPort = id.replace('client.example', 'client.example:443')
  const readAt = (url: string, said: string) => () =>
    readDocument({ ...document, client_id: said }, url, policy)
  for (const url of [id, withPort]) t.doesNotThrow(readAt(url, url), url)
  for (const [url, said] of [
    [id, withPort],
    [withPort, id],
    [id, id.replace('client.example', 'CLIENT.example')],
    [id, id.replace('client.json', '%63lient.json')],
  ] as const)
    t.match(rejectionOf(readAt(url, said)), { rule: 'cimd-4.1-client-id-equals-url' }, `${url} ${said}`)
})

t.test('a document of the least members is a client with defaults', async (t) => {
  const least = {
    origin: 'registered',
    applicationType: 'web',
    redirectUris: [redirect],
    postLogoutRedirectUris: [],
    authenticationMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token'],
    contacts: [],
    localized: {},
    idTokenSignedResponseAlg: 'RS256',
    requireAuthTime: false,
    pkceOptional: false,
    consent: 'remember',
    introspects: [],
    published: {
      host: 'client.example',
      terms: hashSecret(JSON.stringify([[redirect], 'none', undefined, undefined, undefined])),
    },
  }
  t.strictSame(read({}), least)
  t.strictSame(
    passedDuring(() => read({})).map(({ rule, received }) => [rule, received]),
    [
      ['cimd-4.1-json-document', undefined],
      ['cimd-4.1-client-id-equals-url', id],
      ['cimd-4.1-no-shared-secrets', undefined],
      ['cimd-4.1-no-shared-secrets', ['none']],
      ['rfc6749-3.3-scope-syntax', undefined],
    ],
  )
})

t.test('a document sets what clients may set that register themselves, and its keys', async (t) => {
  const keys = { jwks: { keys: [] }, jwks_uri: 'https://client.example/keys' }
  const published = { ...keys, token_endpoint_auth_signing_alg: 'ES256', open_member: 1 }
  const method = 'private_key_jwt'
  const terms = hashSecret(
    JSON.stringify([['http://localhost/', redirect], method, keys.jwks, keys.jwks_uri, 'ES256']),
  )
  checked.length = 0
  const client = read({
    ...published,
    operator_member: 1,
    redirect_uris: ['http://localhost/', redirect, redirect],
    post_logout_redirect_uris: ['https://client.example/out', 'app:/out', 5],
    token_endpoint_auth_method: method,
    grant_types: ['client_credentials', 'device', 'unknown', 'authorization_code'],
    id_token_signed_response_alg: 'ES256',
    require_auth_time: true,
    client_name: 'Client',
    client_uri: 'https://client.example',
    scope: 'courses:read unknown openid',
    software_id: 'software',
    software_version: '1.0',
  })
  t.strictSame(client, {
    ...read({}),
    applicationType: 'native',
    redirectUris: ['http://localhost/', redirect],
    postLogoutRedirectUris: ['https://client.example/out'],
    authenticationMethod: method,
    grantTypes: ['authorization_code', 'device'],
    clientUri: 'https://client.example',
    idTokenSignedResponseAlg: 'ES256',
    requireAuthTime: true,
    published: { host: 'client.example', terms },
    name: 'Client',
    scope: ['courses:read', 'openid'],
    softwareId: 'software',
    softwareVersion: '1.0',
    extra: published,
  })
  t.strictSame(checked, [published], 'its method has looked at them')
  t.strictSame(read({ token_endpoint_auth_method: method }).extra, undefined)
  t.strictSame(checked.at(-1), {}, 'without members there is nothing to look at')
})

t.test('a document is an object with its own URL, and without a secret', async (t) => {
  for (const json of [undefined, null, [document], id])
    t.strictSame(
      rejectionOf(() => readDocument(json, id, policy)),
      invalid(
        'cimd-4.1-json-document',
        'the client metadata document is not a JSON object with each member once',
        {},
      ),
    )
  for (const [other, stored] of [
    [`${id}/`, `${id}/`],
    [long, long.slice(0, 200)],
    [[id], undefined],
  ])
    t.strictSame(
      rejectionOf(() => read({ client_id: other })),
      invalid(
        'cimd-4.1-client-id-equals-url',
        'client_id in the client metadata document is not the URL of the document',
        { stored, received: id },
      ),
    )
  for (const secret of ['client_secret', 'Client_Secret_expires_at'])
    t.strictSame(
      rejectionOf(() => read({ [secret]: null })),
      invalid('cimd-4.1-no-shared-secrets', `${secret} must not be in a client metadata document`, {}),
    )
  t.doesNotThrow(() => read({ no_client_secret: 'x' }))
})

t.test('only redirect URIs that can be used count, and there is one at least', async (t) => {
  const useless = [
    'app:/callback',
    'http://client.example/',
    `${redirect}?code=1`,
    'http://127.0.0.1/?state',
    5,
  ]
  for (const redirect_uris of [undefined, redirect, [], useless])
    t.strictSame(
      rejectionOf(() => read({ redirect_uris })),
      unusable('redirect_uris has no https URI and no loopback URI'),
    )
  t.strictSame(read({ redirect_uris: [...useless, redirect] }).redirectUris, [redirect])
  for (const loopback of ['http://127.0.0.1/callback', 'http://[::1]:5/', 'http://localhost/'])
    t.match(read({ redirect_uris: [redirect, loopback] }), {
      redirectUris: [redirect, loopback],
      applicationType: 'native',
    })
})

t.test('the authentication method is the first that is supported, and has no shared secret', async (t) => {
  const methodOf = (preferred: unknown, offered?: unknown) =>
    read({ token_endpoint_auth_method: preferred, token_endpoint_auth_methods_supported: offered })
      .authenticationMethod
  const keys = 'private_key_jwt'
  for (const [preferred, offered, method] of [
    [undefined, 'private_key_jwt', 'none'],
    [undefined, [keys, 'none'], keys],
    [undefined, ['tls_client_auth', 5, keys], keys],
    ['none', [keys], 'none'],
    [keys, ['none'], keys],
    ['tls_client_auth', ['none', keys], 'none'],
    // The name alone does not make it a method with a secret.
    ['no_client_secret', ['none'], 'none'],
  ])
    t.equal(methodOf(preferred, offered), method, JSON.stringify([preferred, offered]))
  for (const [preferred, offered, received] of [
    ['client_secret_basic', ['none'], ['client_secret_basic']],
    ['client_secret_other', undefined, ['client_secret_other']],
    [long, [long], [long.slice(0, 200), long.slice(0, 200)]],
    [undefined, ['client_secret_basic'], ['client_secret_basic', 'client_secret_basic']],
    [['none'], undefined, []],
    ['', ['none '], ['', 'none ']],
  ])
    t.strictSame(
      rejectionOf(() => methodOf(preferred, offered)),
      invalid(
        'cimd-4.1-no-shared-secrets',
        `token_endpoint_auth_method in the client metadata document must be none or ${keys} or broken`,
        { received },
      ),
    )
})

t.test('a scope limits the client to what this server knows of it', async (t) => {
  for (const [scope, limit] of [
    [null, undefined],
    [' ', undefined],
    ['openid', ['openid']],
    ['unknown', []],
  ])
    t.strictSame(read({ scope }).scope, limit, `${scope}`)
  for (const scope of [['openid'], 'a"b', 5])
    t.strictSame(
      rejectionOf(() => read({ scope })),
      unusable('scope is not a list of scope names'),
    )
})

t.test('an error of a member keeps its rule, and a defect is no error of the document', async (t) => {
  t.strictSame(
    rejectionOf(() => read({ id_token_signed_response_alg: 'HS256' })),
    unusable('id_token_signed_response_alg must be one of: RS256, ES256', {
      rule: 'oidc-reg-2-id-token-alg',
      received: 'HS256',
    }),
  )
  t.throws(() => read({ token_endpoint_auth_method: 'broken' }), new TypeError('a defect'))
})

t.test('a client keeps what its document does not say', async (t) => {
  const metadata = read({})
  t.strictSame(clientOf(metadata, id, undefined, 500), { ...metadata, id, issuedAt: 500, usedAt: 500 })
  const before = { ...publicClient, id, issuedAt: 1, usedAt: 2 }
  t.strictSame(clientOf(metadata, id, before, 500), { ...metadata, id, issuedAt: 1, usedAt: 2 })
  const locked = { ...before, lockedAt: 3 }
  t.strictSame(clientOf(metadata, id, locked, 500), { ...metadata, id, issuedAt: 1, usedAt: 2, lockedAt: 3 })
})
