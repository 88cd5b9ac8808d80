import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { type LogoutDelivery, logoutDeliveryKind } from '../domain/logout-delivery.ts'
import { FetchFailed } from '../fetch/exchange.ts'
import { count } from '../http/count.ts'
import { finishAtClose } from '../http/drain.ts'
// Brings `app.outgoing`.
import type {} from '../http/outgoing.ts'
import { repeat } from '../maintenance.ts'
import { leaseDelivery, logoutTokenClaims, logoutUriOf, settleDelivery, type Try } from './rules.ts'

/** How often a node looks for deliveries that are due. */
const pauseMilliseconds = 1000
/** At most this many requests of one node at once. */
const mostAtOnce = 16
/** At most this many of them to one client: one that does not respond leaves room for the others. */
const mostOfClient = 4
/** How many due deliveries are read, to find some of other clients behind those of one. */
const mostRead = 1000
const timeoutSeconds = 5
/** Logout requests to one origin: all users of a client may be signed out together. */
const perOriginPerMinute = 600

/**
 * Sends logout tokens, OpenID Connect Back-Channel Logout §2.5. Every node does: a lease in the store decides which
 * one sends a delivery. Closing the server waits for the requests that are under way, and leaves the others to the
 * next node.
 */
export function startSender(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store, keys, clock, random, fetchUrl } = deps
  /** By sid. */
  const underWay = new Map<string, { readonly clientId: string; readonly running: Promise<void> }>()
  const server = repeat(app, pauseMilliseconds, async () => {
    try {
      if (underWay.size < mostAtOnce) {
        const due = await store.listKind(logoutDeliveryKind, { madeUntil: clock(), limit: mostRead })
        for (const delivery of due) begin(delivery)
      }
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'looking for logout deliveries failed')
    }
    return pauseMilliseconds
  })
  finishAtClose(app, () => [...underWay.values()].map(({ running }) => running))

  function begin({ sid, clientId }: LogoutDelivery): void {
    const ofClient = [...underWay.values()].filter((one) => one.clientId === clientId).length
    if (server.isClosed || underWay.has(sid)) return
    if (underWay.size >= mostAtOnce || ofClient >= mostOfClient) return
    const running = deliver(sid)
      .catch((error) => app.log.warn({ err: error, sid }, 'a logout delivery is left for later'))
      .finally(() => underWay.delete(sid))
    underWay.set(sid, { clientId, running })
  }

  async function deliver(sid: string): Promise<void> {
    const leased = await store.transact(logoutDeliveryKind, sid, (found) => leaseDelivery(found, clock()))
    if (leased === undefined) return
    const one = await trySending(leased)
    const settled = await store.transact(logoutDeliveryKind, sid, (found) =>
      settleDelivery(found, leased, one, config.backchannelLogout.keepSeconds, clock()),
    )
    if (settled === undefined) return
    count('logout_deliveries_total', 'Logout requests to clients, by their result.', { outcome: settled })
    if (settled !== 'delivered')
      app.log.warn({ clientId: leased.clientId, sid, ...one }, `logout: ${settled}`)
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
      return error.fault === 'budget' ? { result: 'postponed' } : { result: 'failed', error: error.message }
    }
  }
}
