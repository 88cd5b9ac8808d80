import t from 'tap'
import {
  owesAuthTime,
  parseAuthorizationRequest,
  resolveRedirectUri,
} from '../../src/domain/authorization-request.ts'
import { indexScopeClaims } from '../../src/domain/claims.ts'
import type { Client } from '../../src/domain/model.ts'
import { type Parameters, parseParameters } from '../../src/domain/parameters.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import {
  authorizationRequest,
  integration,
  ownApi,
  publicClient,
  redirectUri,
  resources,
} from '../helpers/samples.ts'

const policy = {
  scopes: new Set(['openid', 'profile', 'email', 'courses:read', 'courses:write']),
  openScopes: new Set(['openid', 'profile', 'email', 'courses:read', 'courses:write']),
  scopeClaims: indexScopeClaims(defaultScopeCatalogue),
  resources,
}
const own = { ...ownApi, scopes: policy.scopes }
const wide = {
  ...policy,
  resources: {
    ...resources,
    own,
    find: (id: string) => (id === own.identifier ? own : resources.find(id)),
  },
}
const challenge = authorizationRequest.codeChallenge ?? ''
const good = {
  response_type: 'code',
  client_id: publicClient.id,
  redirect_uri: redirectUri,
  scope: 'openid courses:read',
  state: 'a-state',
  code_challenge: challenge,
  code_challenge_method: 'S256',
}

function read(query: Record<string, string | undefined>): Parameters {
  const sent = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  )
  return parseParameters(new URLSearchParams(sent).toString(), { parameters: 100, parameterBytes: 8192 })
}

function parse(
  changes: Record<string, string | undefined> = {},
  client: Client = publicClient,
  sub?: string,
) {
  const parameters = read({ ...good, ...changes })
  return parseAuthorizationRequest(parameters, client, resolveRedirectUri(parameters, client), wide, sub)
}

t.test('a request becomes a record of what was requested, and nothing more', async (t) => {
  t.strictSame(
    parse({ unknown: 'x', display: 'page', acr_values: '0', claims_locales: 'se' }),
    authorizationRequest,
  )
})

t.test('optional parameters are kept as sent, empty ones are absent', async (t) => {
  const request = parse({
    nonce: 'n-1',
    login_hint: 'l'.repeat(300),
    ui_locales: 'se  sv en',
    max_age: '0',
    state: '',
  })
  t.match(request, { nonce: 'n-1', maxAgeSeconds: 0 })
  t.equal(request.loginHint?.length, 256)
  t.notHas(request, { state: String })
  const empty = parse({ nonce: '', login_hint: '', max_age: '' })
  t.strictSame([empty.nonce, empty.loginHint, empty.maxAgeSeconds], [undefined, undefined, undefined])
})

t.test(
  '[oidc-core-6.1-request-unsupported] [oidc-core-6.2-request-uri-unsupported] an invalid request is rejected with the error code of its document',
  async (t) => {
    const clauses: Readonly<Record<string, string>> = {
      request_not_supported: '[oidc-core-6.1-request-unsupported] ',
      request_uri_not_supported: '[oidc-core-6.2-request-uri-unsupported] ',
    }
    const rows: [Record<string, string | undefined>, string][] = [
      [{ response_type: undefined }, 'invalid_request'],
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ response_type: 'code id_token' }, 'unsupported_response_type'],
      [{ response_type: 'Code' }, 'unsupported_response_type'],
      [{ code_challenge: undefined }, 'invalid_request'],
      [{ code_challenge_method: undefined }, 'invalid_request'],
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ scope: 'courses:delete' }, 'invalid_scope'],
      [{ scope: 'openid courses:delete' }, 'invalid_scope'],
      [{ scope: 'openid "' }, 'invalid_scope'],
      [{ scope: ' ' }, 'invalid_scope'],
      [{ resource: 'https://nowhere.example' }, 'invalid_target'],
      [{ resource: 'not a uri' }, 'invalid_target'],
      [{ resource: 'https://api.example/v1', scope: 'openid' }, 'invalid_target'],
      [{ request: 'eyJ' }, 'request_not_supported'],
      [{ request_uri: 'https://a.example' }, 'request_uri_not_supported'],
      [{ registration: '{}' }, 'registration_not_supported'],
      [{ prompt: 'none login' }, 'invalid_request'],
      [{ max_age: '-1' }, 'invalid_request'],
      [{ max_age: '1.5' }, 'invalid_request'],
      [{ max_age: '12345678901' }, 'invalid_request'],
      [{ claims: '{' }, 'invalid_request'],
    ]
    for (const [changes, code] of rows)
      t.throws(() => parse(changes), { code }, `${clauses[code] ?? ''}${JSON.stringify(changes)}`)
    t.throws(() => parse({}, { ...publicClient, grantTypes: ['refresh_token'] }), {
      code: 'unauthorized_client',
    })
  },
)

t.test('an omitted scope is openid profile email, as far as the client may have them', async (t) => {
  t.strictSame(parse({ scope: undefined }).scope, ['openid', 'profile', 'email'])
  t.strictSame(parse({ scope: undefined }, { ...publicClient, scope: ['email', 'courses:read'] }).scope, [
    'email',
  ])
  t.throws(() => parse({ scope: undefined }, { ...publicClient, scope: ['courses:read'] }), {
    code: 'invalid_scope',
  })
  t.throws(() => parse({}, { ...publicClient, scope: ['openid'] }), { code: 'invalid_scope' })
})

t.test('prompt keeps the values this server supports', async (t) => {
  t.strictSame(parse({ prompt: 'login  consent create' }).prompt, ['login', 'consent'])
  t.strictSame(parse({ prompt: 'none' }).prompt, ['none'])
  t.strictSame(parse({ prompt: 'create' }).prompt, [])
})

t.test('default_max_age of the registration applies when the request has no max_age', async (t) => {
  const client = { ...publicClient, defaultMaxAgeSeconds: 7 }
  t.equal(parse({}, client).maxAgeSeconds, 7)
  t.equal(parse({ max_age: '0' }, client).maxAgeSeconds, 0)
})

t.test('the requested user comes from the hint or from claims, and both must agree', async (t) => {
  const claims = JSON.stringify({ id_token: { sub: { value: 'alice' } } })
  t.equal(parse({}, publicClient, 'alice').requiredSub, 'alice')
  t.equal(parse({ claims }).requiredSub, 'alice')
  t.equal(parse({ claims }, publicClient, 'alice').requiredSub, 'alice')
  t.throws(() => parse({ claims }, publicClient, 'bob'), { code: 'login_required' })
})

t.test('auth_time is required when the request or the client asks for it', async (t) => {
  const essential = JSON.stringify({ id_token: { auth_time: { essential: true } } })
  t.notOk(owesAuthTime(parse(), publicClient))
  t.ok(owesAuthTime(parse({ max_age: '0' }), publicClient))
  t.ok(owesAuthTime(parse({ claims: essential }), publicClient))
  t.ok(owesAuthTime(parse(), { ...publicClient, requireAuthTime: true }))
})

t.test('the redirect URI is verified before any other error is sent to it', async (t) => {
  const resolve = (changes: Record<string, string | undefined>, client = publicClient) =>
    resolveRedirectUri(read({ ...good, ...changes }), client)
  t.match(resolve({}), { redirectUri, redirectUriSent: true, responseMode: 'query', state: 'a-state' })
  t.equal(resolve({ redirect_uri: 'http://127.0.0.1:9/callback' }).redirectUri, 'http://127.0.0.1:9/callback')
  t.equal(resolve({ response_mode: 'form_post' }).responseMode, 'form_post')
  for (const changes of [
    { redirect_uri: 'http://127.0.0.1:51004/other' },
    { redirect_uri: 'https://evil.example/callback' },
    { redirect_uri: undefined },
    { response_mode: 'fragment' },
    { response_mode: 'QUERY' },
  ]) {
    t.throws(() => resolve(changes), { code: 'invalid_request', status: 400 }, JSON.stringify(changes))
  }
  const fixed = { client_id: integration.id, redirect_uri: undefined, scope: 'courses:read' }
  t.match(resolve(fixed, integration), { redirectUri: 'https://app.example/cb', redirectUriSent: false })
  t.throws(() => resolve({ ...fixed, scope: 'openid' }, integration), { code: 'invalid_request' })
  const two = { ...integration, redirectUris: ['https://app.example/cb', 'https://app.example/2'] }
  t.throws(() => resolve(fixed, two), { code: 'invalid_request' })
  t.throws(() => resolve({ ...fixed, redirect_uri: 'https://app.example:444/cb' }, integration))
})

t.test('a repeated parameter is rejected, and a repeated state is not returned', async (t) => {
  const repeated = (name: string, value: string) => ({ ...read(good), [name]: [value, value] })
  const proven = resolveRedirectUri(repeated('state', 's'), publicClient)
  t.notHas(proven, { state: String })
  for (const name of ['state', 'scope', 'prompt', 'unknown', 'code_challenge']) {
    const parameters = repeated(name, 'x')
    t.throws(() => parseAuthorizationRequest(parameters, publicClient, proven, wide, undefined), {
      code: 'invalid_request',
      message: `${name} must not be repeated`,
    })
  }
  t.throws(() => resolveRedirectUri(repeated('redirect_uri', redirectUri), publicClient), {
    code: 'invalid_request',
  })
  const both = {
    ...read({ ...good, scope: 'courses:read' }),
    resource: ['https://api.example/v1', own.identifier],
  }
  t.strictSame(parseAuthorizationRequest(both, publicClient, proven, wide, undefined).resource, both.resource)
})
