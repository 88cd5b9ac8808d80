import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { consentKey, consentKind, endConnection, endConnections, endGrant } from '../../domain/connections.ts'
import { currentGrant, isLoss } from '../../domain/current-grant.ts'
import { accept, type Write } from '../../domain/decision.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import { parametersOf } from '../../http/parameters.ts'
import { leftOfSubjects } from '../../http/token-reader.ts'
import type { ConnectionSummary } from '../../storage/store.ts'
import {
  ago,
  type DescribedClient,
  describeClient,
  foreignResources,
  type NamedResource,
  type RedirectTarget,
  redirectTarget,
} from '../describe.ts'
import { layOutScope, type OfferedScopes, scopesFor } from '../scopes.ts'
import { type AccountModel, type AccountPage, sectionPath, type Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-apps': AccountModel & {
      /** One for each client: every installation of an app that registered itself is a client. */
      readonly apps: readonly ConnectedApp[]
      /** How many apps all pages have together. */
      readonly count: number
      readonly previousUrl?: string
      readonly nextUrl?: string
    }
  }
}

interface ConnectedApp extends DescribedClient {
  readonly clientId: string
  /** Newest first; none where only a remembered consent is left. */
  readonly grants: readonly ConnectedGrant[]
  /** The number of older grants. */
  readonly grantsNotShown: number
  /** Whether a consent is remembered: the app may get the same scope again without asking. */
  readonly remembered: boolean
}

/** A live grant, and the scopes it has. Without a redirect target, no browser was sent back to the app. */
interface ConnectedGrant extends OfferedScopes, Partial<RedirectTarget> {
  readonly id: string
  readonly grantedAgoSeconds: Seconds
  /** When its tokens were last refreshed; absent before the first time. */
  readonly usedAgoSeconds?: Seconds
  /** When it ends unless it is refreshed before. */
  readonly endsInSeconds: Seconds
  /** The app that the user approved, whose token the client exchanged. */
  readonly through?: string
  /** The resources of the grant, if it is not only the service itself. */
  readonly resources: readonly NamedResource[]
}

/** Limits of a page, so that no number of grants makes it slow. */
const appsOnPage = 20
const grantsOfApp = 20
/** More apps than any user has: each is named in the audit log when all are disconnected. */
export const everyApp = 100_000

/**
 * The apps connected to an account. Ends one grant, all of an app, or all of them, OpenID Connect Core §16.18: every
 * token is revoked with the response, and no remembered consent grants them again.
 */
export function appsPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { store, service } = deps
  const describe = describer(app, deps)
  const action = service.prefix + sectionPath('apps')

  /** Reads the page of this number, or the last one if there are fewer. */
  const listed = async (userId: string, now: Seconds, number: number) => {
    const read = (page: number) =>
      store.connections(userId, { now, limit: appsOnPage, offset: (page - 1) * appsOnPage })
    const asked = await read(number)
    if (asked.count > 0 || number === 1) return { number, ...asked }
    const last = Math.max(1, Math.ceil((await read(1)).count / appsOnPage))
    return { number: last, ...(await read(last)) }
  }
  const isConnected = async (userId: string, clientId: string, now: Seconds) =>
    (await store.find(consentKind, consentKey(userId, clientId))) !== undefined ||
    (await store.grantsOf(userId, [clientId], { now, limit: 1 })).length > 0
  /** Takes the lock of the user: a grant that is being inserted is waited for, and ends too. */
  const end = (userId: string, writes: readonly Write[]) =>
    store.transact('user', userId, () => accept(undefined, ...writes))

  return {
    path: sectionPath('apps'),
    section: 'apps',
    show: async (visit) => {
      const { user, now, request, render } = visit
      const { number, count, page } = await listed(user.id, now, pageNumber(request.query))
      const clientIds = page.map(({ clientId }) => clientId)
      // Both reads look at every grant of the user, and a page may show hundreds: requests are served in between.
      await nextTurn()
      const grants = await store.grantsOf(user.id, clientIds, { now, limit: grantsOfApp })
      await nextTurn()
      const grantsBy = Map.groupBy(grants, ({ clientId }) => clientId)
      const apps = await Promise.all(
        page.map((each) => describe(visit, each, grantsBy.get(each.clientId) ?? [])),
      )
      return render('account-apps', {
        apps: apps.flat(),
        count,
        ...(number > 1 && { previousUrl: `${action}?page=${number - 1}` }),
        ...(number * appsOnPage < count && { nextUrl: `${action}?page=${number + 1}` }),
      })
    },
    submit: async ({ form, user, now, context, done }) => {
      const revocation = { userId: user.id, ...context }
      const [grantId, clientId] = [single(form, 'grant'), single(form, 'client')]
      if (grantId !== undefined) {
        const isEnded = await store.transact('grant', grantId, (grant) => endGrant(grant, revocation))
        return done(isEnded ? 'disconnected' : 'gone')
      }
      if (clientId !== undefined) {
        if (!(await isConnected(user.id, clientId, now))) return done('gone')
        await end(user.id, endConnection({ clientId }, revocation))
        return done('disconnected')
      }
      if (single(form, 'every') === undefined) return done('gone')
      const { page: every } = await store.connections(user.id, { now, limit: everyApp, offset: 0 })
      await end(user.id, endConnections(every, revocation))
      return done('all-disconnected')
    },
  }
}

/** Parses `page` of a query; the first for anything that is no number of a page. */
function pageNumber(query: unknown): number {
  const text = single(parametersOf(query), 'page')
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1
}

const nothing = { scope: [], resource: [] }

/** Describes a connection for the page; none for a client that was deleted in the meantime. */
function describer(
  app: FastifyInstance,
  { store, service, declared }: Needs<'store' | 'service' | 'declared'>,
) {
  const scopesIn = scopesFor(service, app.texts, declared.scopes)
  /** @param current What is left of it. */
  const describeGrant = (
    grant: Grant,
    current: Pick<Grant, 'scope' | 'resource'>,
    language: string,
    now: Seconds,
  ): ConnectedGrant => ({
    id: grant.id,
    grantedAgoSeconds: ago(grant.approvedAt, now),
    ...(grant.rotatedAt !== undefined && { usedAgoSeconds: ago(grant.rotatedAt, now) }),
    endsInSeconds: (grant.refreshExpiresAt ?? grant.expiresAt) - now,
    ...(grant.redirectUri !== '' && redirectTarget(grant.redirectUri)),
    ...layOutScope(current.scope, scopesIn(language), () => true),
    resources: foreignResources(current.resource, service, language),
  })

  /** None for a token that ended with the one that it was exchanged for. */
  const describeLive = async (
    grant: Grant,
    client: Client,
    language: string,
    now: Seconds,
  ): Promise<readonly ConnectedGrant[]> => {
    const found = currentGrant(grant, client, service)
    const current = isLoss(found) ? nothing : found
    if (grant.exchangedFrom === undefined) return [describeGrant(grant, current, language, now)]
    const left = await leftOfSubjects(grant.exchangedFrom, current, { store, service })
    if (isLoss(left)) return []
    const { clientId } = grant.exchangedFrom
    const through = (await app.resolveClient(clientId))?.name ?? clientId
    return [{ ...describeGrant(grant, left, language, now), through }]
  }

  return async (
    { now, request }: Visit,
    { clientId, grants: count, remembered }: ConnectionSummary,
    grants: readonly Grant[],
  ): Promise<readonly ConnectedApp[]> => {
    const client = await app.resolveClient(clientId)
    if (client === undefined) return []
    const live = await Promise.all(grants.map((grant) => describeLive(grant, client, request.language, now)))
    const grantsNotShown = Math.max(0, count - grants.length)
    const shown = live.flat()
    if (shown.length + grantsNotShown === 0 && !remembered) return []
    const described = describeClient(client, request, service, now)
    return [{ clientId, ...described, grants: shown, grantsNotShown, remembered }]
  }
}
