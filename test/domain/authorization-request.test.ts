import t from 'tap'
import { multiFactor } from '../../src/domain/authentication-context.ts'
import {
  owesAuthTime,
  parseAuthorizationRequest,
  resolveRedirectUri,
} from '../../src/domain/authorization-request.ts'
import { indexScopeClaims } from '../../src/domain/claims.ts'
import type { OAuthError } from '../../src/domain/errors.ts'
import type { Client } from '../../src/domain/model.ts'
import { type Parameters, parseParameters } from '../../src/domain/parameters.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  authorizationRequest,
  operatorClient,
  otherApi,
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
    const rows: [Record<string, string | undefined>, string, string][] = [
      [{ response_type: undefined }, 'invalid_request', 'rfc6749-3.1.1-response-type-missing'],
      [{ response_type: 'token' }, 'unsupported_response_type', 'rfc6749-3.1.1-response-type-unknown'],
      [
        { response_type: 'code id_token' },
        'unsupported_response_type',
        'rfc6749-3.1.1-response-type-unknown',
      ],
      [{ response_type: 'Code' }, 'unsupported_response_type', 'rfc6749-3.1.1-response-type-unknown'],
      [{ code_challenge: undefined }, 'invalid_request', 'rfc7636-4.4.1-challenge-required'],
      [{ code_challenge_method: undefined }, 'invalid_request', 'rfc7636-4.3-method-default-plain'],
      [{ code_challenge_method: 'plain' }, 'invalid_request', 'rfc7636-4.4.1-method-unsupported'],
      [{ scope: 'courses:delete' }, 'invalid_scope', 'rfc6749-4.1.2.1-invalid-scope'],
      [{ scope: 'openid courses:delete' }, 'invalid_scope', 'rfc6749-4.1.2.1-invalid-scope'],
      [{ scope: 'openid "' }, 'invalid_scope', 'rfc6749-3.3-scope-syntax'],
      [{ scope: ' ' }, 'invalid_scope', 'rfc6749-4.1.2.1-invalid-scope'],
      [{ resource: 'https://nowhere.example' }, 'invalid_target', 'rfc8707-2-unknown-invalid-target'],
      [{ resource: 'not a uri' }, 'invalid_target', 'rfc8707-2-absolute-no-fragment'],
      [
        { resource: 'https://api.example/v1', scope: 'openid' },
        'invalid_target',
        'rfc8707-2.2-invalid-combination',
      ],
      [{ request: 'eyJ' }, 'request_not_supported', 'oidc-core-6.1-request-unsupported'],
      [
        { request_uri: 'https://a.example' },
        'request_uri_not_supported',
        'oidc-core-6.2-request-uri-unsupported',
      ],
      [{ registration: '{}' }, 'registration_not_supported', 'oidc-core-3.1.2.6-registration-not-supported'],
      [{ prompt: 'none login' }, 'invalid_request', 'oidc-core-3.1.2.1-prompt-none-exclusive'],
      [{ max_age: '-1' }, 'invalid_request', 'oidc-core-3.1.2.1-max-age'],
      [{ max_age: '1.5' }, 'invalid_request', 'oidc-core-3.1.2.1-max-age'],
      [{ max_age: '12345678901' }, 'invalid_request', 'oidc-core-3.1.2.1-max-age'],
      [{ claims: '{' }, 'invalid_request', 'oidc-core-5.5-claims-malformed'],
    ]
    for (const [changes, code, rule] of rows) {
      const rejection = { code, detail: { rule } }
      t.throws(() => parse(changes), rejection, `${clauses[code] ?? ''}${JSON.stringify(changes)}`)
    }
    t.throws(() => parse({}, { ...publicClient, grantTypes: ['refresh_token'] }), {
      code: 'unauthorized_client',
      detail: { rule: 'rfc6749-4.1.2.1-unauthorized-client' },
    })
  },
)

t.test('an omitted scope is openid profile email, limited to what the client may have', async (t) => {
  t.strictSame(parse({ scope: undefined }).scope, ['openid', 'profile', 'email'])
  t.strictSame(parse({ scope: undefined }, { ...publicClient, scope: ['email', 'courses:read'] }).scope, [
    'email',
  ])
  t.throws(() => parse({ scope: undefined }, { ...publicClient, scope: ['courses:read'] }), {
    code: 'invalid_scope',
    detail: { rule: 'rfc6749-3.3-scope-omitted' },
  })
  t.throws(() => parse({}, { ...publicClient, scope: ['openid'] }), { code: 'invalid_scope' })
})

t.test('a scope that a client may not request says who can change that', async (t) => {
  const why = (scope: string, client: Client) => {
    try {
      return parse({ scope, redirect_uri: client.redirectUris[0] }, client)
    } catch (error) {
      return (error as OAuthError).message
    }
  }
  const narrow = { scope: ['openid'] }
  const rejected = (scope: string) => ({ code: 'invalid_scope', detail: { received: scope } })
  t.throws(() => parse({ scope: 'openid courses:delete' }), rejected('courses:delete'))
  const passed = passedDuring(() => parse()).find(({ rule }) => rule === 'rfc6749-4.1.2.1-invalid-scope')
  t.strictSame(passed?.received, ['openid', 'courses:read'])
  t.equal(
    why('courses:delete', { ...publicClient, ...narrow }),
    'scope has a value that this server does not know (the option scopes)',
  )
  t.equal(
    why('courses:read', { ...publicClient, ...narrow }),
    'scope has a value that this client did not register',
  )
  t.equal(
    why('courses:read', { ...operatorClient, ...narrow }),
    'scope has a value that is not open to this client (lychgate client set --scope)',
  )
})

t.test('an omitted scope at an API without openid, profile and email is all that it offers', async (t) => {
  const at = (...offered: readonly string[]) => {
    const api = { ...otherApi, scopes: new Set(offered) }
    const scopes = new Set([...policy.scopes, ...offered])
    const find = (id: string) => (id === api.identifier ? api : wide.resources.find(id))
    const open = { ...wide, scopes, openScopes: scopes, resources: { ...wide.resources, find } }
    const parameters = read({ ...good, scope: undefined, resource: api.identifier })
    const proven = resolveRedirectUri(parameters, publicClient)
    return parseAuthorizationRequest(parameters, publicClient, proven, open, undefined).scope
  }
  t.strictSame(at('courses:read', 'courses:write'), ['courses:read', 'courses:write'])
  t.strictSame(at('courses:read', 'offline_access'), ['courses:read'])
  t.strictSame(at('email', 'courses:read'), ['openid', 'profile', 'email'], 'one of the three is enough')
})

t.test('prompt keeps the values this server supports', async (t) => {
  t.strictSame(parse({ prompt: 'login  consent create' }).prompt, ['login', 'consent'])
  for (const prompt of ['none', 'none ']) t.strictSame(parse({ prompt }).prompt, ['none'])
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
  t.throws(() => parse({ claims }, publicClient, 'bob'), {
    code: 'login_required',
    detail: { rule: 'oidc-core-3.1.2.2-specific-sub' },
  })
})

t.test('a class of sign-in is requested by acr_values or by a voluntary claim, in this order', async (t) => {
  const claims = JSON.stringify({ id_token: { acr: { values: ['phr'] } } })
  t.strictSame(parse({ claims }).acr, { values: ['phr'], essential: false })
  const both = parse({ claims, acr_values: multiFactor }).acr
  t.strictSame(both, { values: [multiFactor, 'phr'], essential: false })
})

t.test('claims are limited to those of scopes that the client may have', async (t) => {
  const claimsOf = (requested: object, allowed: readonly string[], scope = 'openid') => {
    const { claims, claimScope } = parse(
      { claims: JSON.stringify(requested), scope },
      { ...publicClient, scope: allowed },
    )
    return { ...claims, claimScope }
  }
  const name = { name: null }
  const [without, having] = [
    ['openid', 'email'],
    ['openid', 'profile'],
  ]
  const none = { userinfo: [], idToken: [], claimScope: undefined }
  t.strictSame(claimsOf({ userinfo: name }, without), none)
  t.strictSame(claimsOf({ userinfo: name, id_token: name }, without), none)
  t.strictSame(claimsOf({ userinfo: name }, having), { ...none, userinfo: ['name'], claimScope: ['profile'] })
  t.strictSame(claimsOf({ userinfo: name, id_token: name }, having), {
    userinfo: ['name'],
    idToken: ['name'],
    claimScope: ['profile'],
  })
  const within = claimsOf({ userinfo: name }, having, 'openid profile')
  t.strictSame(within, { ...none, userinfo: ['name'] }, 'its scope is requested already')
  t.notOk('claimScope' in parse({ claims: JSON.stringify({ userinfo: name }), scope: 'openid profile' }))
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
  const simple = 'rfc6749-3.1.2.3-simple-string-match'
  const rejections: readonly (readonly [Record<string, string | undefined>, string])[] = [
    [{ redirect_uri: 'http://127.0.0.1:51004/other' }, simple],
    [{ redirect_uri: 'https://evil.example/callback' }, simple],
    [{ redirect_uri: undefined }, 'oidc-core-3.1.2.1-redirect-uri-required'],
    [{ redirect_uri: undefined, scope: 'courses:read' }, 'rfc6749-3.1.2.3-required-when-ambiguous'],
    [{ response_mode: 'fragment' }, 'oidc-core-3.1.2.6-bad-response-mode'],
    [{ response_mode: 'QUERY' }, 'oidc-core-3.1.2.6-bad-response-mode'],
  ]
  for (const [changes, rule] of rejections) {
    const rejection = { code: 'invalid_request', status: 400, detail: { rule } }
    t.throws(() => resolve(changes), rejection, JSON.stringify(changes))
  }
  const fixed = { client_id: operatorClient.id, redirect_uri: undefined, scope: 'courses:read' }
  t.match(resolve(fixed, operatorClient), { redirectUri: 'https://app.example/cb', redirectUriSent: false })
  t.throws(() => resolve({ ...fixed, scope: 'openid' }, operatorClient), {
    code: 'invalid_request',
    detail: { rule: 'oidc-core-3.1.2.1-redirect-uri-required' },
  })
  const two = { ...operatorClient, redirectUris: ['https://app.example/cb', 'https://app.example/2'] }
  t.throws(() => resolve(fixed, two), { code: 'invalid_request' })
  t.throws(() => resolve({ redirect_uri: 'https://evil.example/callback' }), {
    message: /^redirect_uri is not registered for this client$/,
  })
  t.throws(() => resolve({ redirect_uri: 'http://127.0.0.1:1/other' }), {
    message: 'redirect_uri is not registered for this client; only its port may differ',
  })
  t.throws(() => resolve({ ...fixed, redirect_uri: 'https://app.example:444/cb' }, operatorClient), {
    message: 'redirect_uri is not registered for this client (lychgate client set --redirect-uri)',
    detail: { rule: simple },
  })
  const passedFor = (uri: string) =>
    passedDuring(() => resolve({ redirect_uri: uri })).filter(
      ({ found }) => found === 'redirect_uri is registered',
    )
  t.match(passedFor(redirectUri), [
    { rule: simple, stored: publicClient.redirectUris, received: redirectUri },
  ])
  t.match(passedFor('http://127.0.0.1:9/callback'), [{ rule: 'rfc8252-7.3-any-port' }])
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
