import t from 'tap'
import { fc } from '../helpers/generated.ts'
import { startServer } from '../helpers/server.ts'

type Json = Record<string, unknown>

const server = await startServer(t)
const endpoint = `${server.issuer}/api/oauth/register`

async function ask(url: string, method: string, body?: Json, token?: string) {
  const response = await fetch(url, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Json }
}

const text = fc.oneof(
  fc.constantFrom(
    'A tool',
    'Verktyg \u00e5',
    '\u4e2d\u6587',
    '<b>"&',
    '  padded ',
    '__proto__',
    'x'.repeat(200),
  ),
  fc.string({ unit: fc.constantFrom(...'ab \u00e5\u4e2d\'"<>&{}\u{1f600}'), minLength: 1, maxLength: 12 }),
)
const uri = fc.oneof(fc.webUrl(), fc.constantFrom('https://tool.example/a%20b', 'http://tool.example'))
const loopback = fc
  .tuple(
    fc.constantFrom('127.0.0.1', '[::1]'),
    fc.constantFrom('', ':1', ':65535'),
    fc.constantFrom('/', '/cb', '/cb?a=b%20c'),
  )
  .map(([host, port, path]) => `http://${host}${port}${path}`)

/** Valid metadata, each member present or not. */
const right = fc
  .record(
    {
      redirect_uris: fc.array(loopback, { minLength: 1, maxLength: 4 }),
      client_name: text,
      'client_name#sv': text,
      'tos_uri#de-CH': uri,
      client_uri: uri,
      logo_uri: uri,
      policy_uri: uri,
      contacts: fc.array(text, { maxLength: 3 }),
      scope: fc.constantFrom('openid', 'openid  email', 'email openid email', 'openid unknown'),
      grant_types: fc.constantFrom(['authorization_code'], ['refresh_token', 'authorization_code']),
      response_types: fc.constant(['code']),
      application_type: fc.constantFrom('native', 'web'),
      token_endpoint_auth_method: fc.constantFrom('none', 'client_secret_post', 'client_secret_basic'),
      id_token_signed_response_alg: fc.constantFrom('RS256', 'ES256', 'EdDSA'),
      default_max_age: fc.nat(100_000),
      require_auth_time: fc.boolean(),
      post_logout_redirect_uris: fc.array(loopback, { maxLength: 2 }),
      software_id: text,
      unknown_member: fc.jsonValue() as fc.Arbitrary<unknown>,
    },
    { requiredKeys: ['redirect_uris'] },
  )
  .map((members): Json => ({ ...members }))
const members = fc.constantFrom(
  'redirect_uris',
  'client_name',
  'client_name#sv',
  'client_uri',
  'contacts',
  'scope',
  'grant_types',
  'response_types',
  'application_type',
  'token_endpoint_auth_method',
  'id_token_signed_response_alg',
  'default_max_age',
  'require_auth_time',
  'post_logout_redirect_uris',
  'software_id',
  'jwks',
  'subject_type',
)
const wrong = fc.oneof(
  fc.constantFrom<unknown>(null, 5, -1, 0.5, true, {}, [], [5], ['x'], '', ' ', 'x', 'x'.repeat(201)),
  fc.constantFrom(
    '\u202eloot',
    '\u200b',
    '\0',
    '\ud800',
    'javascript:alert(1)',
    'https://user@tool.example/',
    '/x',
  ),
  fc.constantFrom(['https://evil.example/'], ['http://127.0.0.1/cb', 'http://127.1/cb'], ['implicit']),
  fc.jsonValue() as fc.Arbitrary<unknown>,
)
const metadata = fc
  .tuple(right, fc.array(fc.tuple(members, wrong), { maxLength: 2 }))
  .map(([said, replaced]): Json => ({ ...said, ...Object.fromEntries(replaced) }))

/** Members that the server may change, RFC 7591 §3.2.1. */
const substituted = ['application_type', 'scope', 'grant_types', 'response_types', 'unknown_member', 'jwks']

const sorted = (members: Json) =>
  JSON.stringify(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1)))

t.test(
  '[rfc7591-3.2.1-all-metadata-returned] [rfc7592-3-all-metadata] registration echoes what it accepts, and RFC 7592 reads, replaces and reads it again unchanged',
  async (t) => {
    let [accepted, rejected] = [0, 0]
    await fc.assert(
      fc.asyncProperty(metadata, async (sent) => {
        const registered = await ask(endpoint, 'POST', sent)
        if (registered.status !== 201) {
          rejected += 1
          const { error, error_description: description } = registered.body
          return (
            registered.status === 400 &&
            ['invalid_redirect_uri', 'invalid_client_metadata'].includes(String(error)) &&
            /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(String(description))
          )
        }
        accepted += 1
        const { client_secret: secret, ...told } = registered.body
        for (const [name, value] of Object.entries(sent)) {
          const isAbsent = value === null || (typeof value === 'string' && value.trim() === '')
          const isEmpty = Array.isArray(value) && value.length === 0
          if (isAbsent || isEmpty || substituted.includes(name)) continue
          if (JSON.stringify(told[name]) !== JSON.stringify(value)) return false
        }
        const [own, token] = [
          String(told['registration_client_uri']),
          String(told['registration_access_token']),
        ]
        const read = await ask(own, 'GET', undefined, token)
        if (read.status !== 200 || sorted(read.body) !== sorted(told)) return false
        const {
          registration_access_token: _token,
          registration_client_uri: _uri,
          client_id_issued_at: _at,
          client_secret_expires_at: _expires,
          ...mine
        } = told
        const withSecret = secret === undefined ? mine : { ...mine, client_secret: secret }
        const replaced = await ask(own, 'PUT', withSecret, token)
        if (replaced.status !== 200 || sorted(replaced.body) !== sorted(told)) return false
        const again = await ask(own, 'GET', undefined, token)
        return sorted(again.body) === sorted(told)
      }),
      { numRuns: 250 },
    )
    t.ok(accepted > 20 && rejected > 20, `${accepted} accepted, ${rejected} refused`)
  },
)

t.test('a rejected replacement changes nothing', async (t) => {
  const { body: told } = await ask(endpoint, 'POST', {
    redirect_uris: ['http://127.0.0.1/cb'],
    client_name: 'Kept',
  })
  const [own, token] = [String(told['registration_client_uri']), String(told['registration_access_token'])]
  let before = sorted((await ask(own, 'GET', undefined, token)).body)
  let [replaced, rejected] = [0, 0]
  await fc.assert(
    fc.asyncProperty(metadata, fc.nat(4), async (sent, way) => {
      const isOwn = way > 0
      const update = {
        ...sent,
        token_endpoint_auth_method: undefined,
        client_id: isOwn ? told['client_id'] : 'client_other',
      }
      const { status } = await ask(own, 'PUT', update, token)
      const after = sorted((await ask(own, 'GET', undefined, token)).body)
      if (status === 200) {
        before = after
        replaced += 1
      } else rejected += 1
      return (status === 200 || status === 400) && (isOwn || status === 400) && before === after
    }),
    { numRuns: 150 },
  )
  t.ok(replaced > 10 && rejected > 20, `${replaced} replaced, ${rejected} refused`)
})
