import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import type { Finding } from '../domain/finding.ts'
import { count, countOngoing } from '../system/count.ts'
// Brings `app.isDraining`.
import type {} from './drain.ts'
import { earlyHeaders } from './malformed-http.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns what `/admin` says about the load of the last hour; undefined if nothing was rejected. */
    readonly loadFinding: () => Finding | undefined
    /** Marks the routes of a scope as pages for users, which are rejected last, and by an error page. */
    readonly rejectPagesLast: (scope: FastifyInstance) => void
  }
}

/** Who sends a request, judged by its head. */
type Sender = 'anonymous' | 'client' | 'user'

/**
 * For how long the event loop may have been busy with the requests that arrived together, in milliseconds, until the
 * next one of that sender is rejected. Users come last: a rejected one has to begin again.
 */
const budgets = { anonymous: 20, client: 30, user: 60 } as const satisfies Record<Sender, number>
/** So many of a turn are always served: a few slow requests, or a pause of the machine, are not overload. */
const alwaysServed = 100
/** A burst is served, however large: turns have to be late for so long, without one on time in between. */
const patienceMilliseconds = 200
/** After so long without a rejection the server is not overloaded any more. */
const calmMilliseconds = 5000
const hourMilliseconds = 3_600_000

/** What an operator can do about too much load. */
export const loadChange =
  'use more cores (workers), add nodes that share a PostgreSQL database, or lower requestsPerMinute'

const description = 'the server has more requests than it can serve; try again shortly'
const body = JSON.stringify({ error: 'temporarily_unavailable', error_description: description })
const head = {
  ...earlyHeaders,
  'content-type': 'application/json; charset=utf-8',
  'content-length': body.length,
  'cache-control': 'no-store',
  'retry-after': '1',
} as const

/**
 * Rejects requests that the server cannot serve in time, before they cost anything: 503 with `Retry-After`, RFC 9110
 * §15.6.4. What arrived together waits for what is ahead of it in the same turn of the event loop, so the length of
 * that turn is the delay, and the requests in it are the queue. `/livez` and `/readyz` always get their response.
 * @param now In milliseconds.
 */
export const loadShedding = fp<{ now?: () => number }>(
  async (app, { now = () => performance.now() }) => {
    let [turnStart, turnEnd, inTurn] = [0, 0, 0]
    let lateSince = Number.POSITIVE_INFINITY
    const endTurn = () => {
      turnEnd = now()
      const isLate = inTurn > alwaysServed && turnEnd - turnStart >= budgets.anonymous
      lateSince = isLate ? Math.min(lateSince, turnStart) : Number.POSITIVE_INFINITY
      inTurn = 0
    }
    /** How long this turn has taken so far, if it has many requests and those before it were late, too. */
    const lateness = () =>
      inTurn > alwaysServed && turnStart - lateSince >= patienceMilliseconds ? now() - turnStart : 0
    const state = overload(app, now)

    const alwaysHealthy = new Set(['/livez', '/readyz'])
    const pages = new Set<string>()
    const senderOf = ({ method, headers }: IncomingMessage): Sender => {
      if (headers.cookie !== undefined) return 'user'
      return headers.authorization !== undefined || method === 'POST' ? 'client' : 'anonymous'
    }

    /** Counts a request, and rejects it if it is late. @returns false if it is to be served. */
    const reject = (request: IncomingMessage, response: ServerResponse): boolean => {
      if (inTurn === 0) {
        turnStart = now()
        if (turnStart - turnEnd > patienceMilliseconds) lateSince = Number.POSITIVE_INFINITY
        setImmediate(endTurn)
      }
      inTurn += 1
      const late = lateness()
      if (late < budgets.anonymous || alwaysHealthy.has(request.url ?? '') || app.isDraining()) return false
      const sender = senderOf(request)
      // Pages have an error page for it: their hook rejects them.
      const isPage = pages.has(request.url?.split('?', 1)[0] ?? '')
      if (isPage || late < budgets[sender]) return false
      state.rejected(sender, late)
      response.writeHead(503, head).end(request.method === 'HEAD' ? undefined : body)
      return true
    }

    app.decorate('loadFinding', state.finding)
    app.decorate('rejectPagesLast', (scope) => {
      scope.addHook('onRoute', ({ url }) => void pages.add(url))
      scope.addHook('onRequest', function rejectLatePage(_request, _reply, done) {
        const late = lateness()
        if (late < budgets.user || app.isDraining()) return done()
        state.rejected('user', late)
        const headers = { 'retry-after': '1' }
        const detail = { rule: 'lychgate-load', headers, isRoutine: true } as const
        done(new OAuthError('temporarily_unavailable', description, detail))
      })
    })
    // Outermost, before Fastify and all that sends responses without it.
    app.addHook('onReady', async () => {
      const [serve] = app.server.listeners('request')
      app.server.removeAllListeners('request')
      app.server.on('request', (request, response) => {
        if (!reject(request, response)) serve?.call(app.server, request, response)
      })
    })
  },
  { name: 'load-shedding' },
)

/** Whether the server is overloaded: a metric, a line of the log when it begins and one when it ends, and a finding. */
function overload(app: FastifyInstance, now: () => number) {
  let [began, last, rejections] = [0, 0, 0]
  let end: (() => void) | undefined
  const settle = () => {
    const rest = last + calmMilliseconds - now()
    if (rest > 0 && !isClosed) {
      setTimeout(settle, rest).unref()
      return
    }
    app.log.warn({ rejected: rejections, ms: Math.round(last - began) }, 'no longer overloaded')
    end?.()
    end = undefined
  }
  let isClosed = false
  app.addHook('onClose', async () => {
    isClosed = true
    if (end !== undefined) settle()
  })
  return {
    rejected: (sender: Sender, late: number) => {
      last = now()
      count('requests_shed_total', 'Requests rejected with 503 because of overload.', { sender })
      rejections += 1
      if (end !== undefined) return
      ;[began, rejections] = [last, 1]
      end = countOngoing('overloaded', 'Whether requests are rejected because of overload.', {})
      app.log.warn({ delayMs: Math.round(late) }, 'overloaded: requests are rejected with 503')
      setTimeout(settle, calmMilliseconds).unref()
    },
    finding: (): Finding | undefined => {
      if (rejections === 0 || now() - last > hourMilliseconds) return undefined
      return {
        check: 'load',
        level: end === undefined ? 'warning' : 'problem',
        said: end === undefined ? 'was too high within the last hour' : 'is too high',
        found: `${rejections} requests were rejected with 503`,
        expected: 'none',
        change: [loadChange],
      }
    },
  }
}
