/** The entry point of the executable: `npm run build` puts this, all it imports and Node into one file. */
import './system/thread-pool.ts'
import { main } from './main.ts'

/** Long after the start, and early enough to be done before anyone measures. */
const afterStarting = 2000

void main(process.argv).then((code) => {
  process.exitCode = code
})
setTimeout(() => void returnMemory(), afterStarting).unref()

/**
 * A start leaves 20 MB of garbage, and space for young objects that grew to spare it collections
 * (scripts/build/executable.ts). V8 returns memory to the system some idle seconds after a full collection, and an idle
 * server never runs its first: this does. Space for young objects shrinks in the collection of the last resort, whatever
 * the load, and does not grow again.
 */
async function returnMemory(): Promise<void> {
  const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([
    import('node:v8'),
    import('node:vm'),
  ])
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--expose-gc')
  runInNewContext('gc({ type: "major", execution: "async", flavor: "last-resort" })')
}
