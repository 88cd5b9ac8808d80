/** Where the executable starts: `npm run build` puts this, all it imports and Node into one file. */
import './thread-pool.ts'
import { main } from './main.ts'

/** Long after starting, and early enough to be done before anybody looks. */
const afterStarting = 2000

void main(process.argv).then((code) => {
  process.exitCode = code
})
setTimeout(() => void returnMemory(), afterStarting).unref()

/**
 * Starting leaves 20 MB of garbage behind. V8 returns memory to the system when nothing happens for some seconds after
 * a full collection, and a server that rests never comes to its first: this is it.
 */
async function returnMemory(): Promise<void> {
  const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([
    import('node:v8'),
    import('node:vm'),
  ])
  setFlagsFromString('--expose-gc')
  runInNewContext('gc({ type: "major", execution: "async" })')
}
