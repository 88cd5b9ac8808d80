import type { Sample } from './result.ts'
import type { Lane } from './workloads.ts'

/** Lets all lanes work for this many seconds, or until the prepared operations, `most` per lane, are used up. */
export async function work(
  lanes: readonly Lane[],
  server: { cpu(): number },
  seconds: number,
  { most = Number.POSITIVE_INFINITY, ownCore = false } = {},
): Promise<Pick<Sample, 'operations' | 'seconds' | 'cpu' | 'latencies'>> {
  const latencies: number[] = []
  // A load that sleeps between responses would charge the slower server for waking it, each time. A load without a core
  // of
  // its own would use theirs.
  let isBusy = ownCore
  const stayAwake = () => void (isBusy && setImmediate(stayAwake))
  stayAwake()
  const cpu = server.cpu()
  const began = performance.now()
  const end = began + seconds * 1000
  await Promise.all(
    lanes.map(async (lane) => {
      for (let done = 0; done < most; done += 1) {
        const sent = performance.now()
        if (sent >= end) return
        await lane.operate()
        latencies.push(performance.now() - sent)
      }
    }),
  )
  const passed = (performance.now() - began) / 1000
  const used = server.cpu() - cpu
  isBusy = false
  return {
    operations: latencies.length,
    seconds: passed,
    cpu: used,
    latencies: Float64Array.from(latencies).sort(),
  }
}
