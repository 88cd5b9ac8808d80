import type { FastifyInstance } from 'fastify'
import { openStore } from '../storage/open.ts'
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
  { config: outerConfig, keys, clock, random, buildNested }: DevDeps,
  outer: Mounts['outer'],
): Promise<Fork> {
  const store = await openStore('sqlite::memory:')
  await store.replace(withIssuer(contents, outerConfig.issuer, issuer))
  const config = { ...outerConfig, issuer }
  const app = await buildNested({ config, store, keys, clock, random })
  settle(app, new URL(issuer).pathname, outer)
  await app.ready()
  const close = async () => {
    await app.close()
    await store.close()
  }
  return { issuer, app, close }
}
