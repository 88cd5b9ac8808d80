import { fileURLToPath } from 'node:url'
import { runNode } from './run-node.ts'

const compile = fileURLToPath(new URL('compile.cjs', import.meta.url))
const mark = fileURLToPath(new URL('mark.cjs', import.meta.url))

/** One thread and fixed seeds: the same code is compiled every time, and serialised to the same bytes. */
const repeatable = ['--single-threaded', '--hash-seed=7', '--random-seed=7']

/**
 * Writes the code cache of V8 for this bundle up to its first response, always the same bytes. The flags that ensure
 * this do not change the compiled code, so it is marked as made without them.
 */
export function writeCodeCache(work: string): void {
  const [bundle, cache] = ['lychgate.cjs', 'lychgate.cache']
  // The first run makes the keys, in random order.
  for (let count = 0; count < 2; count += 1) {
    runNode(work, [...repeatable, compile, bundle, cache, 'assets', 'data'], { UV_THREADPOOL_SIZE: '1' })
  }
  runNode(work, [mark, bundle, cache])
}
