import { gzipSync } from 'node:zlib'
import t from 'tap'
import {
  assertAllRejected,
  contentsOfDatabase,
  faultOfRejection,
  type RawRequest,
  send,
} from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'

const file = `${t.testdir()}/lychgate.db`
const server = await startServer(t, { store: `sqlite:${file}` })
const redirectUri = 'http://127.0.0.1:7777/cb'
const post = (body: string | Buffer, type = 'application/json'): RawRequest => ({
  method: 'POST',
  path: '/api/oauth/register',
  headers: [['Content-Type', type]],
  body,
})
const registration = await send(server, post(JSON.stringify({ redirect_uris: [redirectUri] })))
const client = JSON.parse(registration.body) as Record<string, string>
const own = `/api/oauth/register/${client['client_id']}`
const authorization = ['Authorization', `Bearer ${client['registration_access_token']}`] as const
const put = (body: string | Buffer, type = 'application/json'): RawRequest => ({
  method: 'PUT',
  path: own,
  headers: [authorization, ['Content-Type', type]],
  body,
})
const good = JSON.stringify({ client_id: client['client_id'], redirect_uris: [redirectUri] })
const withMembers = (members: string) => `${good.slice(0, -1)},${members}}`
const nested = (depth: number) => withMembers(`"deep":${'['.repeat(depth)}1${']'.repeat(depth)}`)
const before = contentsOfDatabase(file)
const unchanged = () => contentsOfDatabase(file) === before

const malformed: Readonly<Record<string, string | Buffer>> = {
  nothing: '',
  'a space': ' ',
  'half an object': good.slice(0, -5),
  'two objects': `${good}${good}`,
  'a comma too many': withMembers(''),
  'single quotes': good.replaceAll('"', "'"),
  'a comment': `/* */${good}`,
  NaN: withMembers('"a":NaN'),
  'a raw NUL in a string': Buffer.from(withMembers('"client_name":"a\0b"')),
  'a raw NUL behind': Buffer.from(`${good}\0`),
  'a raw newline in a string': withMembers('"client_name":"a\nb"'),
  'UTF-16': Buffer.from(good, 'utf16le'),
  'UTF-32': Buffer.from([...good].map((each) => `\0\0\0${each}`).join('')),
  'bytes that are no UTF-8': Buffer.from(withMembers('"client_name":"caf\xe9"'), 'latin1'),
  'an encoded surrogate': Buffer.concat([
    Buffer.from(good.slice(0, -1)),
    Buffer.from(',"client_name":"\xed\xa0\x80"}', 'latin1'),
  ]),
  'gzip bytes': gzipSync(good),
  'a form': 'client_name=x&redirect_uris=http://127.0.0.1/cb',
  null: 'null',
  true: 'true',
  'a number': '5',
  'a text': '"x"',
  'an array': `[${good}]`,
  'an empty array': '[]',
  'a member __proto__': withMembers('"__proto__":{"redirect_uris":["https://evil.example"]}'),
  'a member constructor.prototype': withMembers('"constructor":{"prototype":{"a":1}}'),
  'an array 10 deep in the object': nested(10),
  'an array 5000 deep': nested(5000),
  'an array that never closes': withMembers(`"a":${'['.repeat(10_000)}`),
}

t.test('a body that is no JSON object is rejected, and nothing is written', async (t) => {
  for (const [about, body] of Object.entries(malformed)) {
    await assertAllRejected(
      t,
      server,
      { [`POST ${about}`]: post(body), [`PUT ${about}`]: put(body) },
      'json',
      400,
    )
  }
  t.ok(unchanged())
})

t.test('a body over the limit is rejected', async (t) => {
  const large = withMembers(`"padding":"${'a'.repeat(70_000)}"`)
  await assertAllRejected(t, server, { POST: post(large), PUT: put(large) }, 'json', 413)
  t.ok(unchanged())
})

t.test('51 redirect URIs are rejected', async (t) => {
  const uris = Array.from({ length: 51 }, (_, n) => `http://127.0.0.1/cb${n}`)
  const body = JSON.stringify({ client_id: client['client_id'], redirect_uris: uris })
  await assertAllRejected(t, server, { POST: post(body), PUT: put(body) }, 'json', 400)
  t.ok(unchanged())
})

t.test(
  'a member of the wrong type is rejected or ignored, with the error code of RFC 7591 and never with a 500',
  async (t) => {
    const names = [
      'redirect_uris',
      'token_endpoint_auth_method',
      'grant_types',
      'response_types',
      'application_type',
      'client_name',
      'client_name#fr',
      'client_uri',
      'logo_uri',
      'scope',
      'contacts',
      'tos_uri',
      'policy_uri',
      'jwks_uri',
      'jwks',
      'software_id',
      'software_version',
      'software_statement',
      'default_max_age',
      'require_auth_time',
      'id_token_signed_response_alg',
      'subject_type',
      'post_logout_redirect_uris',
      'client_secret',
    ]
    const values = [
      5,
      -1,
      1e300,
      true,
      false,
      {},
      { a: 1 },
      [],
      [5],
      [null],
      [[]],
      [{}],
      'x'.repeat(9000),
      '\u0000',
      '\u202e',
    ]
    for (const name of names) {
      for (const value of values) {
        const body = JSON.stringify({
          client_id: client['client_id'],
          redirect_uris: [redirectUri],
          [name]: value,
        })
        const response = await send(server, put(body))
        if (response.status === 200) continue
        const about = `${name} ${JSON.stringify(value).slice(0, 20)}`
        t.equal(faultOfRejection(response), undefined, about)
        t.match(JSON.parse(response.body), { error: /^invalid_(redirect_uri|client_metadata)$/ }, about)
      }
    }
    // Restores what was accepted.
    t.equal((await send(server, put(good))).status, 200)
  },
)

t.test('null counts as an absent member', async (t) => {
  const body = withMembers('"client_name":null,"scope":null,"contacts":null,"default_max_age":null')
  const response = await send(server, put(body))
  t.ok(response.status === 200 || faultOfRejection(response) === undefined)
  t.equal((await send(server, put(good))).status, 200)
})

t.test('a content type other than JSON is rejected', async (t) => {
  const settled = contentsOfDatabase(file)
  const types = [
    'application/x-www-form-urlencoded',
    'text/plain',
    'text/json',
    'application/jsonx',
    'application/json5',
    'application/json-patch+json',
    'multipart/form-data; boundary=x',
    'nonsense',
    '',
  ]
  for (const type of types) {
    await assertAllRejected(
      t,
      server,
      { [`POST ${type}`]: post(good, type), [`PUT ${type}`]: put(good, type) },
      'json',
      415,
    )
  }
  const untyped = { method: 'POST', path: '/api/oauth/register', body: good }
  await assertAllRejected(t, server, { 'no type': untyped }, 'json', 415)
  t.equal(contentsOfDatabase(file), settled)
})

t.test('every spelling of the content type that HTTP allows is accepted', async (t) => {
  for (const type of [
    'application/json',
    'application/json;charset=UTF-8',
    'application/json ; charset="utf-8"',
    'Application/JSON',
    'application/json\t;charset=utf-8',
    ' application/json ',
  ]) {
    t.equal((await send(server, put(good, type))).status, 200, JSON.stringify(type))
    for (const body of [
      'null',
      malformed['a member __proto__'] ?? '',
      withMembers('"redirect_uris":"http://127.0.0.1/cb"'),
    ]) {
      const response = await send(server, put(body, type))
      t.equal(faultOfRejection(response), undefined, JSON.stringify(type))
    }
  }
})

t.test('any client configuration path is 401 without its token, and 404 below it', async (t) => {
  const settled = contentsOfDatabase(file)
  const long = 'a'.repeat(300)
  for (const id of [
    'x',
    '%00',
    '%FF',
    '%zz',
    '..%2f',
    '__proto__',
    long,
    `${client['client_id']}x`,
    '%F0%9F%98%80',
  ]) {
    for (const method of ['GET', 'DELETE']) {
      const path = `/api/oauth/register/${id}`
      const response = await send(server, { method, path, headers: [authorization] })
      t.equal(faultOfRejection(response), undefined, `${method} ${id}`)
      t.ok([400, 401, 404, 414].includes(response.status), `${method} ${id}: ${response.status}`)
    }
  }
  for (const token of [
    '',
    'Bearer',
    'Bearer ',
    'Bearer x',
    `Bearer ${long}`,
    'Basic YTpi',
    `Bearer ${client['registration_access_token']}x`,
    'Bearer \xff',
  ]) {
    const response = await send(server, { method: 'DELETE', path: own, headers: [['Authorization', token]] })
    t.equal(faultOfRejection(response), undefined, token)
    t.equal(response.status, 401, token)
  }
  t.equal(contentsOfDatabase(file), settled)
})
