import { gzipSync } from 'node:zlib'
import t from 'tap'
import { authorizationUrl, obtainTokens, register } from '../helpers/flow.ts'
import { assertAllRejected, contentsOfDatabase, type RawRequest, send } from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const file = `${t.testdir()}/lychgate.db`
const server = await startServer(t, { store: `sqlite:${file}` })
const client = await register(server)
const agent = new UserAgent(server.issuer)
const tokens = await obtainTokens(server, client, { agent })
const cookie = [...agent.cookies].map((pair) => pair.join('=')).join('; ')
const consent = await agent.open(authorizationUrl(server, client))
if (consent.at !== 'page') throw new Error('no consent page')
const hidden = consent.page.forms[0]?.fields.filter(({ type }) => type === 'hidden') ?? []
const response = hidden.map(({ name, value }) => `${name}=${encodeURIComponent(value)}`).join('&')

/** Every endpoint that reads a form, with a form it accepts or nearly accepts. */
const endpoints: Readonly<Record<string, { form: string; as: 'json' | 'page' }>> = {
  '/api/oauth/token': {
    form: `grant_type=refresh_token&client_id=${client.id}&refresh_token=${tokens.refresh_token}`,
    as: 'json',
  },
  '/api/oauth/revoke': { form: `client_id=${client.id}&token=${tokens.refresh_token}`, as: 'json' },
  '/api/oauth/introspect': { form: `client_id=${client.id}&token=${tokens.refresh_token}`, as: 'json' },
  '/api/oauth/userinfo': { form: `access_token=${tokens.access_token}`, as: 'json' },
  '/oauth/authorize': { form: new URL(authorizationUrl(server, client)).search.slice(1), as: 'page' },
  '/login': { form: `${response}&username=alice&password=x`, as: 'page' },
  '/consent': { form: `${response}&decision=approve`, as: 'page' },
  '/oauth/logout': { form: 'state=s', as: 'page' },
}

const urlencoded = 'application/x-www-form-urlencoded'
const request = (path: string, body: string | Buffer, type: string | undefined = urlencoded): RawRequest => ({
  method: 'POST',
  path,
  headers: [['Cookie', cookie], ...(type === undefined ? [] : [['Content-Type', type] as const])],
  body,
})
const untyped = (path: string, body: string): RawRequest => ({
  method: 'POST',
  path,
  headers: [['Cookie', cookie]],
  body,
})

const malformed = (form: string): Readonly<Record<string, string | Buffer>> => ({
  'a broken percent-encoding': `${form}&x=%zz`,
  'a percent sign at the end': `${form}&x=%`,
  'percent-encoded bytes that are no UTF-8': `${form}&x=%FF%FE`,
  'an encoded surrogate': `${form}&x=%ED%A0%80`,
  'an overlong encoding': `${form}&x=%C0%AF`,
  'an encoded NUL': `${form}&x=a%00b`,
  'NUL in a name': `${form}&a%00b=x`,
  'a raw space in a name': `${form}&a b=x`,
  'a raw line break': `${form}&x=a\r\nb`,
  'a raw NUL': Buffer.from(`${form}&x=\0`),
  'raw UTF-8': Buffer.from(`${form}&x=é`),
  'raw Latin-1': Buffer.from(`${form}&x=é`, 'latin1'),
  'raw bytes beside encoded ones': Buffer.from(`${form}&x=%20é`),
  'UTF-16': Buffer.from(form, 'utf16le'),
  'UTF-16 with a byte order mark': Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(form, 'utf16le')]),
  'a UTF-8 byte order mark': Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(form)]),
  'gzip bytes': gzipSync(form),
  'JSON text': JSON.stringify({ form: 'x y' }),
  '101 parameters': `${form}&${Array.from({ length: 101 }, (_, n) => `p${n}=1`).join('&')}`,
  '101 empty parameters': `${form}${'&'.repeat(101)}`,
  'a value over 8 KiB': `${form}&x=${'a'.repeat(8193)}`,
  'a value over 8 KiB once decoded': `${form}&x=${'%C3%A9'.repeat(1000)}${'a'.repeat(6193)}`,
})

const before = contentsOfDatabase(file)
const unchanged = () => contentsOfDatabase(file) === before

for (const [path, { form, as }] of Object.entries(endpoints)) {
  t.test(
    `a form that is malformed or too large is rejected at ${path}, and nothing is written`,
    async (t) => {
      const requests = Object.entries(malformed(form)).map(
        ([about, body]) => [about, request(path, body)] as const,
      )
      await assertAllRejected(t, server, Object.fromEntries(requests), as, 400)
      t.ok(unchanged())
    },
  )

  t.test(`a repeated parameter is rejected at ${path}, whatever its name`, async (t) => {
    const names =
      path === '/consent'
        ? // These scopes may repeat, and unknown parameters are allowed.
          ['interaction', 'csrf', 'decision']
        : ['client_id', 'token', 'state', 'unknown', '__proto__', 'constructor', 'hasOwnProperty', '%20']
    for (const name of names) {
      const response = await send(server, request(path, `${form}&${name}=1&${name}=1`))
      // Once its redirect URI is verified, the authorization endpoint sends the error to the client instead.
      const isTold =
        path === '/oauth/authorize' && response.headers['location']?.includes('error=invalid_request')
      t.ok(isTold || response.status === 400, `${name}: ${response.status}`)
    }
    t.ok(unchanged())
  })

  t.test(`a body over the limit is rejected at ${path}`, async (t) => {
    const requests = {
      'a byte too many': request(path, `${form}&x=${'a'.repeat(16_384 - form.length)}`.slice(0, 16_385)),
      'a megabyte': request(path, 'a'.repeat(1_000_000)),
    }
    await assertAllRejected(t, server, requests, as, 413)
    t.ok(unchanged())
  })

  t.test(`a content type other than a form is rejected at ${path}`, async (t) => {
    const requests = {
      JSON: request(path, JSON.stringify(Object.fromEntries(new URLSearchParams(form))), 'application/json'),
      'JSON with a charset': request(path, '{}', 'application/json; charset=utf-8'),
      'plain text': request(path, form, 'text/plain'),
      multipart: request(
        path,
        `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n`,
        'multipart/form-data; boundary=x',
      ),
      'multipart without a boundary': request(path, form, 'multipart/form-data'),
      'a longer name': request(path, form, 'application/x-www-form-urlencodedx'),
      'a prefix of the name': request(path, form, 'application/x-www-form'),
      nonsense: request(path, form, 'nonsense'),
      'a slash': request(path, form, '/'),
      'two types': request(path, form, 'application/json, application/x-www-form-urlencoded'),
      octets: request(path, form, 'application/octet-stream'),
      'no type': untyped(path, form),
    }
    await assertAllRejected(t, server, requests, as, 415)
    t.ok(unchanged())
  })
}

t.test('every spelling of the content type that HTTP allows is accepted', async (t) => {
  const spellings = [
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded;charset=UTF-8',
    'application/x-www-form-urlencoded; charset=utf-8',
    'application/x-www-form-urlencoded ;charset=utf-8',
    'application/x-www-form-urlencoded ; charset="utf-8"',
    'application/x-www-form-urlencoded\t;\tcharset=utf-8',
    'Application/X-WWW-Form-Urlencoded',
    'APPLICATION/X-WWW-FORM-URLENCODED; CHARSET=UTF-8',
    '  application/x-www-form-urlencoded  ',
    'application/x-www-form-urlencoded;',
  ]
  const { form } = endpoints['/api/oauth/introspect'] ?? { form: '' }
  for (const type of spellings) {
    const good = await send(server, request('/api/oauth/introspect', form, type))
    t.match(good, { status: 200, body: /"active":true/ }, JSON.stringify(type))
    // The result must not depend on the spelling.
    const repeated = await send(server, request('/api/oauth/introspect', `${form}&token=x`, type))
    t.match(repeated, { status: 400, body: /invalid_request/ }, JSON.stringify(type))
  }
})

t.test('a form in a charset other than UTF-8 is rejected', async (t) => {
  const { form } = endpoints['/api/oauth/introspect'] ?? { form: '' }
  for (const charset of ['utf-16', 'iso-8859-1', 'nonsense', '']) {
    const { status, body } = await send(
      server,
      request('/api/oauth/introspect', form, `${urlencoded}; charset=${charset}`),
    )
    // Percent-encoded ASCII means the same in every charset; it is parsed, or rejected.
    t.ok(status === 200 ? body.includes('"active":true') : status === 400 || status === 415, charset)
    const foreign = Buffer.from(`${form}&x=é`, 'latin1')
    const rejected = await send(
      server,
      request('/api/oauth/introspect', foreign, `${urlencoded}; charset=${charset}`),
    )
    t.ok([400, 415].includes(rejected.status), charset)
  }
})

t.test('a compressed form is rejected', async (t) => {
  for (const [path, { form, as }] of Object.entries(endpoints)) {
    const zipped: RawRequest = {
      method: 'POST',
      path,
      headers: [
        ['Cookie', cookie],
        ['Content-Type', urlencoded],
        ['Content-Encoding', 'gzip'],
      ],
      body: gzipSync(form),
    }
    await assertAllRejected(t, server, { [path]: zipped }, as, 400)
  }
  t.ok(unchanged())
})

t.test('an empty body is a request without parameters', async (t) => {
  for (const [path, { as }] of Object.entries(endpoints)) {
    for (const type of [urlencoded, undefined]) {
      const empty = {
        ...request(path, ''),
        headers: type === undefined ? [] : [['Content-Type', type] as const],
      }
      const { status, headers } = await send(server, empty)
      const expected = path === '/oauth/logout' ? [200, 303] : [400, 401]
      t.ok(expected.includes(status), `${path} with ${type}: ${status}`)
      if (status >= 400) t.match(headers['content-type'], as === 'json' ? 'application/json' : 'text/html')
    }
  }
  t.ok(unchanged())
})

t.test('after all of that the same request succeeds', async (t) => {
  t.ok(unchanged())
  const { form } = endpoints['/api/oauth/token'] ?? { form: '' }
  t.equal((await send(server, request('/api/oauth/token', form))).status, 200)
  t.notOk(unchanged(), 'and the comparison notices it')
})
