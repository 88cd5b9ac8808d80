import { createServer } from 'node:http'
import t from 'tap'
import { ask, integrate, pageOf, signedIn } from '../helpers/authorization.ts'
import { exchange, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

/** A client that listens, and the form it received. */
const received: { type: string | undefined; fields: URLSearchParams; url: string | undefined }[] = []
const listener = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  received.push({
    type: request.headers['content-type'],
    fields: new URLSearchParams(body),
    url: request.url,
  })
  response.end('<h1>Welcome back</h1>')
})
await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
t.teardown(() => listener.close())
const { port } = listener.address() as { port: number } // it listens on TCP

const redirectUri = `http://127.0.0.1:${port}/cb?kept=1`
const server = await startServer(t)
const client = await register(server, { redirect_uris: ['http://127.0.0.1/cb?kept=1'] })
const fields = { response_mode: 'form_post', redirect_uri: redirectUri }

function membersOf(page: Page): Record<string, string> {
  return Object.fromEntries(
    page.forms[0]?.fields.map(({ name, value }): [string, string] => [name, value]) ?? [],
  )
}

t.test(
  'the response is a page whose button posts code, state and iss to the redirect URI, without any script',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const state = 'a b"c<d>&é'
    const login = pageOf(await ask(server, client, { ...fields, state }, agent))
    const consent = pageOf(await agent.submit(login, alice))
    const page = pageOf(await agent.submit(consent, { decision: 'approve' }))
    t.equal(page.status, 200)
    t.equal(page.headers.get('cache-control'), 'no-store')
    t.equal(page.forms[0]?.action, redirectUri)
    t.equal(page.forms[0]?.method, 'post')
    t.equal(page.forms[0]?.buttons.length, 1)
    const { code = '', ...rest } = membersOf(page)
    t.same(rest, { state, iss: server.issuer })
    t.notMatch(page.url, code)
    agent.cookies.clear()
    t.match(pageOf(await agent.submit(page, {})).html, 'Welcome back')
    const [post] = received.splice(0)
    t.match(post?.type, 'application/x-www-form-urlencoded')
    t.equal(post?.url, '/cb?kept=1')
    t.same(Object.fromEntries(post?.fields ?? []), { code, state, iss: server.issuer })
    t.equal((await exchange(server, client, code, { redirect_uri: redirectUri })).status, 200)
  },
)

t.test('errors are sent the same way: before any page, after deny, and for prompt=none', async (t) => {
  const agent = await signedIn(server, client)
  const consent = pageOf(await ask(server, client, fields, agent))
  const rows: readonly (readonly [Page, string])[] = [
    [pageOf(await ask(server, client, { ...fields, scope: 'nonsense' })), 'invalid_scope'],
    [pageOf(await ask(server, client, { ...fields, prompt: 'none' })), 'login_required'],
    [pageOf(await agent.submit(consent, { decision: 'deny' })), 'access_denied'],
  ]
  for (const [page, error] of rows) {
    t.equal(page.forms[0]?.action, redirectUri)
    const { error_description: description, ...members } = membersOf(page)
    t.same(members, { error, state: 'a-state', iss: server.issuer })
    t.type(description, 'string')
  }
})

t.test('a client that needs no consent gets its code at once', async (t) => {
  const portal = await integrate(server, { consent: 'skip' })
  const agent = await signedIn(server, portal)
  const page = pageOf(await ask(server, portal, { response_mode: 'form_post', prompt: 'none' }, agent))
  t.equal(page.forms[0]?.action, portal.redirectUri)
  const { code = '' } = membersOf(page)
  t.equal((await exchange(server, portal, code)).status, 200)
})

t.test('the page submits itself where scripts run, with a script of this server only', async (t) => {
  const page = pageOf(await ask(server, client, { ...fields, prompt: 'none' }))
  const scripts = [...page.html.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/g)]
  t.equal(scripts.length, 1)
  t.equal(scripts[0]?.[2], '')
  const source = /src="([^"]*)"/.exec(scripts[0]?.[1] ?? '')?.[1] ?? ''
  const script = await fetch(server.origin + source)
  t.match(script.headers.get('content-type'), 'javascript')
  t.match(await script.text(), 'form-post')
})
