import type { FastifyInstance } from 'fastify'
import { type Mounts, settle } from './mount.ts'
import type { DevDeps } from './plugin.ts'
import { type Snapshot, withIssuer } from './snapshots.ts'

/** A second server that goes on from a snapshot, below the first. */
export interface Fork {
  readonly issuer: string
  readonly app: FastifyInstance
  close(): Promise<void>
}

/**
 * Starts the whole server once more at this issuer, with what is in the snapshot in a store of its own. Keys and clock
 * are those of the first: what was sealed before goes on to open, in both.
 */
export async function openFork(
  issuer: string,
  { contents }: Snapshot,
  { config: outerConfig, keys, clock, random }: DevDeps,
  outer: Mounts['outer'],
): Promise<Fork> {
  // Loaded on first use: the whole application depends on this file.
  const [{ buildApp }, { openStore }] = await Promise.all([import('../app.ts'), import('../storage/open.ts')])
  const store = await openStore('sqlite::memory:')
  await store.replace(withIssuer(contents, outerConfig.issuer, issuer))
  const config = { ...outerConfig, issuer }
  // Its requests are lines of the outer log.
  const app = await buildApp({ config, store, keys, clock, random }, { logTo: { write: () => {} } })
  settle(app, new URL(issuer).pathname, outer)
  await app.ready()
  const close = async () => {
    await app.close()
    await store.close()
  }
  return { issuer, app, close }
}
