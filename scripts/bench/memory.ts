import { setTimeout as wait } from 'node:timers/promises'
import { UserAgent } from '../../test/helpers/user-agent.ts'
import { authorizeUrl, benchPassword, type Target } from './measured-servers.ts'
import type { MemorySequence } from './result.ts'
import { work } from './work.ts'
import { type Lane, type Workload, workloads } from './workloads.ts'

/** As in deploy/: memory of a password check is returned to the system at once. */
export const allocatorSetting = { MALLOC_MMAP_THRESHOLD_: '1048576' }

/** Each sign-in checks a password: 19 MiB of argon2id in a thread of the pool. */
const signIn: Workload = {
  name: 'sign-in',
  lane: async ({ issuer, paths, app }: Target): Promise<Lane> => ({
    operate: async () => {
      const agent = new UserAgent(issuer)
      const landing = await agent.open(issuer + authorizeUrl(paths, app))
      if (landing.at !== 'page') throw new Error('the sign-in page is skipped')
      const after = await agent.submit(landing.page, { username: 'bench', password: benchPassword })
      // One user, many browsers: some are throttled, and the rest keep the thread pool busy.
      if (after.at !== 'redirect' && ![429, 503].includes(after.page.status))
        throw new Error(`signing in leads to ${after.page.status} ${after.page.url}`)
    },
    close: () => {},
  }),
}

/**
 * Runs every workload, one after the other, on one process, and reads its resident memory after each and after a
 * pause.
 */
export async function measureMemory(
  target: Target,
  connections: number,
  seconds: number,
  restSeconds: number,
): Promise<MemorySequence['after']> {
  const seen = [{ workload: 'start', memory: target.server.memory() }]
  for (const workload of [...workloads, signIn]) {
    const lanes = await Promise.all(Array.from({ length: connections }, () => workload.lane(target)))
    const most = 100 * seconds
    const isPrepared = lanes[0]?.prepare !== undefined
    if (isPrepared) await Promise.all(lanes.map((lane) => lane.prepare?.(most)))
    await work(lanes, target.server, seconds, isPrepared ? { most } : {})
    for (const lane of lanes) lane.close()
    seen.push({ workload: workload.name, memory: target.server.memory() })
  }
  await wait(restSeconds * 1000)
  return [...seen, { workload: `${restSeconds} s of rest`, memory: target.server.memory() }]
}
