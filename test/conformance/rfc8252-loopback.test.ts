import t from 'tap'
import {
  ask,
  assertErrorPage,
  callback,
  integrate,
  pageOf,
  sentAway,
  signedIn,
} from '../helpers/authorization.ts'
import { authorize, exchange, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected } from '../helpers/wire.ts'

const server = await startServer(t)
const user = await signedIn(server, await register(server))
const v4 = await register(server, { redirect_uris: ['http://127.0.0.1:1234/cb'] })
const withoutPort = await register(server, { redirect_uris: ['http://127.0.0.1/cb'] })
const v6 = await register(server, { redirect_uris: ['http://[::1]:1234/cb?a=b'] })
const named = await register(server, { redirect_uris: ['http://localhost:1234/cb'] })

t.test(
  '[rfc8252-7.3-any-port] a loopback redirect goes to the port of the request, whichever was registered',
  async (t) => {
    for (const who of [v4, withoutPort]) {
      for (const port of [':5678', ':80', ':1', ':65535', ':1234', '']) {
        const redirectUri = `http://127.0.0.1${port}/cb`
        const asked = await authorize(server, who, { redirect_uri: redirectUri, scope: 'nonsense' })
        t.equal(asked.headers.get('location')?.startsWith(`${redirectUri}?error=`), true, redirectUri)
      }
    }
    const redirectUri = 'http://127.0.0.1:5678/cb'
    const page = pageOf(await ask(server, v4, { redirect_uri: redirectUri }, user))
    const landing = await user.submit(page, { decision: 'approve' })
    t.equal(landing.at === 'redirect' && landing.location.origin, 'http://127.0.0.1:5678')
    // The token endpoint needs the port that was used, not the registered one.
    const code = sentAway(landing)['code'] ?? ''
    await assertRejected(t, await exchange(server, v4, code), 'invalid_grant')
    t.equal((await exchange(server, v4, code, { redirect_uri: redirectUri })).status, 200)
  },
)

t.test('[rfc8252-7.3-port-only-varies] nothing but the port of a loopback redirect may differ', async (t) => {
  const wrong = [
    'http://127.0.0.1:1234/other',
    'http://127.0.0.1:1234/',
    'http://127.0.0.1:1234',
    'http://127.0.0.1:1234/cb?x=1',
    'http://127.0.0.1:1234/cb#',
    'http://127.0.0.1:1234/CB',
    'https://127.0.0.1:1234/cb',
    'http://127.0.0.1.evil.test:1234/cb',
    'http://127.0.0.1:1234.evil.test/cb',
    'http://127.0.0.1:1234@evil.test/cb',
    'http://evil.test@127.0.0.1:1234/cb',
    'http://127.1:1234/cb',
    'http://2130706433:1234/cb',
    'http://0x7f.1:1234/cb',
    'http://0177.0.0.1:1234/cb',
    'http://127.0.0.2:1234/cb',
    'http://0.0.0.0:1234/cb',
    'http://127.0.0.1:/cb',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:01234/cb',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:+80/cb',
    'http://127.0.0.1:8\t0/cb',
    'http://１２７.0.0.1/cb',
  ]
  for (const redirectUri of wrong) {
    for (const who of [v4, withoutPort])
      await assertErrorPage(
        t,
        await authorize(server, who, { redirect_uri: redirectUri }),
        'invalid_request',
        redirectUri,
      )
  }
})

t.test(
  '[rfc8252-7.3-ipv6-literal] [::1] follows the same rule, and 127.0.0.1, [::1] and localhost are three different hosts',
  async (t) => {
    const hosts = [
      { who: v4, host: '127.0.0.1', rest: '/cb' },
      { who: v6, host: '[::1]', rest: '/cb?a=b' },
      { who: named, host: 'localhost', rest: '/cb' },
    ]
    for (const { who, host, rest } of hosts) {
      for (const port of [':5678', ':80', '']) {
        const redirectUri = `http://${host}${port}${rest}`
        const asked = await authorize(server, who, { redirect_uri: redirectUri, scope: 'nonsense' })
        t.equal(asked.headers.get('location')?.startsWith(redirectUri), true, redirectUri)
      }
      const others = [
        ...hosts.map((each) => each.host),
        '[0:0:0:0:0:0:0:1]',
        '[::ffff:127.0.0.1]',
        'LOCALHOST',
        'localhost.',
      ]
      for (const other of others.filter((each) => each !== host)) {
        const redirectUri = `http://${other}:1234${rest}`
        await assertErrorPage(
          t,
          await authorize(server, who, { redirect_uri: redirectUri }),
          'invalid_request',
          `${redirectUri} for ${host}`,
        )
      }
    }
    const page = pageOf(await ask(server, v6, { redirect_uri: 'http://[::1]:5678/cb?a=b' }, user))
    const landing = await user.submit(page, { decision: 'approve' })
    t.match(landing.at === 'redirect' && landing.location.href, /^http:\/\/\[::1\]:5678\/cb\?a=b&code=/)
  },
)

t.test(
  '[rfc9700-2.1-exact-match-all-clients] the port of a confidential client that is not native must match',
  async (t) => {
    const portal = await integrate(server)
    const website = await integrate(
      server,
      { redirectUris: ['http://127.0.0.1:1234/cb'] },
      { applicationType: 'web' },
    )
    t.equal((await authorize(server, portal)).status, 303)
    t.equal((await authorize(server, website)).status, 303)
    const rows = [
      [portal, callback.replace('.example', '.example:8443')],
      [portal, callback.replace('.example', '.example:443')],
      [portal, `${callback}/`],
      [portal, callback.toUpperCase()],
      [website, 'http://127.0.0.1:5678/cb'],
      [website, 'http://127.0.0.1/cb'],
    ] as const
    for (const [who, redirectUri] of rows)
      await assertErrorPage(
        t,
        await authorize(server, who, { redirect_uri: redirectUri }),
        'invalid_request',
        redirectUri,
      )
  },
)
