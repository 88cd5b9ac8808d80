import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { OAuthError } from '../../domain/errors.ts'
import { every, single } from '../../domain/parameters.ts'
import { parametersOf } from '../../http/parameters.ts'
import { describeExchange } from '../flows/describe-flow.ts'
import type { Exchange } from '../flows/flow.ts'
import type { DevDeps } from '../part.ts'
import { type Call, callHeader, curlOf, objectOf } from './call.ts'
import { authorizationParameters, authorizationUrl, type Place } from './client.ts'
import type { ShownCall, ShownStep, ShownVariant } from './page-models.ts'
import { beginRun, type Outcome, openRuns, type Run } from './run.ts'
import { type TryStep, trySteps } from './steps.ts'
import { type Variant, variants } from './variants.ts'

const hidden = { schema: { hide: true } } as const

/** The try-it client: a native client like any other, which shows what it does. It knows nothing but the issuer. */
export const tryRoutes: FastifyPluginAsync<DevDeps> = async (app, deps) => {
  const { config, service, store, clock, random } = deps
  const runs = openRuns()
  const home = `${service.prefix}/_dev/try`
  const readable = config.scopes.filter(({ name }) => name.endsWith(':read')).map(({ name }) => name)
  const area = readable[0]?.split(':')[0] ?? 'account'
  const identity = ['openid', 'profile', 'email'].filter((name) => service.scopes.has(name))
  const defaultScope = [...identity, ...readable.slice(0, 1)].join(' ')

  const runAt = (id: string): Run => {
    const run = runs.find(id)
    if (run !== undefined) return run
    throw new OAuthError('invalid_request', 'there is no such run; the last twenty are kept', {
      rule: 'lychgate-dev-try',
      status: 404,
    })
  }
  const placeOf = ({ socket }: FastifyRequest): Place => ({
    issuer: service.issuer,
    address: { address: socket.localAddress ?? '127.0.0.1', port: socket.localPort ?? 0, family: '' },
    now: clock,
  })

  app.get('/_dev/try', hidden, async (request, reply) => {
    const accounts = await store.list('user')
    const chosen = single(parametersOf(request.query), 'person')
    return reply.devPage('try', {
      scopes: defaultScope,
      people: accounts.slice(0, 20).map(({ username }) => username),
      ...(chosen !== undefined && { chosen }),
      steps: trySteps,
      // Loaded late: most servers never lie.
      liars: deps.isNested ? [] : (await import('../issuers/catalogue.ts')).profiles,
    })
  })

  app.post('/_dev/try', hidden, async (request, reply) => {
    const form = parametersOf(request.body)
    const loginHint = single(form, 'person')
    const run = beginRun(
      {
        startedAt: clock(),
        redirectUri: redirectUriOf(request, service.issuer, home),
        scope: single(form, 'scope') ?? defaultScope,
        area,
        ...(loginHint !== undefined && { loginHint }),
      },
      random,
    )
    runs.add(run)
    return reply.redirect(`${home}/${run.id}`, 303)
  })

  app.get('/_dev/try/callback', hidden, async (request, reply) => {
    const parameters = parametersOf(request.query)
    const run = runs.ofState(single(parameters, 'state') ?? '')
    if (run === undefined) {
      throw new OAuthError('invalid_request', 'state belongs to no run of this client', {
        rule: 'rfc6749-10.12-csrf-approval',
      })
    }
    const names = Object.keys(parameters)
    run.callback = Object.fromEntries(names.map((name) => [name, every(parameters, name).join(' ')]))
    run.outcomes.set('authorize', await stepAt('authorize').take(run, placeOf(request)))
    run.last = 'authorize'
    return reply.redirect(`${service.issuer}/_dev/try/${run.id}#authorize`, 303)
  })

  app.get<{ Params: { id: string } }>('/_dev/try/:id', hidden, async ({ params }, reply) => {
    const run = runAt(params.id)
    const flow = app.recorder.book
      .flows()
      .find(({ clientId }) => clientId === run.clientId && clientId !== undefined)
    const steps = show(run, app)
    return reply.devPage('try-run', {
      id: run.id,
      steps,
      isOver: steps.every(({ state }) => state === 'done'),
      ...(flow && { flowId: flow.id }),
    })
  })

  app.post<{ Params: { id: string } }>('/_dev/try/:id', hidden, async (request, reply) => {
    const run = runAt(request.params.id)
    const form = parametersOf(request.body)
    const asked = single(form, 'step')
    const variant = variants[asked ?? '']?.find(({ id }) => id === single(form, 'variant'))
    if (variant?.canTake(run)) {
      run.last = `${asked}.${variant.id}`
      run.outcomes.set(run.last, await variant.take(run, placeOf(request)))
      return reply.redirect(`${home}/${run.id}#${asked}`, 303)
    }
    let at = trySteps.findIndex(({ id }) => id === asked)
    // `rest`: on and on, until the browser is needed or something fails.
    for (let step = trySteps[at]; step?.button !== undefined; step = trySteps[at]) {
      if (!mayTake(run, at)) break
      const outcome = await step.take(run, placeOf(request))
      run.outcomes.set(step.id, outcome)
      run.last = step.id
      if (!outcome.ok || single(form, 'rest') === undefined) break
      at += 1
    }
    const shown = trySteps[Math.min(Math.max(at, 0), trySteps.length - 1)]?.id
    return reply.redirect(`${home}/${run.id}#${shown}`, 303)
  })
}

function stepAt(id: string): TryStep {
  const step = trySteps.find((each) => each.id === id)
  if (step === undefined) throw new Error(`there is no step ${id}`)
  return step
}

/** RFC 8252 §7.3: the loopback literal, with the port by which this computer reaches the server. */
function redirectUriOf({ socket }: FastifyRequest, issuer: string, home: string): string {
  const { protocol, hostname, port } = new URL(issuer)
  const isLoopback = protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  const reached = isLoopback ? port : String(socket.localPort)
  return `http://127.0.0.1${reached === '' ? '' : `:${reached}`}${home}/callback`
}

/** What came before has to be there. */
function mayTake(run: Run, at: number): boolean {
  return trySteps.slice(0, at).every(({ id }) => run.outcomes.get(id)?.ok)
}

function show(run: Run, app: FastifyInstance): readonly ShownStep[] {
  const exchanges = seenOf(run, app)
  const byNumber = new Map(exchanges.map((exchange) => [numberOf(exchange), exchange]))
  return trySteps.map(({ take: _take, button, ...step }, at) => {
    const outcome = run.outcomes.get(step.id)
    const isNow = mayTake(run, at)
    const browser = exchanges.filter(({ step: kind }) =>
      ['authorization', 'sign-in', 'consent'].includes(kind),
    )
    return {
      ...step,
      isLatest: step.id === run.last,
      number: at + 1,
      state: outcome?.ok ? 'done' : outcome ? 'failed' : isNow ? 'now' : 'later',
      ...(button !== undefined && isNow && { button }),
      ...(outcome && { outcome }),
      calls: callsOf(outcome, byNumber),
      variants: (variants[step.id] ?? []).map((variant) => showVariant(step.id, variant, run, byNumber)),
      ...(step.id === 'authorize' &&
        isNow && { leads: { url: authorizationUrl(run), parameters: authorizationParameters(run) } }),
      browser: step.id === 'authorize' ? browser : [],
    }
  })
}

type ByNumber = ReadonlyMap<string | undefined, Exchange>

function callsOf(outcome: Outcome | undefined, byNumber: ByNumber): readonly ShownCall[] {
  return outcome?.calls.map((call) => showCall(call, byNumber.get(call.number))) ?? []
}

function showVariant(
  step: string,
  { id, button, canTake }: Variant,
  run: Run,
  byNumber: ByNumber,
): ShownVariant {
  const key = `${step}.${id}`
  const outcome = run.outcomes.get(key)
  return {
    id,
    button,
    canTake: canTake(run),
    isLatest: run.last === key,
    ...(outcome && { outcome }),
    calls: callsOf(outcome, byNumber),
  }
}

/** Everything the server saw of this run. */
function seenOf(run: Run, app: FastifyInstance): readonly Exchange[] {
  const { book } = app.recorder
  const ofRun = (exchange: { readonly request: Exchange['request'] }) =>
    numberOf(exchange)?.startsWith(run.id.slice(0, 8))
  const flow = book.flows().find(({ clientId }) => clientId !== undefined && clientId === run.clientId)
  const start = flow?.exchanges[0]?.startedMs ?? 0
  const kept = [...(flow?.exchanges ?? []), ...book.loose().filter(ofRun)]
  return kept.map((exchange) => describeExchange(exchange, start))
}

function numberOf({ request }: { readonly request: Exchange['request'] }): string | undefined {
  return request.headers.find(([name]) => name.toLowerCase() === callHeader)?.[1]
}

function showCall(call: Call, seen: Exchange | undefined): ShownCall {
  const { method, url, headers = {}, body, status, answerHeaders, tookMs } = call
  const { pathname, search, host } = new URL(url)
  const told = answerHeaders.filter(([name]) =>
    /^(?:content-type|www-authenticate|cache-control|location|retry-after|x-request-id)$/i.test(name),
  )
  const json = objectOf(call)
  return {
    method,
    url,
    status,
    tookMs,
    request: message(
      [`${method} ${pathname}${search}`, `host: ${host}`, ...lines(Object.entries(headers))],
      readable(body),
    ),
    answer: message(
      [status === 0 ? 'no answer' : `${status}`, ...lines(told)],
      json === undefined ? call.answer : JSON.stringify(json, undefined, 2),
    ),
    curl: curlOf(call),
    ...(seen && { seen }),
  }
}

function lines(headers: readonly (readonly [string, string])[]): readonly string[] {
  return headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`)
}

function message(head: readonly string[], body: string | undefined): string {
  return [...head, ...(body ? ['', body] : [])].join('\n')
}

/** A field a line; JSON with its members apart. */
function readable(body: string | undefined): string | undefined {
  if (body?.startsWith('{')) return JSON.stringify(JSON.parse(body), undefined, 2)
  return body?.replaceAll('&', '\n&')
}
