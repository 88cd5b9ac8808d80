/** What an error page says: the reason where an app is to blame, and elsewhere a reference for `lychgate explain`. */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { pageOf } from '../helpers/authorization.ts'
import { newFolder, run } from '../helpers/command.ts'
import { register } from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

const uuid = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/
const asHtml = { headers: { accept: 'text/html' } }

/** The text of the page below its advice, without the form for the language. */
const factsOf = ({ html }: Page) => /<section class="facts"[\s\S]*<\/section>/.exec(html)?.[0]

function referenceOn(facts: string): string {
  const [id] = uuid.exec(facts) ?? []
  if (id === undefined) throw new Error(`there is no reference: ${facts}`)
  return id
}

/**
 * Asserts what `lychgate explain` finds for the references on pages, once all are stored, which happens after the
 * responses. The command runs once for a reference and once for the list of all: a process takes long.
 */
async function assertExplained(
  t: Test,
  server: TestServer,
  store: string,
  found: ReadonlyMap<string, { readonly rule: string } | { readonly error: string }>,
): Promise<void> {
  for (const id of found.keys())
    while ((await server.deps.store.find('rejection', id)) === undefined) await setTimeout(10)
  const environment = {
    LYCHGATE_ISSUER: server.issuer,
    LYCHGATE_STORE: store,
    LYCHGATE_SECRET: 'a secret for tests that is long enough',
  }
  const [[first = '', expected = {}] = []] = found
  const [one, all] = await Promise.all([
    run(['explain', '--json', first], { environment }),
    run(['explain', '--json'], { environment }),
  ])
  t.match(JSON.parse(one.stdout), { id: first, ...expected }, one.stderr)
  const listed = JSON.parse(all.stdout) as readonly { readonly id: string }[]
  for (const [id, facts] of found)
    t.match(
      listed.find((each) => each.id === id),
      facts,
    )
}

/** Pages where the user or this server is to blame: how to meet each, and the rule of its error. */
const ours: Readonly<Record<string, [rule: string, open: (server: TestServer) => Promise<Page>]>> = {
  'a sign-in of another browser': [
    'rfc6749-10.12-csrf-approval',
    async ({ issuer }) => pageOf(await new UserAgent(issuer).open(`${issuer}/login?interaction=gone`)),
  ],
  'a form of another browser': [
    'rfc6749-10.12-csrf-approval',
    async ({ issuer }) =>
      pageOf(
        await new UserAgent(issuer).open(`${issuer}/device`, {
          method: 'POST',
          body: new URLSearchParams({ csrf: 'x', user_code: 'WDJB-MJHT' }),
        }),
      ),
  ],
  'a form that another site sent': [
    'rfc6749-10.12-csrf-approval',
    async ({ issuer }) =>
      pageOf(
        await new UserAgent(issuer).open(`${issuer}/login`, {
          method: 'POST',
          headers: { 'sec-fetch-site': 'cross-site' },
          body: new URLSearchParams({ interaction: 'x' }),
        }),
      ),
  ],
  'a link that is no longer valid': [
    'lychgate-link-open',
    async ({ issuer }) => pageOf(await new UserAgent(issuer).open(`${issuer}/link?token=lyc_link_gone`)),
  ],
}

/** Pages where the request of an app is to blame, with the reason. */
const ofApps: Readonly<Record<string, [path: string, code: string, reason: string]>> = {
  'an unknown client': ['/oauth/authorize?client_id=nobody', 'invalid_client', 'client_id is unknown'],
  'a request without client_id': ['/oauth/authorize', 'invalid_request', 'client_id is missing'],
  'a reference to no pushed request': [
    '/oauth/authorize?client_id=CLIENT&request_uri=urn:ietf:params:oauth:request_uri:gone',
    'invalid_request_uri',
    'request_uri is unknown, has expired or was used',
  ],
  'a sign-out with a repeated parameter': [
    '/oauth/logout?state=a&state=b',
    'invalid_request',
    'state must not be repeated',
  ],
}

async function start(t: Test, mode: 'serve' | 'dev') {
  const store = `sqlite:${join(newFolder(t), 'lychgate.db')}`
  const server = await startServer(t, { store, mode })
  return { server, store, client: await register(server, { client_name: 'Zyx' }) }
}

for (const mode of ['serve', 'dev'] as const) {
  const traceOf = ({ issuer }: TestServer, id: string) =>
    mode === 'dev'
      ? `<a href="${issuer}/_dev/flows/requests/${id}"><code>${id}</code></a>`
      : `<code>${id}</code>`

  t.test(`${mode}: an error page that no app is to blame for has a reference alone`, async (t) => {
    const { server, store } = await start(t, mode)
    const found = new Map<string, { readonly rule: string }>()
    for (const [about, [rule, open]] of Object.entries(ours)) {
      const page = await open(server)
      const facts = factsOf(page) ?? ''
      const id = referenceOn(facts)
      t.ok(page.status >= 400 && page.status < 500, about)
      t.equal(page.headers.get('x-request-id'), id, about)
      t.equal(
        facts.replaceAll(/\s*\n\s*/g, ' '),
        `<section class="facts"> <p class="quiet">If you ask the people who run <bdi>Lychgate</bdi> for help, send them this reference: ${traceOf(server, id)}</p> </section>`,
        about,
      )
      t.notMatch(page.html, /developer|invalid_request|access_denied|lang="en">/, about)
      found.set(id, { rule })
    }
    await assertExplained(t, server, store, found)
  })

  t.test(`${mode}: an error page shows its reason where the request of an app is to blame`, async (t) => {
    const { server, store, client } = await start(t, mode)
    const found = new Map<string, { readonly error: string }>()
    for (const [about, [path, code, reason]] of Object.entries(ofApps)) {
      const url = server.issuer + path.replace('CLIENT', client.id)
      const page = pageOf(await new UserAgent(server.issuer).open(url))
      const facts = factsOf(page) ?? ''
      const id = referenceOn(facts)
      t.equal(page.status, 400, about)
      t.equal(page.headers.get('x-request-id'), id, about)
      t.match(facts, 'For the developer of the app', about)
      t.match(facts, `<code>${code}</code>, status 400`, about)
      t.match(facts, `<bdi lang="en">${reason}`, about)
      t.match(facts, `<dd>${traceOf(server, id)}</dd>`, about)
      t.notMatch(facts, 'reference:', about)
      found.set(id, { error: code })
    }
    await assertExplained(t, server, store, found)
  })

  t.test(`${mode}: a page or a method that there is not has neither, as no record has it`, async (t) => {
    const { server } = await start(t, mode)
    for (const [path, method, status] of [
      ['/nothing', 'GET', 404],
      ['/oauth/authorize', 'DELETE', 405],
    ] as const) {
      const response = await fetch(server.issuer + path, { method, ...asHtml })
      t.equal(response.status, status)
      const html = await response.text()
      t.match(html, '<h1>')
      t.notMatch(html, /class="facts"|developer|reference/, path)
    }
  })
}

t.test('a failure of the server, or too many requests, is not for the developer of the app', async (t) => {
  const server = await startServer(t, {
    rateLimits: 'on',
    requestsPerMinute: { authorization: 1 },
  })
  const agent = new UserAgent(server.issuer)
  const url = `${server.issuer}/oauth/authorize?client_id=nobody`
  t.match(factsOf(pageOf(await agent.open(url))), 'client_id is unknown')
  const limited = pageOf(await agent.open(url))
  t.equal(limited.status, 429)
  t.match(factsOf(limited), `reference: <code>${limited.headers.get('x-request-id')}</code>`)
  t.notMatch(limited.html, /developer|too many requests from this network/)

  const failing = await startServer(t)
  t.intercept(failing.deps.store, 'find', { value: async () => Promise.reject(new Error('a disk of glass')) })
  const failed = pageOf(await agent.open(`${failing.issuer}/oauth/authorize?client_id=nobody`))
  t.equal(failed.status, 500)
  t.match(factsOf(failed), `reference: <code>${failed.headers.get('x-request-id')}</code>`)
  t.notMatch(failed.html, /developer|glass|server_error/)
})

t.test('a development server says why it rejects a foreign Host, on each of its pages', async (t) => {
  const { server } = await start(t, 'dev')
  for (const path of ['/account', '/_dev/flows']) {
    const { statusCode, body } = await server.app.inject({
      url: path,
      headers: { host: 'lychgate.test', accept: 'text/html' },
    })
    t.equal(statusCode, 403)
    t.match(body, /<bdi lang="en">Host is not a name of this development server: list it in dev\.hosts/, path)
  }
})
