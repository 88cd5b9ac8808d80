/** The logo of a client, RFC 7591 §2: from this server, fetched once, and an image only. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { initialTokenKind, mintInitialToken } from '../../src/domain/initial-token.ts'
import { ask, pageOf, signedIn } from '../helpers/authorization.ts'
import { authorizationUrl, authorize, register, type TestClient } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { alice, startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev', nodes: 1 })
const origin = `http://127.0.0.1:${await freePort()}`
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const images: Readonly<Record<string, string | Buffer>> = {
  '/logo.png': png,
  '/logo.jpg': Buffer.from('ffd8ffe000104a464946', 'hex'),
  '/logo.webp': Buffer.from('RIFF0000WEBPVP8 '),
  '/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
  '/page.png': '<!doctype html><script>alert(1)</script>',
  '/empty.png': '',
  '/large.png': Buffer.concat([png, Buffer.alloc(70_000)]),
}
const requests: string[] = []
const site = createServer((request, response) => {
  const path = request.url ?? ''
  requests.push(path)
  response.writeHead(path in images ? 200 : 404, { 'content-type': 'image/png' })
  response.end(images[path])
})
await new Promise<void>((resolve) => site.listen(Number(new URL(origin).port), '127.0.0.1', resolve))
t.teardown(() => site.close())

const add = (path: string) =>
  addClient(server, { consent: 'always', description: { logo_uri: origin + path } })

/** The logo as the consent page has it. */
async function logoOf(client: TestClient) {
  const agent = await signedIn(server, client)
  const { html } = pageOf(await agent.open(authorizationUrl(server, client)))
  const [, src] = /<img class="client-logo" src="([^"]*)" alt=""/.exec(html) ?? []
  return { html, url: src === undefined ? undefined : server.origin + src.replaceAll('&amp;', '&') }
}

t.test('[rfc7591-2-display-uris] the consent page shows the logo of a client from this server', async (t) => {
  for (const [path, type] of [
    ['/logo.png', 'image/png'],
    ['/logo.jpg', 'image/jpeg'],
    ['/logo.webp', 'image/webp'],
  ] as const) {
    const { html, url = '' } = await logoOf(await add(path))
    t.notOk(html.includes(origin), 'the browser is not told where it comes from')
    t.strictSame(requests, [], 'a page does not wait for it')
    const response = await fetch(url)
    t.equal(response.headers.get('content-type'), type)
    t.equal(response.headers.get('x-content-type-options'), 'nosniff')
    t.strictSame(Buffer.from(await response.arrayBuffer()), images[path])
    t.equal((await fetch(url)).status, 200)
    t.strictSame(requests.splice(0), [path], 'it is fetched once')
  }
})

t.test(
  '[rfc7591-2-display-uris] the sign-in page shows the logo and the links of a client as the consent page does',
  async (t) => {
    const description = {
      logo_uri: `${origin}/logo.png`,
      policy_uri: 'https://app.example/privacy',
      tos_uri: 'https://legal.example/terms',
    }
    const app = await addClient(server, { consent: 'always', description })
    const other = await addClient(server, { consent: 'always' })
    const shownOn = (html: string) => [
      ...html.matchAll(/<img class="client-logo"[^>]*>|<ul class="links">[\s\S]*?<\/ul>/g),
    ]
    const agent = new UserAgent(server.issuer)
    const first = pageOf(await ask(server, app, {}, agent))
    const failed = pageOf(await agent.submit(first, { ...alice, password: 'wrong' }, first.forms[0]))
    const consent = pageOf(await agent.submit(failed, alice, failed.forms[0]))
    t.match(consent.html, '<title>Connect this app?')
    const expected = shownOn(consent.html).map(([element]) => element)
    t.equal(expected.length, 2)
    t.match(
      expected[1],
      '<a href="https://app.example/privacy" rel="noopener noreferrer nofollow">Privacy policy',
    )
    t.match(expected[1], '<a href="https://legal.example/terms" rel="noopener noreferrer nofollow">Terms')
    for (const page of [first, failed]) {
      t.strictSame(
        shownOn(page.html).map(([element]) => element),
        expected,
      )
      t.match(page.headers.get('content-security-policy'), "default-src 'none'; ")
      t.match(page.headers.get('content-security-policy'), "img-src 'self'")
      t.notOk(page.html.includes(origin), 'the browser is not told where the logo comes from')
    }
    t.strictSame(requests, [], 'no page waits for it')
    const reads = t.capture(server.app, 'knownLogo', server.app.knownLogo)
    t.strictSame(shownOn(pageOf(await ask(server, other)).html), [])
    t.strictSame(reads(), [], 'a client without a logo costs no read')
  },
)

t.test('anything but a small PNG, JPEG or WebP image is not shown, and not asked for again', async (t) => {
  for (const path of ['/logo.svg', '/page.png', '/empty.png', '/large.png', '/missing.png']) {
    const client = await add(path)
    const { url = '' } = await logoOf(client)
    for (const _ of [1, 2]) t.equal((await fetch(url)).status, 404, path)
    t.equal((await logoOf(client)).url, undefined, 'and a page leaves it out')
    t.strictSame(requests.splice(0), [path])
    server.advance(3601)
    t.equal((await fetch(url)).status, 404)
    t.strictSame(requests.splice(0), [path], 'after an hour it is')
  }
  for (const query of ['', '?client_id=x', '?client_id=a&client_id=b'])
    t.ok([400, 404].includes((await fetch(`${server.issuer}/client-logo${query}`)).status), query)
})

t.test(
  '[rfc7591-5-display-uri-origin] a client needs an initial access token to have its logo shown',
  async (t) => {
    const metadata = { logo_uri: `${origin}/logo.png` }
    const open = await register(server, metadata)
    t.equal((await logoOf(open)).url, undefined)
    t.equal((await fetch(`${server.issuer}/client-logo?client_id=${open.id}`)).status, 404)
    t.strictSame(requests, [], 'nothing is fetched')
    const request = { redirects: 'https', pkce: 'required', uses: 1 } as const
    const { token, record } = mintInitialToken(request, Buffer.alloc(32, 1), 60, server.now())
    await server.deps.store.write(insert(initialTokenKind, record))
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ redirect_uris: ['https://app.example/cb'], ...metadata }),
    })
    const { client_id: id, client_secret: secret } = await json(response)
    const client = { id: String(id), secret: String(secret), method: 'client_secret_basic' }
    const { url = '' } = await logoOf({ ...client, redirectUri: 'https://app.example/cb' })
    t.equal((await fetch(url)).status, 200)
  },
)

t.test(
  '[cimd-6.7-logo-prefetch] the logo of a document is fetched before a page needs it, and again with the document',
  async (t) => {
    const documents = await startStandInDocuments(t)
    requests.length = 0
    const { client } = documents.publish({ logo_uri: `${origin}/logo.png` })
    const first = once(site, 'request')
    t.equal((await authorize(server, client)).status, 303)
    await first
    t.strictSame(requests.splice(0), ['/logo.png'], '[cimd-6.7-logo-prefetch] before a page is shown')
    const { html, url = '' } = await logoOf(client)
    t.notOk(html.includes(origin), '[cimd-6.7-logo-prefetch] the browser is not told where it comes from')
    t.ok(url.startsWith(server.issuer))
    const response = await fetch(url)
    t.strictSame(Buffer.from(await response.arrayBuffer()), png)
    t.strictSame(requests, [], '[cimd-6.7-logo-prefetch] it comes from the cache')
    server.advance(86_000)
    await authorize(server, client)
    t.equal((await fetch(url)).status, 200)
    t.strictSame(requests, [])
    server.advance(500)
    const second = once(site, 'request')
    await authorize(server, client)
    await second
    t.strictSame(requests.splice(0), ['/logo.png'], '[cimd-6.7-logo-prefetch] and not longer than a document')
  },
)

t.test('[cimd-6.5-inner-urls] a logo inside a network is not fetched', async (t) => {
  const documents = await startStandInDocuments(t)
  for (const host of ['10.0.0.1', '169.254.169.254', '[fd00::1]']) {
    const { client } = documents.publish({ logo_uri: `https://${host}/logo.png` })
    const { url } = await logoOf(client)
    t.equal(url, undefined, `[cimd-6.5-inner-urls] ${host}`)
    t.match(
      server.log.findLast((line) => line.includes(host)),
      /no public address/,
    )
  }
})
