/** The exports of the trace: live, as HTTP Archive, cleared; and who may read them. */
import t from 'tap'
import type { Exchange, Flow } from '../../src/dev/flows/flow.ts'
import { callApi, obtainTokens, register, type TestClient } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { mode: 'dev' })

interface Told {
  readonly flows: readonly Flow[]
  readonly loose: readonly Exchange[]
}

async function told(): Promise<Told> {
  return (await (await fetch(`${server.issuer}/_dev/flows.json`)).json()) as Told
}

/** The newest flow of this client. */
async function flowOf(client: TestClient): Promise<Flow> {
  const flow = (await told()).flows.find((each) => each.client?.id === client.id)
  if (flow === undefined) throw new Error('no flow')
  return flow
}

const stepsOf = (flow: Flow) => flow.exchanges.map(({ step }) => step)
const discover = () => fetch(`${server.issuer}/.well-known/oauth-authorization-server`)

t.test('subscribers receive each exchange as it happens', async (t) => {
  const abort = new AbortController()
  const events = await fetch(`${server.issuer}/_dev/flows/events`, { signal: abort.signal })
  t.equal(events.headers.get('content-type'), 'text/event-stream')
  const reader = events.body?.getReader()
  const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString()
  t.equal(await next(), ': this is live\n\n')
  await discover()
  t.equal(await next(), 'data: changed\n\n')
  abort.abort()
})

/** The members of HTTP Archive 1.2 that are checked here. */
interface Archive {
  readonly version: string
  readonly entries: readonly {
    readonly startedDateTime: string
    readonly time: number
    readonly request: { readonly url: string }
    readonly response: object
    readonly cache: object
    readonly timings: { readonly send: number; readonly wait: number; readonly receive: number }
  }[]
}

t.test('a flow is exported as an HTTP Archive', async (t) => {
  const client = await register(server)
  await obtainTokens(server, client)
  const flow = await flowOf(client)
  const httpResponse = await fetch(`${server.issuer}/_dev/flows/${flow.id}.har`)
  t.equal(httpResponse.headers.get('content-disposition'), `attachment; filename="lychgate-${flow.id}.har"`)
  const { log } = (await httpResponse.json()) as { log: Archive }
  t.equal(log.version, '1.2')
  t.equal(log.entries.length, flow.exchanges.length)
  for (const { startedDateTime, time, request, response, cache, timings } of log.entries) {
    t.match(startedDateTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    t.equal(time, timings.send + timings.wait + timings.receive)
    t.ok(URL.canParse(request.url) && request.url.startsWith(server.origin), request.url)
    t.strictSame(cache, {})
    for (const name of [
      'method',
      'httpVersion',
      'cookies',
      'headers',
      'queryString',
      'headersSize',
      'bodySize',
    ])
      t.ok(name in request, name)
    for (const name of [
      'status',
      'statusText',
      'httpVersion',
      'cookies',
      'headers',
      'content',
      'redirectURL',
    ])
      t.ok(name in response, name)
  }
})

t.test('the export marks where the clock was moved', async (t) => {
  const client = await register(server)
  server.advance(31 * 86_400 + 3600)
  await fetch(`${server.issuer}/oauth/authorize?client_id=${client.id}`)
  server.advance(-31 * 86_400)
  await fetch(`${server.issuer}/api/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: 'x', client_id: client.id }),
  })
  const flow = await flowOf(client)
  const [none, forward, back] = flow.exchanges.map(({ clockMoved }) => clockMoved)
  t.equal(none, undefined)
  t.strictSame([forward, back], [2_682_000, -2_678_400])
  const page = await (await fetch(`${server.issuer}/_dev/flows/${flow.id}`)).text()
  t.match(page, /The clock was moved forward by 31 d 1 h\./)
  t.match(page, /The clock was moved back by 31 d\./)
})

t.test('the flows can be cleared', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client, { fields: { scope: 'courses:read' } })
  const response = await fetch(`${server.issuer}/_dev/flows/clear`, { method: 'POST', redirect: 'manual' })
  t.equal(response.status, 303)
  t.strictSame(await told(), { flows: [], loose: [] })
  await callApi(server, '/api/courses', tokens.access_token)
  t.strictSame(
    stepsOf(await flowOf(client)),
    ['API call'],
    'a token it has not seen being made has a flow, too',
  )
})

t.test(
  'an exchange without a client waits for the next flow of the same user agent, and is shown until then',
  async (t) => {
    await discover()
    await fetch(`${server.issuer}/.well-known/openid-configuration`, { headers: { 'user-agent': 'another' } })
    t.strictSame(
      (await told()).loose.map(({ step }) => step),
      ['discovery', 'discovery'],
    )
    const client = await register(server)
    t.strictSame(stepsOf(await flowOf(client)), ['discovery', 'registration'])
    t.strictSame((await told()).loose.length, 1)
  },
)

t.test('a foreign name or site receives nothing', async (t) => {
  for (const path of ['/', '/_dev/flows', '/_dev/flows.json', '/_dev/try']) {
    const foreign = await fetch(server.issuer + path, { headers: { origin: 'https://evil.example' } })
    t.equal(foreign.status, 403, path)
  }
})

t.test('a production server has no flows', async (t) => {
  const production = await startServer(t)
  t.equal(production.app.hasDecorator('recorder'), false)
  for (const path of ['/_dev/flows', '/_dev/flows.json', '/_dev/try', '/_dev/assets/dev.js'])
    t.equal((await fetch(production.issuer + path)).status, 404, path)
  const home = await (await fetch(`${production.issuer}/`)).text()
  t.notMatch(home, '_dev')
  const page = await (await fetch(`${production.issuer}/oauth/authorize?client_id=lost`)).text()
  t.notMatch(page, '_dev')
})
