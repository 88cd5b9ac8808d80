/** Snapshots of a development server, in memory. They can be restored, and forked to a second issuer. */
import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { openStore } from '../storage/open.ts'
import type { StoreContents } from '../storage/store.ts'
import { isoInstant } from '../system/system.ts'
import type { ClockChange } from './clock.ts'
import { describeClock } from './clock-routes.ts'
import { requireBody } from './json-body.ts'
import { listFor } from './list-page.ts'
import { type NestedIssuer, openNested } from './mount.ts'
import { type DevDeps, type DevPart, missing } from './part.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Delays requests that arrive during `work` until it has finished. */
    holdRequests(work: () => Promise<void>): Promise<void>
  }
}

/** The state of a development server at one instant. */
interface Snapshot {
  readonly takenAt: Seconds
  readonly contents: StoreContents
  /** Restores the clock: its distance to the machine's clock, or the instant at which it was frozen. */
  readonly time: ClockChange
}

const RestoreRequest = Type.Object(
  { keep_time: Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
)
const ForkRequest = Type.Object(
  { as: Type.Optional(Type.String({ minLength: 1 })) },
  { additionalProperties: false },
)

interface Named {
  readonly Params: { readonly name: string }
}

/** Decorates `app.holdRequests`: requests wait while the contents of the store are replaced. */
export const requestHold = fp(
  async (app) => {
    let held: Promise<void> | undefined
    app.addHook('onRequest', async () => {
      // One restore may follow another.
      while (held !== undefined) await held
    })
    app.decorate('holdRequests', async (work: () => Promise<void>) => {
      const done = (held ?? Promise.resolve()).then(work)
      const settled = done.catch(() => {})
      held = settled
      try {
        await done
      } finally {
        if (held === settled) held = undefined
      }
    })
  },
  { name: 'request-hold' },
)

/** Takes, lists, restores, removes and forks snapshots. */
export const snapshotRoutes: DevPart = async (app, deps) => {
  const { store, clock, keys } = deps
  const snapshots = new Map<string, Snapshot>()

  app.get('/snapshots', async (_request, reply) => {
    const described = [...snapshots].map(([name, snapshot]) => describe(name, snapshot))
    return listFor(reply, { snapshots: described }, () => ({
      title: 'Snapshots',
      lead: 'A snapshot has everything that is stored (users, clients, sessions, grants and keys) and the clock, in memory. Restore it, or fork it to a second issuer.',
      items: described.map(({ name, taken_at, users, clients, sessions, grants }) => ({
        name,
        text: `${users} users, ${clients} clients, ${sessions} sessions, ${grants} grants`,
        note: `Taken at ${taken_at}`,
      })),
      empty: 'No snapshot was taken.',
      example: `curl -s -X POST ${deps.service.issuer}/_dev/snapshots/before\ncurl -s -X POST ${deps.service.issuer}/_dev/snapshots/before/restore`,
    }))
  })
  app.post<Named>('/snapshots/:name', async ({ params: { name } }, reply) => {
    assertName(name)
    const contents = await store.contents()
    const takenAt = clock()
    const time = clock.isFrozen
      ? { set: takenAt, freeze: true }
      : { reset: true, advance: clock.offsetSeconds }
    const snapshot = { takenAt, contents, time }
    snapshots.set(name, snapshot)
    return reply.code(201).send(describe(name, snapshot))
  })
  app.post<Named>('/snapshots/:name/restore', async ({ params: { name }, body }) => {
    const { keep_time: keepTime = false } = requireBody(RestoreRequest, body)
    const snapshot = requireSnapshot(snapshots, name)
    await app.holdRequests(async () => {
      // The time is restored first, so that no key seems too old or too young.
      if (!keepTime) await clock.move(snapshot.time)
      await store.replace(snapshot.contents)
      await keys.reload()
    })
    return { ...describe(name, snapshot), clock: describeClock(clock) }
  })
  app.delete<Named>('/snapshots/:name', async ({ params: { name } }, reply) => {
    requireSnapshot(snapshots, name)
    snapshots.delete(name)
    return reply.code(204).send()
  })
  if (!deps.isNested) addForkRoutes(app, deps, snapshots)
}

/** A fork is a second server, mounted below this one, that continues from a snapshot. */
function addForkRoutes(app: FastifyInstance, deps: DevDeps, snapshots: ReadonlyMap<string, Snapshot>): void {
  const { config, service } = deps
  const forks = new Map<string, NestedIssuer>()
  app.mounts.add(`${service.prefix}/_dev/forks`, async (name, rest, method) =>
    method === 'DELETE' && rest === '' ? undefined : forks.get(name)?.app,
  )
  app.addHook('onClose', async () => {
    for (const fork of forks.values()) await fork.close()
  })

  app.get('/forks', async () => ({ forks: [...forks].map(([name, { issuer }]) => ({ name, issuer })) }))
  app.post<Named>('/snapshots/:name/fork', async ({ params: { name }, body }, reply) => {
    const { as = name } = requireBody(ForkRequest, body)
    const snapshot = requireSnapshot(snapshots, name)
    assertName(as)
    await forks.get(as)?.close()
    const issuer = `${config.issuer}/_dev/forks/${as}`
    const store = await openStore('sqlite::memory:')
    await store.replace(withIssuer(snapshot.contents, config.issuer, issuer))
    const fork = await openNested(deps, app.mounts.outer, { config: { ...config, issuer }, store })
    forks.set(as, fork)
    return reply.code(201).send({ name: as, issuer })
  })
  app.delete<Named>('/forks/:name', async ({ params: { name } }, reply) => {
    const fork = forks.get(name)
    if (fork === undefined) throw missing('lychgate-dev-snapshot', 'there is no such fork')
    forks.delete(name)
    await fork.close()
    return reply.code(204).send()
  })
}

function describe(name: string, { takenAt, contents }: Snapshot) {
  const count = (table: string) => contents[table]?.length ?? 0
  return {
    name,
    taken_at: isoInstant(takenAt),
    users: count('users'),
    clients: count('clients'),
    sessions: count('sessions'),
    grants: count('grants'),
  }
}

function requireSnapshot(snapshots: ReadonlyMap<string, Snapshot>, name: string): Snapshot {
  const snapshot = snapshots.get(name)
  if (snapshot !== undefined) return snapshot
  throw missing('lychgate-dev-snapshot', 'there is no such snapshot')
}

/** Names are part of URLs. */
function assertName(name: string): void {
  if (/^[\w-]{1,64}$/.test(name)) return
  const description = 'the name must have 1 to 64 letters, digits, hyphens and underscores'
  throw new OAuthError('invalid_request', description, { rule: 'lychgate-dev-snapshot' })
}

/** Where the URL of the issuer names its API. */
const columnsOfResources: readonly (readonly [table: string, column: string])[] = [
  ['grants', 'resource'],
  ['records', 'body'],
  ['clients', 'metadata'],
]

/** The same contents for another issuer: grants for the API of the one become grants for the API of the other. */
function withIssuer(contents: StoreContents, from: string, to: string): StoreContents {
  const name = new RegExp(`(?<![^\\s"])${from.replaceAll(/[.*+?^$()[\]{}|\\/]/g, '\\$&')}(?![^\\s"])`, 'g')
  const changed: Record<string, StoreContents[string]> = { ...contents }
  for (const [table, column] of columnsOfResources) {
    changed[table] = (contents[table] ?? []).map((row) => {
      const text = row[column]
      return typeof text === 'string' ? { ...row, [column]: text.replaceAll(name, () => to) } : row
    })
  }
  return changed
}
