import t from 'tap'
import { isHttpsRedirect, isLoopbackRedirect, redirectUriMatches } from '../../src/domain/redirect-uri.ts'
import { authorize, register } from '../helpers/flow.ts'
import { fc } from '../helpers/generated.ts'
import { startServer } from '../helpers/server.ts'
import { addClient } from '../helpers/wire.ts'
import { redirectPair, redirectUri } from './near-misses.ts'
import { isLoopback, isPort, matches, takeApart } from './rfc3986.ts'

const numRuns = 10_000

t.test('loopback redirects are recognised by the grammar of RFC 3986', async (t) => {
  let accepted = 0
  fc.assert(
    fc.property(redirectUri, (uri) => {
      const expected = isLoopback(uri)
      if (expected) accepted += 1
      return isLoopbackRedirect(uri) === expected
    }),
    { numRuns },
  )
  t.ok(accepted > 100, `${accepted} were accepted`)
})

t.test('localhost is a loopback host only where it was added', async (t) => {
  fc.assert(
    fc.property(redirectUri, (uri) => {
      const expected = isLoopback(uri, ['127.0.0.1', '[::1]', 'localhost'])
      return isLoopbackRedirect(uri, ['localhost']) === expected
    }),
    { numRuns },
  )
  t.pass()
})

t.test(
  'https redirects are recognised by the grammar of RFC 3986, without userinfo and fragment',
  async (t) => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof(
          redirectUri,
          redirectUri.map((uri) => uri.replace(/^http:/, 'https:')),
        ),
        (uri) => {
          if (!isHttpsRedirect(uri)) return true
          accepted += 1
          const parts = takeApart(uri)
          return (
            parts?.scheme === 'https' &&
            parts.userinfo === undefined &&
            parts.fragment === undefined &&
            (parts.path === '' || parts.path.startsWith('/')) &&
            (parts.port === undefined || isPort(parts.port)) &&
            // A browser goes to the host that is named: no URL parser reads another one.
            new URL(uri).username === ''
          )
        },
      ),
      { numRuns },
    )
    t.ok(accepted > 100, `${accepted} were accepted`)
  },
)

t.test('matching is simple string comparison with a free loopback port', async (t) => {
  let moved = 0
  fc.assert(
    fc.property(redirectPair, fc.boolean(), ([registered, requested], anyPort) => {
      const expected = matches(registered, requested, anyPort)
      if (expected && registered !== requested) moved += 1
      return redirectUriMatches(registered, requested, { anyPort }) === expected
    }),
    { numRuns },
  )
  t.ok(moved > 0, `${moved} pairs match with different ports`)
})

const server = await startServer(t)

t.test(
  '[rfc6749-3.1.2.4-invalid-not-redirected] a redirect URI that does not match never becomes a Location, and one that matches is redirected to as sent',
  async (t) => {
    const native = await register(server, {
      redirect_uris: ['http://127.0.0.1:8080/cb', 'http://[::1]/cb?a=b'],
    })
    const web = await addClient(server, {
      redirectUris: ['https://client.example/cb', 'https://client.example/cb?a=b'],
    })
    const clients = [
      { client: native, registered: ['http://127.0.0.1:8080/cb', 'http://[::1]/cb?a=b'], anyPort: true },
      {
        client: web,
        registered: ['https://client.example/cb', 'https://client.example/cb?a=b'],
        anyPort: false,
      },
    ]
    const sent = fc.oneof(
      { weight: 6, arbitrary: redirectUri },
      { weight: 1, arbitrary: fc.constantFrom(...clients.flatMap(({ registered }) => registered)) },
      { weight: 1, arbitrary: fc.constantFrom('http://[::1]:9/cb?a=b', 'https://client.example:443/cb') },
    )
    let redirected = 0
    await fc.assert(
      fc.asyncProperty(sent, fc.constantFrom(...clients), async (uri, { client, registered, anyPort }) => {
        // A lone surrogate has no encoding: what is sent is another character.
        const requested = uri.toWellFormed()
        const response = await authorize(server, client, { redirect_uri: requested, prompt: 'none' })
        const location = response.headers.get('location')
        // Every page has the choice of a language.
        const text = (await response.text()).replace(/<form method="post" action="\/language">/, '')
        if (!registered.some((one) => matches(one, requested, anyPort))) {
          const isPage = response.headers.get('content-type')?.startsWith('text/html')
          return response.status === 400 && location === null && isPage && !text.includes('<form')
        }
        redirected += 1
        const rest = location?.startsWith(requested) ? location.slice(requested.length) : ''
        return response.status === 303 && /^[?&]error=login_required&/.test(rest) && rest.includes('&iss=')
      }),
      { numRuns: 400 },
    )
    t.ok(redirected > 10, `${redirected} were redirected`)
  },
)
