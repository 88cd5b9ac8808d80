/** A server in a process that has an OpenTelemetry SDK. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { callApi, obtainTokens, refresh, register } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

const data = newFolder(t)
const file = join(data, 'spans.jsonl')
const tracer = fileURLToPath(new URL('../helpers/tracer.ts', import.meta.url))
const environment = { SPANS: file, NODE_OPTIONS: `--import ${tracer}`, LYCHGATE_SWEEP_SECONDS: 1 }

interface Span {
  readonly name: string
  readonly id: string
  readonly parent?: string
  readonly attributes: Readonly<Record<string, string | number>>
  readonly status: { readonly code: number }
}

const { server, stop } = await startProcess(t, data, environment)
const client = await register(server)
const tokens = await obtainTokens(server, client, {
  user: devAlice,
  fields: { scope: 'openid courses:read', state: 'a-state-nobody-traces' },
})
const rotated = (await (await refresh(server, client, tokens.refresh_token)).json()) as typeof tokens
await refresh(server, client, rotated.refresh_token)
await callApi(server, '/api/courses', tokens.access_token)
await refresh(server, client, tokens.refresh_token)
await stop('SIGTERM')
const spans = (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []).map(
  (line) => JSON.parse(line) as Span,
)

/** The names of all spans below a span, in the order in which they ended. */
function below({ id }: Span): readonly string[] {
  return spans.filter(({ parent }) => parent === id).flatMap((span) => [...below(span), span.name])
}

t.test('a code exchange is a span that contains the spans of the store and the keys', async (t) => {
  const [exchange] = spans.filter(({ name }) => name === 'POST /api/oauth/token')
  if (exchange === undefined) throw new Error(spans.map(({ name }) => name).join('\n'))
  const steps = below(exchange).filter((name) => /^(store|keys)/.test(name))
  t.strictSame(steps, ['store.find client', 'keys.open', 'store.transact grant', 'keys.sign RS256'])
  t.match(exchange.attributes, { 'http.route': '/api/oauth/token', 'http.response.status_code': 200 })
  t.match(exchange.attributes, { 'lychgate.request_id': /^[\da-f-]{36}$/ })
})

t.test('a rejected request is a span with its error code', async (t) => {
  const rejected = spans.filter(({ attributes }) => attributes['lychgate.refusal'] !== undefined)
  t.match(rejected, [{ name: 'store.transact grant', attributes: { 'lychgate.refusal': 'invalid_grant' } }])
  t.equal(rejected[0]?.status.code, 0)
})

t.test('every span belongs to a request: the sweep and health checks have none', async (t) => {
  const roots = spans.filter(({ parent }) => parent === undefined)
  t.ok(roots.length > 5)
  for (const { name } of roots) t.match(name, /^(GET|POST) \/(?!livez|readyz)/)
})

t.test('no span has a query, a token or a user', async (t) => {
  const text = JSON.stringify(spans)
  t.ok(text.includes('/oauth/authorize'))
  t.notMatch(text, /lyc_|eyJ|a-state-nobody-traces|alice|\?/)
})
