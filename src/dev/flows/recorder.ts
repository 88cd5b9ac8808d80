import { AsyncLocalStorage } from 'node:async_hooks'
import { PassThrough } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type PassedCheck, passedChecks } from '../../domain/check.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Deps } from '../../feature/deps.ts'
import { describeService } from '../../feature/service.ts'
import { declared } from '../../features.ts'
import type { Outgoing } from '../../http/outgoing.ts'
// Brings `app.traceUrl`.
import type {} from '../../pages/page-errors.ts'
import type { Store } from '../../storage/store.ts'
import { describeFlow } from './describe-flow.ts'
import { belongingOf, exchangeFrom, exchangeTo, type Recording } from './exchange.ts'
import type { Flow } from './flow.ts'
import { type FlowBook, openFlowBook } from './flow-book.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Records the requests of a development server, see `withRecording`. */
    readonly recorder: Recorder
  }
}

/** Records what a server does. */
export interface Recorder {
  readonly book: FlowBook
  /** Calls `listener` for every added exchange, until the returned function is called. */
  onChange(listener: () => void): () => void
  /** Describes every flow, newest first. */
  flows(): Promise<readonly Flow[]>
  /** Adds a note to the request that is being handled. */
  note(request: FastifyRequest, text: string): void
}

/** The rest of a longer body is ignored. */
const mostBytes = 262_144

/**
 * Returns the dependencies for `buildApp` with recording added: of each request and response, of the writes of the
 * store, and of the checks that passed. It changes no behaviour.
 */
export function withRecording(deps: Deps): {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
} {
  const current = new AsyncLocalStorage<Recording>()
  return {
    deps: { ...deps, store: recordedStore(deps.store, current) },
    observe: async (app) => {
      await app.register(recording, { deps, current })
    },
  }
}

const recording = fp<{ readonly deps: Deps; readonly current: AsyncLocalStorage<Recording> }>(
  async (app, { deps, current }) => {
    const recordings = new WeakMap<FastifyRequest, Recording>()
    const listeners = new Set<() => void>()
    const book = openFlowBook()
    app.decorate('traceUrl', (requestId: string) => `${deps.config.issuer}/_dev/flows/requests/${requestId}`)
    app.decorate('recorder', {
      book,
      onChange: (listener) => {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      flows: () => {
        const described = { ...deps, service: describeService(deps.config, declared) }
        return Promise.all(book.flows().map((kept) => describeFlow(kept, described)))
      },
      note: (request, text) => void recordings.get(request)?.notes.push(text),
    })

    const hearOutgoing = (request: Outgoing) => {
      const peer = `${request.clientId} is called`
      const belonging = { grantIds: [], interactionIds: [], clientId: request.clientId, peer }
      book.add(exchangeTo(request, deps), belonging)
      for (const listener of listeners) listener()
    }
    app.decorate('outgoing', new Set([hearOutgoing]))

    const hear = (passedCheck: unknown) => void current.getStore()?.passed.push(passedCheck as PassedCheck) // published by recordCheck() alone
    passedChecks.subscribe(hear)
    app.addHook('onClose', async () => void passedChecks.unsubscribe(hear))

    const finish = (request: FastifyRequest, reply: FastifyReply, broken: boolean) => {
      const recorded = recordings.get(request)
      if (recorded === undefined || recorded.finished) return
      recorded.finished = true
      const seen = { request, reply, recorded, broken }
      const exchange = exchangeFrom(seen, deps)
      if (exchange === undefined) return
      book.add(exchange, belongingOf(seen, exchange, deps.config))
      for (const listener of listeners) listener()
    }

    app.addHook('onRequest', (request, reply, done) => {
      const recorded = begin(deps.clock())
      recordings.set(request, recorded)
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) finish(request, reply, true)
      })
      current.run(recorded, done)
    })
    app.addHook('preParsing', (request, _reply, payload, done) => {
      const recorded = recordings.get(request)
      const hasBody = request.headers['content-length'] ?? request.headers['transfer-encoding']
      if (recorded === undefined || hasBody === undefined) return done(null, payload)
      const copy = new PassThrough()
      let bytes = 0
      copy.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= mostBytes) recorded.requestBody.push(chunk)
      })
      // It must not flow before the server reads it.
      copy.pause()
      payload.on('error', (error) => copy.destroy(error))
      done(null, payload.pipe(copy))
    })
    // A parsed body arrives in the context of its last chunk; return to the context of the request.
    app.addHook('preValidation', (request, _reply, done) => {
      const recorded = recordings.get(request)
      if (recorded === undefined) done()
      else current.run(recorded, done)
    })
    app.addHook('onSend', (request, _reply, payload, done) => {
      const recorded = recordings.get(request)
      if (recorded !== undefined && (typeof payload === 'string' || Buffer.isBuffer(payload))) {
        if (payload.length <= mostBytes) recorded.answerBody = payload.toString()
      }
      done(null, payload)
    })
    app.addHook('onResponse', (request, reply, done) => {
      finish(request, reply, false)
      done()
    })
  },
  { name: 'flow-recorder' },
)

function begin(at: Seconds): Recording {
  return {
    at,
    startedMs: performance.now(),
    passed: [],
    writes: [],
    notes: [],
    requestBody: [],
    answerBody: '',
    finished: false,
  }
}

/**
 * Records what the store commits for each request. Decisions of several requests run in one batch, each in the
 * context of its request.
 */
function recordedStore(store: Store, current: AsyncLocalStorage<Recording>): Store {
  return {
    ...store,
    transact: async (kind, key, decide) => {
      const recorded = current.getStore()
      if (recorded === undefined) return store.transact(kind, key, decide)
      let attempt = begin(recorded.at)
      const keep = () => {
        recorded.passed.push(...attempt.passed)
        recorded.writes.push(...attempt.writes)
      }
      try {
        const result = await store.transact(kind, key, (record) => {
          // A decision may run again; only the last run counts.
          attempt = begin(recorded.at)
          const decision = current.run(attempt, () => decide(record))
          attempt.writes.push(...decision.writes)
          return decision
        })
        keep()
        return result
      } catch (error) {
        // A rejection may be committed with its writes; a store that fails has written nothing.
        if (error instanceof Error && error.name !== 'OAuthError') attempt.writes.length = 0
        keep()
        throw error
      }
    },
    write: async (...writes) => {
      const recorded = current.getStore()
      await store.write(...writes)
      recorded?.writes.push(...writes)
    },
  }
}
