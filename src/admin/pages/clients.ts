import type { FastifyInstance } from 'fastify'
import { isUnusedSince } from '../../clients/use.ts'
import { type Client, type ClientOrigin, clientOrigins, type Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { ago } from '../../pages/describe.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'
import { type ClientKind, kindOf } from './client-form.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/clients': AdminModel & {
      readonly clients: readonly ListedClient[]
      readonly search: string
      readonly only: ClientOrigin | 'unused' | ''
      readonly nextUrl?: string
    }
  }
}

interface ListedClient {
  readonly id: string
  readonly name?: string
  readonly kind: ClientKind
  readonly origin: ClientOrigin
  readonly url: string
  readonly addedAgoSeconds: Seconds
  /** Absent: it never got a token. */
  readonly usedAgoSeconds?: Seconds
  readonly locked: boolean
}

const onPage = 50
/** How many rows a search looks at before it asks whether to go on. */
const searched = 500
/** From then on a client counts as unused. */
const unusedSeconds: Seconds = 90 * 86_400

/** Every client, in the order in which they were added. */
export function clientsPage(_app: FastifyInstance, { service, store }: PageDeps): AdminPage {
  const url = service.prefix + adminPath('clients')
  const describe = (client: Client, now: Seconds): ListedClient => ({
    id: client.id,
    ...(client.name !== undefined && { name: client.name }),
    kind: kindOf(client),
    origin: client.origin,
    url: `${url}/${encodeURIComponent(client.id)}`,
    addedAgoSeconds: ago(client.issuedAt, now),
    ...(client.usedAt > client.issuedAt && { usedAgoSeconds: ago(client.usedAt, now) }),
    locked: client.lockedAt !== undefined,
  })
  return {
    path: '/clients',
    section: 'clients',
    show: async ({ query, now, render }) => {
      const search = (single(query, 'search') ?? '').trim().slice(0, 200)
      const asked = single(query, 'only') ?? ''
      const only = asked === 'unused' ? asked : (clientOrigins.find((origin) => origin === asked) ?? '')
      const wanted = search.toLowerCase()
      const isWanted = ({ id, name = '', ...client }: Client) =>
        (id === search || name.toLowerCase().includes(wanted)) &&
        (only !== 'unused' || isUnusedSince({ id, name, ...client }, now - unusedSeconds))
      const isSearch = search !== '' || only === 'unused'
      const rows = await store.page('client', {
        limit: (isSearch ? searched : onPage) + 1,
        after: readCursor(single(query, 'after')),
        only: only === '' || only === 'unused' ? undefined : only,
      })
      const most = isSearch ? searched : onPage
      const seen = rows.slice(0, most)
      const matching = seen.filter(({ row }) => isWanted(row))
      const shown = matching.slice(0, onPage)
      // A page that is full goes on after its last client, another one after the last that it looked at.
      const isFull = matching.length > onPage
      const last = isFull ? shown.at(-1) : seen.at(-1)
      const next = new URLSearchParams({
        ...(search && { search }),
        ...(only && { only }),
        after: cursorOf(last?.seq ?? 0),
      })
      return render('admin/clients', {
        clients: shown.map(({ row }) => describe(row, now)),
        search,
        only,
        ...((isFull || rows.length > most) && { nextUrl: `${url}?${next}` }),
      })
    },
  }
}
