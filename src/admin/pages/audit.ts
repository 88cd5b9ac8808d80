import type { FastifyInstance } from 'fastify'
import { type AuditEvent, type AuditEventName, auditEventNames } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { AppDeps, PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { instantOf } from '../../system/system.ts'
import { findByLogin } from '../../users/search.ts'
import { csvHeader, eventAsCsv, eventAsJson } from '../operations/event-lines.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/audit': AdminModel & {
      readonly events: readonly ShownEvent[]
      readonly names: readonly AuditEventName[]
      /** What is shown of it. */
      readonly filter: Readonly<Record<'event' | 'user' | 'client' | 'since' | 'until', string>>
      /** Whether the page loads again by itself. */
      readonly follows: boolean
      readonly followUrl: string
      readonly exportUrl: string
      readonly csvUrl: string
      readonly nextUrl?: string
    }
  }
}

interface ShownEvent extends AuditEvent {
  /** The name of the user it is about, if they still exist. */
  readonly username?: string
  readonly clientName?: string
  /** The administrator who did it. */
  readonly actor?: string
}

const onPage = 50
/** A download has at most this many events, newest first. */
const mostExported = 10_000
const exportedAtOnce = 1000
/** So many clients of operators are looked through for a name. */
const mostNamed = 1000
/** How often a page that follows the log loads again. */
const followSeconds = 5

/**
 * Returns the filter that a query names. A user is named by user name, email address or `sub`, an app by its id or by
 * the name that an operator gave it.
 */
async function filterOf(query: Parameters, store: AppDeps['store']) {
  const text = (name: string) => (single(query, name) ?? '').trim().slice(0, 300)
  const filter = {
    event: text('event'),
    user: text('user'),
    client: text('client'),
    since: text('since'),
    until: text('until'),
  }
  const { user } = await findByLogin(store, filter.user)
  // As the fields send them, in UTC.
  const [since, until] = [instantOf(`${filter.since}Z`), instantOf(`${filter.until}Z`)]
  return {
    filter,
    wanted: {
      name: auditEventNames.find((name) => name === filter.event),
      // A removed user has no name any more, but can be found by `sub`.
      userId: filter.user === '' ? undefined : (user?.id ?? filter.user),
      clientId: filter.client === '' ? undefined : await clientIdOf(filter.client, store),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until: until + 59 }),
    },
  }
}

/** Returns the id of the client with this id or name; the text itself if there is none any more. */
export async function clientIdOf(text: string, store: AppDeps['store']): Promise<string> {
  if ((await store.find('client', text)) !== undefined) return text
  const named = await store.page('client', { only: 'integration', limit: mostNamed })
  return named.find(({ row }) => row.name?.toLowerCase() === text.toLowerCase())?.row.id ?? text
}

/** The audit log, newest first. */
export function auditPage(_app: FastifyInstance, { service, store }: PageDeps): AdminPage {
  const url = service.prefix + adminPath('audit')
  return {
    path: '/audit',
    section: 'audit',
    show: async ({ query, reply, render }) => {
      const { filter, wanted } = await filterOf(query, store)
      const before = readCursor(single(query, 'after'))
      const { events, next } = await store.auditPage({ ...wanted, before, limit: onPage })
      const follows = single(query, 'follow') !== undefined && before === undefined
      // Without a script: the browser loads the page again.
      if (follows) reply.header('refresh', followSeconds)
      const ids = events.flatMap(({ userId, facts: { actor } }) =>
        [userId, actor].filter((id) => id !== undefined),
      )
      const users = await Promise.all([...new Set(ids)].map((id) => store.find('user', String(id))))
      const names = new Map(users.flatMap((user) => (user ? [[user.id, user.username]] : [])))
      const clientIds = new Set(events.flatMap(({ clientId }) => clientId ?? []))
      const clients = await Promise.all([...clientIds].map((id) => store.find('client', id)))
      const clientNames = new Map(clients.flatMap((client) => (client ? [[client.id, client.name]] : [])))
      const named = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
      const linkTo = (path: string, more: Readonly<Record<string, string>> = {}) =>
        `${url}${path}?${new URLSearchParams({ ...named, ...more })}`
      return render('admin/audit', {
        events: events.map((event) => {
          const [username, actor] = [event.userId, event.facts['actor']].map((id) => names.get(String(id)))
          const clientName = clientNames.get(event.clientId ?? '')
          return { ...event, ...omitUndefined({ username, actor, clientName }) }
        }),
        names: auditEventNames,
        filter,
        follows,
        followUrl: follows ? linkTo('') : linkTo('', { follow: '1' }),
        exportUrl: linkTo('/export'),
        csvUrl: linkTo('/export', { format: 'csv' }),
        ...(next !== undefined && { nextUrl: linkTo('', { after: cursorOf(next) }) }),
      })
    },
  }
}

/** The newest events of the log as a file: a line of JSON each, or of CSV. */
export function auditExport(_app: FastifyInstance, { store }: PageDeps): AdminPage {
  return {
    path: '/audit/export',
    section: 'audit',
    show: async ({ query, reply }) => {
      const { wanted: filter } = await filterOf(query, store)
      const isCsv = single(query, 'format') === 'csv'
      const lines: string[] = []
      for (let before: number | undefined; lines.length < mostExported; ) {
        const { events, next } = await store.auditPage({ ...filter, before, limit: exportedAtOnce })
        lines.push(...events.map(isCsv ? eventAsCsv : eventAsJson))
        before = next
        if (before === undefined) break
      }
      return reply
        .header('cache-control', 'no-store')
        .header('content-disposition', `attachment; filename="audit.${isCsv ? 'csv' : 'jsonl'}"`)
        .header('x-content-type-options', 'nosniff')
        .type(`${isCsv ? 'text/csv' : 'application/jsonl'}; charset=utf-8`)
        .send((isCsv ? csvHeader : '') + lines.join(''))
    },
  }
}
