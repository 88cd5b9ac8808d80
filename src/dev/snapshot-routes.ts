import { Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import { isoInstant } from '../system.ts'
import { describeClock } from './clock-routes.ts'
import { type Fork, openFork } from './fork.ts'
import { requireBody } from './json-body.ts'
import type { DevPart } from './plugin.ts'
import { countsOf, restoreSnapshot, type Snapshot, takeSnapshot } from './snapshots.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Lets requests that come in the meantime wait until this is done. */
    holdRequests(work: () => Promise<void>): Promise<void>
  }
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

/** Decorates `app.holdRequests`: what begins while a store is replaced, begins after. */
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

/** Snapshots in memory: taken, restored, and forked to a second issuer. */
export const snapshotRoutes: DevPart = async (app, deps) => {
  const snapshots = new Map<string, Snapshot>()

  app.get('/snapshots', async () => ({
    snapshots: [...snapshots].map(([name, snapshot]) => describe(name, snapshot)),
  }))
  app.post<Named>('/snapshots/:name', async ({ params: { name } }, reply) => {
    requireName(name)
    const snapshot = await takeSnapshot(deps)
    snapshots.set(name, snapshot)
    return reply.code(201).send(describe(name, snapshot))
  })
  app.post<Named>('/snapshots/:name/restore', async ({ params: { name }, body }) => {
    const { keep_time: keepTime = false } = requireBody(RestoreRequest, body)
    const snapshot = requireSnapshot(snapshots, name)
    await app.holdRequests(() => restoreSnapshot(snapshot, deps, keepTime))
    return { ...describe(name, snapshot), clock: describeClock(deps.clock) }
  })
  app.delete<Named>('/snapshots/:name', async ({ params: { name } }, reply) => {
    requireSnapshot(snapshots, name)
    snapshots.delete(name)
    return reply.code(204).send()
  })
  if (!deps.isNested) await app.register(forkRoutes, { ...deps, snapshots })
}

const forkRoutes: (
  ...args: [
    Parameters<DevPart>[0],
    Parameters<DevPart>[1] & { readonly snapshots: ReadonlyMap<string, Snapshot> },
  ]
) => Promise<void> = async (app, { snapshots, ...deps }) => {
  const forks = new Map<string, Fork>()
  const root = `${deps.config.issuer}/_dev/forks`
  app.mounts.add(`${deps.service.prefix}/_dev/forks`, async (name, rest, method) =>
    method === 'DELETE' && rest === '' ? undefined : forks.get(name)?.app,
  )
  app.addHook('onClose', async () => {
    for (const fork of forks.values()) await fork.close()
  })

  app.get('/forks', async () => ({ forks: [...forks].map(([name, { issuer }]) => ({ name, issuer })) }))
  app.post<Named>('/snapshots/:name/fork', async ({ params: { name }, body }, reply) => {
    const { as = name } = requireBody(ForkRequest, body)
    const snapshot = requireSnapshot(snapshots, name)
    requireName(as)
    await forks.get(as)?.close()
    const fork = await openFork(`${root}/${as}`, snapshot, deps, app.mounts.outer)
    forks.set(as, fork)
    return reply.code(201).send({ name: as, issuer: fork.issuer })
  })
  app.delete<Named>('/forks/:name', async ({ params: { name } }, reply) => {
    const fork = forks.get(name)
    if (fork === undefined) throw missing('there is no such fork')
    forks.delete(name)
    await fork.close()
    return reply.code(204).send()
  })
}

function describe(name: string, snapshot: Snapshot) {
  return { name, taken_at: isoInstant(snapshot.takenAt), ...countsOf(snapshot) }
}

function requireSnapshot(snapshots: ReadonlyMap<string, Snapshot>, name: string): Snapshot {
  const snapshot = snapshots.get(name)
  if (snapshot !== undefined) return snapshot
  throw missing('there is no such snapshot')
}

function missing(description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule: 'lychgate-dev-snapshot', status: 404 })
}

/** It is part of URLs. */
function requireName(name: string): void {
  if (/^[\w-]{1,64}$/.test(name)) return
  throw new OAuthError(
    'invalid_request',
    'the name must have 1 to 64 letters, digits, hyphens and underscores',
    {
      rule: 'lychgate-dev-snapshot',
    },
  )
}
