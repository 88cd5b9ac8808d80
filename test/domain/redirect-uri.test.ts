import t from 'tap'
import {
  hasResponseParameter,
  isHttpsRedirect,
  isLoopbackRedirect,
  isLoopbackUri,
  redirectUriMatches,
} from '../../src/domain/redirect-uri.ts'
import { fc } from '../helpers/generated.ts'

t.test('a loopback redirect has an IP literal, an optional port and a path', async (t) => {
  const accepted = [
    'http://127.0.0.1/',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:1/cb',
    'http://127.0.0.1:65535/cb',
    'http://127.0.0.1:80/cb',
    'http://[::1]/cb',
    'http://[::1]:53999/callback',
    'http://127.0.0.1:8080/A/b?x=%20',
    'http://127.0.0.1:8080/a/../b//c;d=e,f:g@h?x=/?&y=',
    'http://127.0.0.1:8080/*',
    'http://127.0.0.1:8080/cb?',
  ]
  for (const uri of accepted) t.ok(isLoopbackRedirect(uri), uri)
})

t.test('everything that only resembles a loopback redirect is rejected', async (t) => {
  const rejected = [
    '',
    '/cb',
    '//127.0.0.1/cb',
    '127.0.0.1:80/cb',
    'http:/127.0.0.1/cb',
    'http:127.0.0.1/cb',
    'http:\\\\127.0.0.1/cb',
    'HTTP://127.0.0.1/cb',
    'Http://127.0.0.1/cb',
    'https://127.0.0.1/cb',
    ' http://127.0.0.1/cb',
    'http://127.0.0.1/cb ',
    'http://127.0.0.1/cb\n',
    '\thttp://127.0.0.1/cb',
    'ht\ttp://127.0.0.1/cb',
    'http://127.0.0.1',
    'http://127.0.0.1:80',
    'http://127.0.0.1?x=1',
    'http://127.0.0.1:/cb',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:00080/cb',
    'http://127.0.0.1:080/cb',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:99999/cb',
    'http://127.0.0.1:100000/cb',
    'http://127.0.0.1:-1/cb',
    'http://127.0.0.1:+80/cb',
    'http://127.0.0.1:8e1/cb',
    'http://127.0.0.1:*/cb',
    'http://127.0.0.1:80:81/cb',
    'http://127.1/cb',
    'http://0x7f.1/cb',
    'http://0x7f000001/cb',
    'http://2130706433/cb',
    'http://017700000001/cb',
    'http://127.0.0.2/cb',
    'http://127.0.0.01/cb',
    'http://127.0.0.1./cb',
    'http://127.0.0.1.evil.test/cb',
    'http://127.0.0.10/cb',
    'http://1127.0.0.1/cb',
    'http://127a0b0c1/cb',
    'http://127.0.0.1@evil.test/cb',
    'http://evil@127.0.0.1/cb',
    'http://user:pass@127.0.0.1/cb',
    'http://@127.0.0.1/cb',
    'http://127.0.0.1:80@evil.test/cb',
    'http://127.0.0.1%2eevil.test/cb',
    'http://127.0.0.1\\@evil.test/cb',
    'http://127.0.0.1\\cb',
    'http://127.0.0.1/cb\\x',
    'http://127.0.0.1/cb#',
    'http://127.0.0.1/cb#x',
    'http://127.0.0.1/cb?x#y',
    'http://127.0.0.1#/cb',
    'http://127.0.0.1/c b',
    'http://127.0.0.1/c\tb',
    'http://127.0.0.1/c\r\nb',
    'http://127.0.0.1/c\u0000b',
    'http://127.0.0.1/c\u007fb',
    'http://127.0.0.1/caf\u00e9',
    'http://127.0.0.1/\u202ecb',
    'http://\uff11\uff12\uff17.0.0.1/cb',
    'http://127\u30020.0.1/cb',
    'http://127.0.0.1/cb%',
    'http://127.0.0.1/cb%2',
    'http://127.0.0.1/cb%zz',
    'http://127.0.0.1/<cb>',
    'http://127.0.0.1/"cb"',
    'http://127.0.0.1/{cb}',
    'http://::1/cb',
    'http://[::1/cb',
    'http://[::1]x/cb',
    'http://[::1%25lo]/cb',
    'http://[0:0:0:0:0:0:0:1]/cb',
    'http://[::ffff:127.0.0.1]/cb',
    'http://[::01]/cb',
    'http://[::2]/cb',
    'http://localhost/cb',
    'http://localhost:80/cb',
    'http://app.example/cb',
    'https://app.example/cb',
    'com.example.app:/cb',
    'myapp:/cb',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'urn:ietf:wg:oauth:2.0:oob',
    `http://127.0.0.1/${'a'.repeat(2048)}`,
  ]
  for (const uri of rejected) t.notOk(isLoopbackRedirect(uri), JSON.stringify(uri))
})

t.test('localhost is a loopback redirect only where it was added', async (t) => {
  t.ok(isLoopbackRedirect('http://localhost:80/cb', ['localhost']))
  t.ok(isLoopbackRedirect('http://127.0.0.1:80/cb', ['localhost']))
  for (const host of ['LOCALHOST', 'localhost.', 'localhost.evil.test', 'xlocalhost', 'foo.localhost']) {
    t.notOk(isLoopbackRedirect(`http://${host}/cb`, ['localhost']), host)
  }
})

t.test('a loopback redirect of an operator may lack a path, and nothing else', async (t) => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    for (const rest of ['', ':3000', '/cb', ':3000/cb', '?x=1', ':3000?x=1'])
      t.ok(isLoopbackUri(`http://${host}${rest}`), host + rest)
    t.notOk(isLoopbackRedirect(`http://${host}:3000`, ['localhost']), host)
    t.ok(redirectUriMatches(`http://${host}:3000`, `http://${host}:4000`, { anyPort: true }), host)
    t.notOk(redirectUriMatches(`http://${host}:3000`, `http://${host}:3000/`, { anyPort: true }), host)
    for (const rest of ['.', '@evil.example', '.evil.example', '#', ':', ':0', 'x', '\\', ' '])
      t.notOk(isLoopbackUri(`http://${host}${rest}`), host + rest)
  }
  for (const uri of ['https://localhost', 'http://LOCALHOST', 'http://127.1', 'http://evil@localhost'])
    t.notOk(isLoopbackUri(uri), uri)
})

t.test('an https redirect is absolute, with a host, and its path may be empty', async (t) => {
  for (const uri of [
    'https://app.example/cb',
    'https://app.example/',
    'https://app.example',
    'https://app.example:8443',
    'https://app.example?x=1',
    'https://app.example:8443/cb?x=%20',
    'https://[2001:db8::1]/cb',
    'https://xn--bcher-kva.example/cb',
  ]) {
    t.ok(isHttpsRedirect(uri), uri)
  }
  for (const uri of [
    'http://app.example/cb',
    'HTTPS://app.example/cb',
    'https:///cb',
    'https://user@app.example/cb',
    'https://user:80@app.example/cb',
    'https://app.example:0/cb',
    'https://app.example:65536/cb',
    'https://app.example:/cb',
    'https://999.0.0.1/cb',
    'https://[::::]/cb',
    'https://app.example#',
    'https://app.example#x',
    'https://app.example@evil.example',
    'https://',
    'https://?x=1',
    'https://app.example/cb#',
    'https://app.example/cb#x',
    'https://app.example\\cb',
    'https://app.example/c b',
    'https://app.example/cb\n',
    'https://b\u00fccher.example/cb',
    'https://*.app.exa mple/cb',
    `https://app.example/${'a'.repeat(2048)}`,
    '//app.example/cb',
  ]) {
    t.notOk(isHttpsRedirect(uri), JSON.stringify(uri))
  }
})

t.test('a redirect has up to 2,048 characters', async (t) => {
  for (const [prefix, accepts] of [
    ['https://app.example/', isHttpsRedirect],
    ['http://127.0.0.1/', isLoopbackRedirect],
  ] as const) {
    t.ok(accepts(prefix.padEnd(2048, 'a')))
    t.notOk(accepts(prefix.padEnd(2049, 'a')))
  }
})

t.test('a query that has a parameter of the response is found', async (t) => {
  for (const name of ['code', 'state', 'iss', 'error', 'error_description', 'error_uri']) {
    t.ok(hasResponseParameter(`https://app.example/cb?a=b&${name}=x`), name)
    t.ok(hasResponseParameter(`https://app.example/cb?${name}`), name)
    t.notOk(hasResponseParameter(`https://app.example/${name}?a=${name}`), name)
  }
  t.notOk(hasResponseParameter('https://app.example/cb?co?de=x'), 'a question mark is part of a name')
})

t.test('for native clients the port of a loopback redirect may differ on either side', async (t) => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    const spelled = ['', ':80', ':1234', ':65535'].map((port) => `http://${host}${port}/cb?a=b`)
    for (const registered of spelled) {
      for (const requested of spelled) {
        t.ok(redirectUriMatches(registered, requested, { anyPort: true }), `${registered} ${requested}`)
        t.equal(redirectUriMatches(registered, requested, { anyPort: false }), registered === requested)
      }
    }
  }
})

t.test('nothing but the port may differ', async (t) => {
  const registered = 'http://127.0.0.1:1234/cb'
  for (const requested of [
    'http://127.0.0.1:1234/cb/',
    'http://127.0.0.1:1234/CB',
    'http://127.0.0.1:1234/%63b',
    'http://127.0.0.1:1234/a/../cb',
    'http://127.0.0.1:1234/cb?',
    'http://127.0.0.1:1234/cb?x=1',
    'http://127.0.0.1:1234/cb#',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:/cb',
    'http://u@127.0.0.1:1234/cb',
    'https://127.0.0.1:1234/cb',
    'HTTP://127.0.0.1:1234/cb',
    'http://[::1]:1234/cb',
    'http://localhost:1234/cb',
    'http://127.1:1234/cb',
    'http://2130706433:1234/cb',
    'http://127.0.0.2:1234/cb',
    'http://127.0.0.1.evil.test:1234/cb',
    'http://127.0.0.1:1234@evil.test/cb',
    '',
  ]) {
    t.notOk(redirectUriMatches(registered, requested, { anyPort: true }), requested)
  }
  t.notOk(redirectUriMatches('http://localhost/cb', 'http://127.0.0.1/cb', { anyPort: true }))
  t.notOk(redirectUriMatches('http://[::1]/cb', 'http://127.0.0.1/cb', { anyPort: true }))
})

t.test('the port of an https redirect never varies', async (t) => {
  const registered = 'https://app.example/cb'
  t.ok(redirectUriMatches(registered, registered, { anyPort: true }))
  t.notOk(redirectUriMatches(registered, 'https://app.example:443/cb', { anyPort: true }))
})

const hosts = [
  '127.0.0.1',
  '[::1]',
  'localhost',
  '127.1',
  '127.0.0.2',
  '127.0.0.1.evil.test',
  'evil@127.0.0.1',
]
const ports = ['', ':', ':0', ':1', ':80', ':080', ':65535', ':65536', ':x']
const paths = [
  '',
  '/',
  '/cb',
  '/CB',
  '/cb/',
  '/cb?',
  '/cb?x=1',
  '/cb#',
  '/c%62',
  '/%',
  '/c b',
  '/a:80/b',
  '/a\\b',
]
const schemes = ['http://', 'http://', 'http://', 'https://', 'HTTP://']
const parts = fc.tuple(
  fc.constantFrom(...schemes),
  fc.constantFrom(...hosts),
  fc.constantFrom(...ports),
  fc.constantFrom(...paths),
)
// Two redirects that mostly share their parts except the port: independent ones would hardly ever match.
const pair = fc
  .tuple(parts, parts, fc.array(fc.nat(9), { minLength: 4, maxLength: 4 }))
  .map(([one, other, dice]) => {
    const mixed = one.map((part, at) => (at !== 2 && (dice[at] ?? 0) < 8 ? part : other[at]))
    return [one.join(''), mixed.join('')] as const
  })

/** The rule again, implemented by splitting the text at its delimiters instead of by one pattern. */
function oracle(registered: string, requested: string): boolean {
  if (registered === requested) return true
  const [a, b] = [takeApart(registered), takeApart(requested)]
  return a !== undefined && b !== undefined && a.host === b.host && a.path === b.path
}

function takeApart(uri: string): { host: string; path: string } | undefined {
  const [scheme, empty, authority = '', ...segments] = uri.split('/')
  if (scheme !== 'http:' || empty !== '') return undefined
  const host = ['127.0.0.1', '[::1]', 'localhost'].find((name) => authority.startsWith(name))
  if (host === undefined) return undefined
  const port = authority.slice(host.length)
  const number = Number.parseInt(port.slice(1), 10)
  if (port !== '' && (port !== `:${number}` || number < 1 || number > 65535)) return undefined
  const path = segments.map((segment) => `/${segment}`).join('')
  const broken = [...path].some((character) => ' \\#'.includes(character)) || /%(?![0-9a-f]{2})/i.test(path)
  return broken ? undefined : { host, path }
}

t.test('matching agrees with a second implementation of the rule', async (t) => {
  let matches = 0
  fc.assert(
    fc.property(pair, ([registered, requested]) => {
      const expected = oracle(registered, requested)
      if (expected && registered !== requested) matches++
      return redirectUriMatches(registered, requested, { anyPort: true }) === expected
    }),
    { numRuns: 10000 },
  )
  t.ok(matches > 20, `${matches} of the pairs match with different ports`)
})

t.test('a valid redirect matches itself under every port, and no other host, path or query', async () => {
  const port = fc.option(fc.integer({ min: 1, max: 65535 }), { nil: undefined })
  const path = fc.webPath().map((text) => (text.startsWith('/') ? text : `/${text}`))
  const uri = fc
    .tuple(fc.constantFrom('127.0.0.1', '[::1]'), port, path)
    .map(([host, number, rest]) => `http://${host}${number === undefined ? '' : `:${number}`}${rest}`)
  fc.assert(
    fc.property(uri, uri, port, (one, other, number) => {
      const moved = one.replace(/(?<=http:\/\/(127\.0\.0\.1|\[::1\]))(:\d+)?/, number ? `:${number}` : '')
      return (
        isLoopbackRedirect(one) &&
        redirectUriMatches(one, moved, { anyPort: true }) &&
        redirectUriMatches(one, other, { anyPort: true }) === oracle(one, other)
      )
    }),
    { numRuns: 1000 },
  )
})
