import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'

const compile = fileURLToPath(new URL('compile.cjs', import.meta.url))

/** One thread and fixed seeds: what is compiled is the same every time, and so are the bytes it is written down in. */
const repeatable = ['--single-threaded', '--hash-seed=7', '--random-seed=7']

/** Where V8 notes the flags a cache was made with. It takes no cache that was made with others. */
const flagHash = [12, 16] as const

/**
 * What V8 compiles of this bundle up to a server that is ready, always the same bytes. The flags that make it so do
 * not change what is compiled, so it is marked as made without them.
 * @throws {Error} when V8 would not take it.
 */
export function codeCache(bundle: string, assets: string, work: string): Buffer {
  const file = `${work}/cache`
  const run = [...repeatable, compile, bundle, file, assets, `${work}/data`]
  // The first run makes the keys, and which is made first is luck.
  for (let count = 0; count < 2; count += 1) {
    execFileSync(process.execPath, run, { env: { UV_THREADPOOL_SIZE: '1' }, stdio: 'pipe' })
  }
  const cache = readFileSync(file)
  new Script('').createCachedData().copy(cache, flagHash[0], ...flagHash)
  const { cachedDataRejected } = new Script(readFileSync(bundle, 'latin1'), { cachedData: cache })
  if (cachedDataRejected) throw new Error('V8 does not take the code cache it has made')
  return cache
}
