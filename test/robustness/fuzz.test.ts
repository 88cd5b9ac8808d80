import fc from 'fast-check'
import t from 'tap'
import { authorizationUrl, obtainTokens, register } from '../helpers/flow.ts'
import { faultOfPage, faultOfRefusal, type RawAnswer, type RawRequest, send } from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

/*
 * Requests that are almost right: real names with values of every kind, sent with real credentials among wrong ones.
 * Whatever comes, the answer has the form its endpoint promises, and it is never a fault of the server.
 */

const file = `${t.testdir()}/lychgate.db`
const server = await startServer(t, {
  store: `sqlite:${file}`,
  // Thousands of guesses would only meet the throttle.
  signInThrottle: {
    failuresPerAccountAndPrefix: 1_000_000,
    failuresPerPrefix: 1_000_000,
    failuresPerAccount: 1_000_000,
  },
})
const client = await register(server)
const agent = new UserAgent(server.issuer)
const tokens = await obtainTokens(server, client, { agent })
const cookie = [...agent.cookies].map((pair) => pair.join('=')).join('; ')

const json = ['/api/oauth/token', '/api/oauth/revoke', '/api/oauth/introspect', '/api/oauth/userinfo']
const others = [
  '/api/oauth/register',
  `/api/oauth/register/${client.id}`,
  '/api/courses',
  '/api/account',
  '/api/oauth/jwks',
  '/openapi.json',
  '/.well-known/openid-configuration',
  '/nowhere',
]
const pages = ['/oauth/authorize', '/consent', '/oauth/logout', '/login']

const nasty = fc.constantFrom(
  '',
  ' ',
  '\0',
  '%00',
  '%',
  '\r\n',
  '"',
  "'; drop table grants; --",
  '\\',
  '__proto__',
  'constructor',
  '../..',
  'http://127.0.0.1:51004/callback',
  'http://127.0.0.1@evil.example/',
  'javascript:alert(1)',
  '[object Object]',
  'null',
  'undefined',
  '{}',
  '[]',
  '{"userinfo":{"__proto__":null}}',
  '\u202e\u200b',
  '\ud800',
  '😀'.repeat(50),
  'a'.repeat(9000),
  '-1',
  '1e309',
  '0',
)
const genuine = fc.constantFrom(
  client.id,
  tokens.access_token,
  tokens.refresh_token.slice(0, -1),
  tokens.id_token,
  client.redirectUri,
  'code',
  'S256',
  'openid courses:read',
  'authorization_code',
  'refresh_token',
  'none login',
  'select_account',
  server.issuer,
  'v'.repeat(43),
)
const value = fc.oneof(genuine, genuine, nasty, fc.string({ unit: 'binary', maxLength: 30 }))
const name = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      'client_id',
      'client_secret',
      'grant_type',
      'code',
      'redirect_uri',
      'code_verifier',
      'refresh_token',
      'scope',
      'resource',
      'token',
      'token_type_hint',
      'access_token',
      'response_type',
      'response_mode',
      'state',
      'nonce',
      'prompt',
      'max_age',
      'claims',
      'request',
      'request_uri',
      'id_token_hint',
      'login_hint',
      'ui_locales',
      'code_challenge',
      'code_challenge_method',
      'interaction',
      'csrf',
      'decision',
      'post_logout_redirect_uri',
      'redirect_uris',
      'client_name',
      'grant_types',
      'token_endpoint_auth_method',
      'contacts',
      'jwks',
    ),
  },
  { weight: 1, arbitrary: nasty },
)
const encode = (text: string) => encodeURIComponent(text.toWellFormed())
const pair = fc.oneof(
  { weight: 20, arbitrary: fc.tuple(name, value).map(([key, text]) => `${encode(key)}=${encode(text)}`) },
  { weight: 1, arbitrary: fc.constantFrom('%zz=1', '&&', '=', 'a', 'x=%FF', 'x=\xe9') },
)
const client_id = `client_id=${client.id}`
const request = new URL(authorizationUrl(server, client)).search.slice(1)
const formBody = fc
  .tuple(fc.constantFrom('', client_id, client_id, request), fc.array(pair, { maxLength: 8 }))
  .map(([start, pairs]) => [start, ...pairs].filter(Boolean).join('&'))
const jsonBody = fc.oneof(
  fc
    .tuple(fc.dictionary(name, fc.oneof(value, fc.jsonValue())), fc.boolean())
    .map(([members, isGood]) =>
      JSON.stringify({ ...(isGood && { redirect_uris: [client.redirectUri] }), ...members }),
    ),
  fc.json(),
  fc.string({ unit: 'binary', maxLength: 50 }),
)
const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant('right') },
  { weight: 1, arbitrary: fc.constantFrom('application/json', 'text/plain', 'multipart/form-data', 'x', '') },
)
const method = fc.oneof(
  { weight: 6, arbitrary: fc.constant('POST') },
  { weight: 3, arbitrary: fc.constant('GET') },
  { weight: 1, arbitrary: fc.constantFrom('PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS') },
)
const header = fc.oneof(
  fc.constant<readonly [string, string]>(['Cookie', cookie]),
  fc
    .constantFrom(
      'Bearer x',
      `Bearer ${tokens.access_token}`,
      'Basic YTpi',
      'Basic AA==',
      'Basic JTAwOiUwMA==',
      'Bearer',
    )
    .map((text) => ['Authorization', text] as const),
  fc.constantFrom('cross-site', 'same-origin', 'x').map((text) => ['Sec-Fetch-Site', text] as const),
  fc.constantFrom('text/html', '*/*', 'x').map((text) => ['Accept', text] as const),
  fc.constant(['Origin', 'https://evil.example'] as const),
)

const anyRequest: fc.Arbitrary<RawRequest> = fc
  .record({
    method,
    path: fc.constantFrom(...json, ...json, ...others, ...pages, ...pages),
    query: fc.option(formBody, { freq: 2, nil: undefined }),
    form: formBody,
    members: jsonBody,
    type: contentType,
    headers: fc.array(header, { maxLength: 3 }),
  })
  .map(({ method, path, query, form, members, type, headers }) => {
    const takesJson = path.startsWith('/api/oauth/register')
    const right = takesJson ? 'application/json' : 'application/x-www-form-urlencoded'
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const plain = query?.replaceAll(/[^\x21-\x7e]/g, '_').slice(0, 12_000)
    return {
      method,
      path: plain === undefined ? path : `${path}?${plain}`,
      headers: [...(hasBody ? [['Content-Type', type === 'right' ? right : type] as const] : []), ...headers],
      ...(hasBody && { body: takesJson ? members : form }),
    }
  })

/** What is wrong with the answer, as far as one can say who does not know what was asked. */
function faultOf({ method, path }: RawRequest, answer: RawAnswer): string | undefined {
  const { status, headers, body, text } = answer
  if (status === 0) return 'no answer'
  if (status >= 500) return `status ${status}: ${text}`
  if (/"statusCode"|FST_|at .*\.ts:\d+/.test(body)) return `foreign form: ${body}`
  if (method === 'HEAD' || method === 'OPTIONS') return undefined
  const location = headers['location']
  if (
    location !== undefined &&
    !/^(\/(login|consent|oauth)|http:\/\/127\.0\.0\.1:51004\/callback\?)/.test(location)
  ) {
    return `sent away to ${location}`
  }
  if (status < 400) return undefined
  const isPage =
    pages.some((page) => path.startsWith(page)) && headers['content-type']?.startsWith('text/html')
  const isBrowser = path.startsWith('/nowhere') || status === 404 || status === 405
  if (isBrowser && headers['content-type']?.startsWith('text/html')) return faultOfPage(answer)
  return isPage ? faultOfPage(answer) : faultOfRefusal(answer)
}

t.test('3000 requests of every kind are answered in form, and none is a fault of the server', async (t) => {
  const statuses = new Map<number, number>()
  const requests = fc.sample(anyRequest, { seed: 20_260_101, numRuns: 3000 })
  const started = performance.now()
  const worker = async () => {
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      const answer = await send(server, next)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      const fault = faultOf(next, answer)
      if (fault !== undefined) t.fail(`${fault} for ${JSON.stringify(next).slice(0, 1500)}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  t.ok(performance.now() - started < 30_000)
  for (const status of [200, 303, 400, 401, 403, 404, 405, 415])
    t.ok(statuses.has(status), `${status} was reached`)
  t.comment(JSON.stringify([...statuses].sort()))
  const failed = server.log.filter((line) => line.includes('"level":50'))
  t.strictSame(failed, [])
})

t.test('after all of that a whole flow goes through', async (t) => {
  t.equal((await obtainTokens(server, await register(server), { agent })).token_type, 'Bearer')
})
