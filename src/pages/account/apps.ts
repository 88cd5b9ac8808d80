import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { consentKey, consentKind, endConnection, endConnections, endGrant } from '../../domain/connections.ts'
import { accept, type Write } from '../../domain/decision.ts'
import { clientWords, resourceName } from '../../domain/localized.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import type { ConnectionSummary } from '../../storage/store.ts'
import { fromPlace } from '../i18n/place.ts'
import { scopesFor } from '../i18n/scopes.ts'
import { ownPages } from '../own-pages.ts'
import { layOutScope } from '../sign-in/consent-areas.ts'
import type { ConnectedApp, ConnectedGrant } from './models.ts'

/** Apps on a page, and grants of one app: a page takes a time that no number of grants can stretch. */
const appsOnPage = 20
const grantsOfApp = 20
/** More apps than anybody has: each is named in the audit log when all are disconnected. */
const everyApp = 100_000

/**
 * What a user allowed apps to do, and taking it back, OpenID Connect Core §16.18: one grant, one app, or all. It
 * ends with the response, in every token, and no remembered consent brings it back.
 */
export function connectedApps(app: FastifyInstance, deps: AppDeps): void {
  const { store, service } = deps
  const { visit, submission, back } = ownPages(app, deps)
  const describe = describer(app, deps)
  /** The page of this number; the last one where there are fewer. */
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
    (await store.grantsOf(userId, clientId, { now, limit: 1 })).length > 0
  /** Decides about the user: a grant that is being inserted is waited for, and ends too. */
  const end = (userId: string, writes: readonly Write[]) =>
    store.transact('user', userId, () => accept(undefined, ...writes))

  app.get('/account/apps', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'apps' })
    if (here === undefined) return reply
    const { frame, hidden, now } = here
    const { id: userId } = here.user
    const { number, count, page } = await listed(userId, now, pageNumber(request.query))
    const apps = await Promise.all(page.map((connection) => describe(userId, connection, now, reply)))
    const action = `${service.prefix}/account/apps`
    const model = {
      frame,
      action,
      hidden,
      apps: apps.flat(),
      count,
      ...(number > 1 && { previousUrl: `${action}?page=${number - 1}` }),
      ...(number * appsOnPage < count && { nextUrl: `${action}?page=${number + 1}` }),
    }
    return reply.page('account-apps', model)
  })

  app.post('/account/apps', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, { section: 'apps' })
    if (here === undefined) return reply
    const { form, user, now } = here
    const withdrawal = { userId: user.id, ...userContext(request, now) }
    const [grantId, clientId] = [single(form, 'grant'), single(form, 'client')]
    if (grantId !== undefined) {
      const ended = await store.transact('grant', grantId, (grant) => endGrant(grant, withdrawal))
      return back(reply, ended ? 'disconnected' : 'gone')
    }
    if (clientId !== undefined) {
      if (!(await isConnected(user.id, clientId, now))) return back(reply, 'gone')
      await end(user.id, endConnection({ clientId }, withdrawal))
      return back(reply, 'disconnected')
    }
    if (single(form, 'every') === undefined) return back(reply, 'gone')
    const { page: every } = await store.connections(user.id, { now, limit: everyApp, offset: 0 })
    await end(user.id, endConnections(every, withdrawal))
    return back(reply, 'all-disconnected')
  })
}

/** The page asked for; the first for anything that is no number of one. */
function pageNumber(query: unknown): number {
  const text = single(parametersOf(query), 'page')
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1
}

/** Puts a connection into words; a client that has gone in the meantime is none any more. */
function describer(app: FastifyInstance, { service, store }: Pick<AppDeps, 'service' | 'store'>) {
  const scopesIn = scopesFor(service.catalogue, app.texts)
  const grantInWords = (grant: Grant, language: string, now: Seconds): ConnectedGrant => {
    const isOwn = grant.resource.every((identifier) => identifier === service.resources.own.identifier)
    return {
      id: grant.id,
      grantedAgoSeconds: since(grant.approvedAt, now),
      ...(grant.rotatedAt !== undefined && { usedAgoSeconds: since(grant.rotatedAt, now) }),
      endsInSeconds: (grant.refreshExpiresAt ?? grant.expiresAt) - now,
      redirectHost: new URL(grant.redirectUri).host,
      loopback: isLoopbackUri(grant.redirectUri),
      ...layOutScope(grant.scope, scopesIn(language), () => true),
      others: grant.scope.filter((name) => !service.scopes.has(name)),
      resources: isOwn ? [] : grant.resource.map((identifier) => nameResource(identifier, language)),
    }
  }
  const nameResource = (identifier: string, language: string) => {
    const resource = service.resources.find(identifier)
    return { identifier, name: resource ? resourceName(resource, language) : identifier }
  }
  const registeredFrom = ({ registeredFrom: prefix }: Client, { request }: FastifyReply) =>
    prefix === undefined ? undefined : fromPlace(prefix, addressPrefix(request.ip), !service.https)

  return async (
    userId: string,
    { clientId, grants: count, remembered }: ConnectionSummary,
    now: Seconds,
    reply: FastifyReply,
  ): Promise<readonly ConnectedApp[]> => {
    const client = await store.find('client', clientId)
    if (client === undefined) return []
    const { language } = reply.request
    const { name } = clientWords(client, language)
    const from = registeredFrom(client, reply)
    const grants = await store.grantsOf(userId, clientId, { now, limit: grantsOfApp })
    const described = {
      clientId,
      ...(name !== undefined && { name }),
      selfRegistered: client.origin === 'registered',
      registeredAgoSeconds: since(client.issuedAt, now),
      ...(from !== undefined && { registeredFrom: from }),
      grants: grants.map((grant) => grantInWords(grant, language, now)),
      grantsNotShown: Math.max(0, count - grants.length),
      remembered,
    }
    return [described]
  }
}

function since(at: Seconds, now: Seconds): Seconds {
  return Math.max(1, now - at)
}
