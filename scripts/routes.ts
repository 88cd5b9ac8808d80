/**
 * Prints what each request passes, by route: the parsers that its body may have, the hooks in the order in which they
 * run, and the headers of the response to a request without credentials.
 */
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { startServer } from '../test/helpers/server.ts'

/** What the requests of some routes pass. */
export interface Passed {
  readonly parsers: readonly string[]
  readonly hooks: readonly string[]
  /** Of the response to a request without a query, a body or credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly status: number
}

/** The configuration that has the most routes and limits. */
export const everyRoute = { rateLimits: 'on', admin: { api: 'on' } } as const

/** The stages of a request, and those of its response. */
const stages = [
  'onRequest',
  'preParsing',
  'preValidation',
  'preHandler',
  'preSerialization',
  'onSend',
  'onResponse',
  'onTimeout',
  'onError',
  'onRequestAbort',
] as const

type Named = readonly { readonly name: string }[]
/** What Fastify keeps of a route, under a symbol of its request. Its types do not have it. */
type Context = { readonly [K in (typeof stages)[number]]?: Named | null } & {
  readonly contentTypeParser: { readonly customParsers: ReadonlyMap<string, unknown> }
}

/** Collects the routes of a server, and what a request to each passes. */
export function routeCollector() {
  const routes: { readonly method: string; readonly url: string }[] = []
  let context: Context | undefined
  const observe = async (app: FastifyInstance) => {
    app.addHook('onRoute', ({ method, url }: RouteOptions) => {
      for (const one of [method].flat()) routes.push({ method: one, url })
    })
    app.addHook('onRequest', function watchRoute(request, _reply, done) {
      context = contextOf(request)
      done()
    })
  }

  /** Sends a request to each route. */
  const walk = async (origin: string): Promise<ReadonlyMap<string, Passed>> => {
    const walked = new Map<string, Passed>()
    for (const { method, url } of routes) {
      context = undefined
      const path = url.replaceAll(/:[^/]+|\*/g, 'x')
      const response = await fetch(origin + path, { method, redirect: 'manual' })
      await response.arrayBuffer()
      walked.set(`${method} ${url}`, passed(context, response))
    }
    return walked
  }
  return { observe, walk }
}

function contextOf(request: FastifyRequest): Context {
  const symbol = Object.getOwnPropertySymbols(request).find(
    ({ description }) => description === 'fastify.context',
  )
  if (symbol === undefined) throw new Error('Fastify keeps the context of a request in another way')
  return (request as unknown as Record<symbol, Context>)[symbol] as Context
}

/** What this script, and Fastify for HEAD, add. */
const notOurs = new Set(['watchRoute', 'headRouteOnSendHandler'])

function passed(context: Context | undefined, { status, headers }: Response): Passed {
  const hooks = stages.flatMap((stage) =>
    // Only the hook of @fastify/rate-limit has no name.
    (context?.[stage] ?? []).map(({ name }) => name.replace('bound ', '') || 'rateLimit'),
  )
  return {
    hooks: context === undefined ? ['(sent before routing)'] : hooks.filter((name) => !notOurs.has(name)),
    parsers: [...(context?.contentTypeParser.customParsers.keys() ?? [])].map((type) => type || '*/*'),
    headers: Object.fromEntries(headers),
    status,
  }
}

/** Gathers the routes whose requests pass the same. */
export function grouped(walked: ReadonlyMap<string, Passed>): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const [route, { hooks, parsers }] of walked) {
    const line = [...parsers, ...hooks].join(' ')
    groups.set(line, [...(groups.get(line) ?? []), route])
  }
  return groups
}

if (import.meta.main) {
  const ends: (() => unknown)[] = []
  const { observe, walk } = routeCollector()
  const { origin } = await startServer({ teardown: (end) => ends.push(end) }, { ...everyRoute, observe })
  const walked = await walk(origin)
  for (const [line, routes] of grouped(walked)) {
    process.stdout.write(`${line}\n`)
    for (const route of routes) {
      const { status, headers } = walked.get(route) ?? {}
      process.stdout.write(`    ${route}: ${status} ${Object.keys(headers ?? {}).join(' ')}\n`)
    }
  }
  for (const end of ends) await end()
}
