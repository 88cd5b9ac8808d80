import type { FastifyInstance } from 'fastify'
import { describeExchange } from '../flows/describe-flow.ts'
import type { Exchange } from '../flows/flow.ts'
import { objectOf } from '../json-body.ts'
import { type Call, callHeader, curlOf } from './call.ts'
import { authorizationParameters, authorizationUrl } from './client.ts'
import type { Run } from './run.ts'
import type { TryStep } from './steps.ts'

/** Whether the steps before this one are done. */
export function mayTake(run: Run, steps: readonly TryStep[], at: number): boolean {
  return steps.slice(0, at).every(({ id }) => run.outcomes.get(id)?.ok)
}

/** Each step as the page of a run shows it: its outcome, its requests, and what the server recorded about them. */
export function showSteps(run: Run, steps: readonly TryStep[], app: FastifyInstance) {
  const exchanges = recordedOf(run, app)
  const byNumber = new Map(exchanges.map((exchange) => [numberOf(exchange), exchange]))
  const outcomeOf = (key: string) => {
    const outcome = run.outcomes.get(key)
    const calls = outcome?.calls.map((call) => showCall(call, byNumber.get(call.number)))
    return outcome && { ...outcome, calls }
  }
  return steps.map(({ take: _take, button, variants = [], ...step }, at) => {
    const outcome = outcomeOf(step.id)
    const isNow = mayTake(run, steps, at)
    const isAuthorization = step.id === 'authorize'
    return {
      ...step,
      number: at + 1,
      isLatest: step.id === run.last,
      state: outcome?.ok ? 'done' : outcome ? 'failed' : isNow ? 'now' : 'later',
      button: isNow ? button : undefined,
      outcome,
      variants: variants.map((variant) => {
        const key = `${step.id}.${variant.id}`
        const { id, button: label } = variant
        const canTake = variant.canTake(run)
        return { id, button: label, canTake, isLatest: run.last === key, outcome: outcomeOf(key) }
      }),
      leads:
        isAuthorization && isNow
          ? { url: authorizationUrl(run), parameters: authorizationParameters(run) }
          : undefined,
      browser: isAuthorization ? exchanges.filter((exchange) => inBrowser.includes(exchange.step)) : [],
    }
  })
}

const inBrowser = ['authorization', 'sign-in', 'consent']

/** The flow of a run in the trace. */
export function flowOf(run: Run, app: FastifyInstance) {
  return app.recorder.book.flows().find(({ clientId }) => clientId !== undefined && clientId === run.clientId)
}

/** Everything the server has recorded about this run. */
function recordedOf(run: Run, app: FastifyInstance): readonly Exchange[] {
  const flow = flowOf(run, app)
  const start = flow?.exchanges[0]?.startedMs ?? 0
  const loose = app.recorder.book
    .loose()
    .filter((exchange) => numberOf(exchange)?.startsWith(run.id.slice(0, 8)))
  return [...(flow?.exchanges ?? []), ...loose].map((exchange) => describeExchange(exchange, start))
}

function numberOf({ request }: Pick<Exchange, 'request'>): string | undefined {
  return request.headers.find(([name]) => name.toLowerCase() === callHeader)?.[1]
}

const shownHeaders = /^(?:content-type|www-authenticate|cache-control|location|retry-after|x-request-id)$/i

function showCall(call: Call, seen: Exchange | undefined) {
  const {
    method,
    url,
    headers,
    body,
    status,
    answerHeaders: responseHeaders,
    answer: response,
    tookMs,
  } = call
  const { pathname, search, host } = new URL(url)
  const shown = responseHeaders.filter(([name]) => shownHeaders.test(name))
  const head = [`${method} ${pathname}${search}`, `host: ${host}`, ...lines(Object.entries(headers))]
  return {
    tookMs,
    request: message(head, body === undefined ? undefined : (indented(body) ?? body.replaceAll('&', '\n&'))),
    answer: message(
      [status === 0 ? 'no response' : `${status}`, ...lines(shown)],
      indented(response) ?? response,
    ),
    curl: curlOf(call),
    seen,
  }
}

/** A JSON object with one member per line; undefined for any other text. */
function indented(text: string): string | undefined {
  const members = objectOf(text)
  return members && JSON.stringify(members, undefined, 2)
}

function lines(headers: readonly (readonly [string, string])[]): readonly string[] {
  return headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`)
}

function message(head: readonly string[], body: string | undefined): string {
  return [...head, ...(body ? ['', body] : [])].join('\n')
}
