import type { FastifyInstance } from 'fastify'
import { type LogoutDelivery, logoutDeliveryKind } from '../../domain/logout-delivery.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { finishAtClose } from '../../http/drain.ts'
// Brings `app.outgoing`.
import type {} from '../../http/outgoing.ts'
import { repeat } from '../../http/repeat.ts'
import { FetchFailed } from '../../outbound/exchange.ts'
import { count } from '../../system/count.ts'
import {
  failuresBeforePause,
  isSilent,
  type LogoutPause,
  logoutPauseKind,
  longestWaitSeconds,
  noteResponse,
  takeTurn,
} from './pause.ts'
import { leaseDelivery, logoutTokenClaims, logoutUriOf, settleDelivery, type Try } from './rules.ts'

/** How often a node looks for deliveries that are due. */
const pauseMilliseconds = 1000
/** At most this many requests of one node at once. */
const mostAtOnce = 16
/** At most this many of them to one client: one that does not respond leaves room for the others. */
const mostOfClient = 4
/** How many due deliveries are read at once, those of each client in turn. */
const mostRead = 256
const timeoutSeconds = 5
/** Logout requests to one origin: all users of a client may be signed out together. */
const perOriginPerMinute = 600

/**
 * Sends logout tokens, OpenID Connect Back-Channel Logout §2.5. Every node does: a lease in the store decides which
 * one sends a delivery. Closing the server waits for the requests that are under way, and leaves the others to the
 * next node.
 */
export function startSender(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'fetchUrl'>,
): void {
  const { config, service, store, keys, clock, random, fetchUrl } = deps
  /** By sid. */
  const underWay = new Map<string, { readonly clientId: string; readonly running: Promise<void> }>()
  const server = repeat(app, pauseMilliseconds, async () => {
    try {
      if (underWay.size < mostAtOnce) await beginDue(clock())
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'looking for logout deliveries failed')
    }
    return pauseMilliseconds
  })
  finishAtClose(app, () => [...underWay.values()].map(({ running }) => running))

  async function beginDue(now: Seconds): Promise<void> {
    const page = { madeUntil: now, limit: mostRead, ofClient: mostOfClient }
    const due = await store.listInTurn(logoutDeliveryKind, page)
    if (due.length === 0) return
    const always = { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostRead }
    const pauses = new Map((await store.listKind(logoutPauseKind, always)).map((one) => [one.clientId, one]))
    for (const delivery of due) {
      const pause = pauses.get(delivery.clientId)
      if (!isSilent(pause)) begin(delivery, mostOfClient, deliver)
      else if (now >= delivery.endedAt + longestWaitSeconds) begin(delivery, mostOfClient, giveUp)
      else if (now >= pause.until) begin(delivery, 1, probe)
    }
  }

  function begin(
    { sid, clientId }: LogoutDelivery,
    mostNow: number,
    work: (delivery: Pick<LogoutDelivery, 'sid' | 'clientId'>) => Promise<void>,
  ): void {
    const ofClient = [...underWay.values()].filter((one) => one.clientId === clientId).length
    if (server.isClosed || underWay.has(sid)) return
    if (underWay.size >= mostAtOnce || ofClient >= mostNow) return
    const running = work({ sid, clientId })
      .catch((error) => app.log.warn({ err: error, sid }, 'a logout delivery is left for later'))
      .finally(() => underWay.delete(sid))
    underWay.set(sid, { clientId, running })
  }

  async function probe(delivery: Pick<LogoutDelivery, 'sid' | 'clientId'>): Promise<void> {
    const decide = (pause?: LogoutPause) => takeTurn(pause, clock())
    if (await store.transact(logoutPauseKind, delivery.clientId, decide)) await deliver(delivery)
  }

  const giveUp: typeof probe = ({ sid }) =>
    settle(sid, async () => ({
      result: 'failed',
      error: 'the client did not respond for an hour',
      last: true,
    }))

  const deliver: typeof probe = ({ sid, clientId }) =>
    settle(sid, async (leased) => {
      const tried = await trySending(leased)
      if (tried.result !== 'delivered' && tried.result !== 'failed') return tried
      const responded = tried.result === 'delivered' || tried.silent !== true
      const pause = await store.transact(logoutPauseKind, clientId, (before) =>
        noteResponse(before, clientId, responded, clock()),
      )
      if (pause?.failures === failuresBeforePause)
        app.log.warn({ clientId }, 'logout: the client does not respond, its deliveries wait')
      return tried
    })

  async function settle(sid: string, attempt: (leased: LogoutDelivery) => Promise<Try>): Promise<void> {
    const leased = await store.transact(logoutDeliveryKind, sid, (found) => leaseDelivery(found, clock()))
    if (leased === undefined) return
    const outcome = await attempt(leased)
    const settled = await store.transact(logoutDeliveryKind, sid, (found) =>
      settleDelivery(found, leased, outcome, config.backchannelLogout.keepSeconds, clock()),
    )
    if (settled === undefined) return
    count('logout_deliveries_total', 'Logout requests to clients, by their result.', { outcome: settled })
    if (settled !== 'delivered')
      app.log.warn({ clientId: leased.clientId, sid, ...outcome }, `logout: ${settled}`)
  }

  async function trySending(delivery: LogoutDelivery): Promise<Try> {
    const client = await app.resolveClient(delivery.clientId)
    const uri = client && logoutUriOf(client)
    if (client === undefined || uri === undefined) return { result: 'dropped' }
    const jti = random(16).toString('base64url')
    const claims = logoutTokenClaims(delivery, service.issuer, jti, clock())
    const { idTokenAlgorithms } = app.grantRulesOf(client)
    const algorithm = keys.usable(client.idTokenSignedResponseAlg, idTokenAlgorithms?.[0])
    const token = await keys.sign(algorithm, 'logout+jwt', claims)
    const form = new URLSearchParams({ logout_token: token })
    const { id: clientId } = client
    const sent = { id: jti, clientId, at: clock(), startedMs: performance.now(), url: uri, form: `${form}` }
    const note = (status: number | undefined, result: string) => {
      for (const hear of app.outgoing ?? [])
        hear({ ...sent, step: 'logout token', result, ...(status !== undefined && { status }) })
    }
    try {
      const { status } = await fetchUrl(
        uri,
        { purpose: 'form' },
        { form, timeoutSeconds, perOriginPerMinute },
      )
      note(status, 'delivered')
      return { result: 'delivered' }
    } catch (error) {
      if (!(error instanceof FetchFailed)) throw error
      note(error.status, error.message)
      if (error.fault === 'budget') return { result: 'postponed' }
      const silent = error.status === undefined ? ({ silent: true } as const) : {}
      return { result: 'failed', error: error.message, ...silent }
    }
  }
}
