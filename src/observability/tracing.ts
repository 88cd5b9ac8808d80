import { FastifyOtelInstrumentation } from '@fastify/otel'
import { SpanStatusCode, trace } from '@opentelemetry/api'
import type { FastifyInstance } from 'fastify'
import { OAuthError } from '../domain/errors.ts'
import type { Deps } from '../feature/deps.ts'
import { routeEveryRequest } from '../http/documents-first.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Store } from '../storage/store.ts'

/** What buildApp is given for a traced server. */
export interface Traced {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
}

/**
 * Spans of requests, with those of the store and the keys inside. Never a query, a body or a header, as they contain
 * codes, tokens and passwords.
 */
export function underTracing(deps: Deps): Traced {
  return {
    deps: { ...deps, store: tracedStore(deps.store), keys: tracedKeys(deps.keys) },
    observe: async (app) => {
      routeEveryRequest(app)
      const instrumentation = new FastifyOtelInstrumentation({
        registerOnInitialization: false,
        // The calls that read the store; a span for the others would show nothing.
        instrumentHooks: ['preHandler'],
        ignorePaths: ({ url }) => url === '/livez' || url === '/readyz',
        requestHook: (span, request) => {
          const path = request.url.split('?', 1)[0] ?? ''
          span.setAttribute('url.path', path)
          span.updateName(`${request.method} ${request.routeOptions.url ?? 'none'}`)
          span.setAttribute('lychgate.request_id', request.id)
        },
      })
      await app.register(instrumentation.plugin())
    },
  }
}

function tracedStore(store: Store): Store {
  return {
    ...store,
    find: (kind, key) => inSpan(`store.find ${kind}`, () => store.find(kind, key)),
    transact: (kind, key, decide) =>
      inSpan(`store.transact ${kind}`, () => store.transact(kind, key, decide)),
    write: (...writes) => inSpan('store.write', () => store.write(...writes)),
  }
}

/** Its other members are looked up each time, as keys are added and removed. */
function tracedKeys(keys: KeyRing): KeyRing {
  const operations: Pick<KeyRing, 'open' | 'sign' | 'verify'> = {
    open: (text, ...kinds) => inSpan('keys.open', () => keys.open(text, ...kinds)),
    sign: (algorithm, type, claims) =>
      inSpan(`keys.sign ${algorithm}`, () => keys.sign(algorithm, type, claims)),
    verify: (jws, type) => inSpan('keys.verify', () => keys.verify(jws, type)),
  }
  return Object.assign(Object.create(keys), operations)
}

const tracer = trace.getTracer('lychgate')

/** A span within that of a request; work outside a request has none. */
async function inSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
  if (trace.getActiveSpan() === undefined) return work()
  return tracer.startActiveSpan(name, async (span) => {
    try {
      return await work()
    } catch (error) {
      // A rejection is a response.
      if (error instanceof OAuthError) span.setAttribute('lychgate.refusal', error.code)
      else span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : '' })
      throw error
    } finally {
      span.end()
    }
  })
}
