import type { FastifyInstance } from 'fastify'
import { type AuditEvent, type AuditEventName, auditEventNames } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { AppDeps, PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { isoInstant } from '../../system/system.ts'
import { findByLogin } from '../../users/search.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/audit': AdminModel & {
      readonly events: readonly ShownEvent[]
      readonly names: readonly AuditEventName[]
      /** What is shown of it. */
      readonly filter: Readonly<Record<'event' | 'user' | 'client', string>>
      /** Whether the page loads again by itself. */
      readonly follows: boolean
      readonly followUrl: string
      readonly exportUrl: string
      readonly nextUrl?: string
    }
  }
}

interface ShownEvent extends AuditEvent {
  /** The name of the user it is about, if they still exist. */
  readonly username?: string
  /** The administrator who did it. */
  readonly actor?: string
}

const onPage = 50
/** A download has at most this many events, newest first. */
const mostExported = 10_000
const exportedAtOnce = 1000
/** How often a page that follows the log loads again. */
const followSeconds = 5

/** Returns the filter that a query names. A user is named by user name, email address or `sub`. */
async function filterOf(query: Parameters, store: AppDeps['store']) {
  const text = (name: string) => (single(query, name) ?? '').trim().slice(0, 300)
  const filter = { event: text('event'), user: text('user'), client: text('client') }
  const { user: known } = await findByLogin(store, filter.user)
  return {
    filter,
    wanted: {
      name: auditEventNames.find((name) => name === filter.event),
      // A removed user has no name any more, but can be found by `sub`.
      userId: filter.user === '' ? undefined : (known?.id ?? filter.user),
      clientId: filter.client === '' ? undefined : filter.client,
    },
  }
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
      const named = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
      const linkTo = (path: string, more: Readonly<Record<string, string>> = {}) =>
        `${url}${path}?${new URLSearchParams({ ...named, ...more })}`
      return render('admin/audit', {
        events: events.map((event) => {
          const [username, actor] = [event.userId, event.facts['actor']].map((id) => names.get(String(id)))
          return { ...event, ...(username && { username }), ...(actor && { actor }) }
        }),
        names: auditEventNames,
        filter,
        follows,
        followUrl: follows ? linkTo('') : linkTo('', { follow: '1' }),
        exportUrl: linkTo('/export'),
        ...(next !== undefined && { nextUrl: linkTo('', { after: cursorOf(next) }) }),
      })
    },
  }
}

/** The newest events of the log as a file, a line of JSON each. */
export function auditExport(_app: FastifyInstance, { store }: PageDeps): AdminPage {
  return {
    path: '/audit/export',
    section: 'audit',
    show: async ({ query, reply }) => {
      const { wanted } = await filterOf(query, store)
      const lines: string[] = []
      for (let before: number | undefined; lines.length < mostExported; ) {
        const { events, next } = await store.auditPage({ ...wanted, before, limit: exportedAtOnce })
        lines.push(...events.map(lineOf))
        before = next
        if (before === undefined) break
      }
      return reply
        .header('cache-control', 'no-store')
        .header('content-disposition', 'attachment; filename="audit.jsonl"')
        .header('x-content-type-options', 'nosniff')
        .type('application/jsonl; charset=utf-8')
        .send(lines.join(''))
    },
  }
}

function lineOf({ name, at, by, from, userId, clientId, facts }: AuditEvent): string {
  const event = { at: isoInstant(at), event: name, by, from, sub: userId, client_id: clientId, ...facts }
  return `${JSON.stringify(event)}\n`
}
