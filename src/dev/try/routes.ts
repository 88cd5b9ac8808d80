import type { FastifyRequest } from 'fastify'
import { OAuthError } from '../../domain/errors.ts'
import { every, single } from '../../domain/parameters.ts'
import { parametersOf } from '../../http/parameters.ts'
import { profiles } from '../issuers/catalogue.ts'
import { type DevPart, hidden, missing } from '../part.ts'
import { comeBack } from './client.ts'
import { beginRun, type Place, type Run } from './run.ts'
import { flowOf, mayTake, showSteps } from './show-run.ts'
import { trySteps } from './steps.ts'

const [mostRuns, mostUsers] = [20, 20]

interface OfRun {
  readonly Params: { readonly id: string }
}

/** The try-it client: a native client that knows only the issuer, and shows what it does. */
export const tryRoutes: DevPart = async (app, deps) => {
  const { config, service, store, clock, random } = deps
  const runs = new Map<string, Run>()
  const home = `${service.prefix}/_dev/try`
  const readable = config.scopes.filter(({ name }) => name.endsWith(':read')).map(({ name }) => name)
  const area = readable[0]?.split(':')[0] ?? 'account'
  const identity = ['openid', 'profile', 'email'].filter((name) => service.scopes.has(name))
  const defaultScope = [...identity, ...readable.slice(0, 1)].join(' ')
  const stepsHere = () => trySteps.filter(({ needs }) => needs === undefined || app.endpoints.has(needs))

  const runAt = (id: string): Run => {
    const run = runs.get(id)
    if (run !== undefined) return run
    throw missing('lychgate-dev-try', 'there is no such run; only the last twenty are kept')
  }
  const placeOf = ({ socket }: FastifyRequest): Place => ({
    issuer: service.issuer,
    address: { address: socket.localAddress ?? '127.0.0.1', port: socket.localPort ?? 0, family: '' },
    now: clock,
  })

  app.get('/_dev/try', hidden, async (request, reply) => {
    const users = await store.list('user')
    return reply.devPage('try', {
      scopes: defaultScope,
      users: users.slice(0, mostUsers).map(({ username }) => username),
      chosen: single(parametersOf(request.query), 'user'),
      steps: stepsHere(),
      issuers: deps.isNested ? [] : profiles,
    })
  })

  app.post('/_dev/try', hidden, async (request, reply) => {
    const form = parametersOf(request.body)
    const loginHint = single(form, 'user')
    const choice = {
      redirectUri: redirectUriOf(request, service.issuer, home),
      scope: single(form, 'scope') ?? defaultScope,
      area,
      ...(loginHint !== undefined && { loginHint }),
    }
    const run = beginRun(choice, random)
    runs.set(run.id, run)
    for (const id of [...runs.keys()].slice(0, -mostRuns)) runs.delete(id)
    return reply.redirect(`${home}/${run.id}`, 303)
  })

  app.get('/_dev/try/callback', hidden, async (request, reply) => {
    const parameters = parametersOf(request.query)
    const state = single(parameters, 'state')
    const run = [...runs.values()].find((each) => each.state === state)
    if (run === undefined) {
      throw new OAuthError('invalid_request', 'state belongs to no run of this client', {
        rule: 'rfc6749-10.12-csrf-approval',
      })
    }
    const names = Object.keys(parameters)
    run.callback = Object.fromEntries(names.map((name) => [name, every(parameters, name).join(' ')]))
    run.outcomes.set('authorize', await comeBack(run, placeOf(request)))
    run.last = 'authorize'
    return reply.redirect(`${service.issuer}/_dev/try/${run.id}#authorize`, 303)
  })

  app.get<OfRun>('/_dev/try/:id', hidden, async ({ params }, reply) => {
    const run = runAt(params.id)
    const steps = showSteps(run, stepsHere(), app)
    const isOver = steps.every(({ state }) => state === 'done')
    return reply.devPage('try-run', { id: run.id, steps, isOver, flowId: flowOf(run, app)?.id })
  })

  app.post<OfRun>('/_dev/try/:id', hidden, async (request, reply) => {
    const run = runAt(request.params.id)
    const form = parametersOf(request.body)
    const [asked, variantId, rest] = ['step', 'variant', 'rest'].map((name) => single(form, name))
    const steps = stepsHere()
    let at = steps.findIndex(({ id }) => id === asked)
    const variant = steps[at]?.variants?.find(({ id }) => id === variantId)
    if (variant?.canTake(run)) {
      run.last = `${asked}.${variant.id}`
      run.outcomes.set(run.last, await variant.take(run, placeOf(request)))
      return reply.redirect(`${home}/${run.id}#${asked}`, 303)
    }
    // `rest` continues until the browser is needed or a step fails.
    for (let step = steps[at]; step?.button !== undefined; step = steps[at]) {
      if (!mayTake(run, steps, at)) break
      const outcome = await step.take(run, placeOf(request))
      run.outcomes.set(step.id, outcome)
      run.last = step.id
      if (!outcome.ok || rest === undefined) break
      at += 1
    }
    const shown = steps[Math.min(Math.max(at, 0), steps.length - 1)]?.id
    return reply.redirect(`${home}/${run.id}#${shown}`, 303)
  })
}

/** RFC 8252 §7.3: the loopback literal, with the port by which this computer reaches the server. */
function redirectUriOf({ socket }: FastifyRequest, issuer: string, home: string): string {
  const { protocol, hostname, port } = new URL(issuer)
  const isLoopback = protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  const reached = isLoopback ? port : String(socket.localPort)
  return `http://127.0.0.1${reached === '' ? '' : `:${reached}`}${home}/callback`
}
