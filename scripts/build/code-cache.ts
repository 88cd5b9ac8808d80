import { fileURLToPath } from 'node:url'
import { runNode } from './run-node.ts'

const compile = fileURLToPath(new URL('compile.cjs', import.meta.url))
const mark = fileURLToPath(new URL('mark.cjs', import.meta.url))

/** One thread and fixed seeds: what is compiled is the same every time, and so are the bytes it is written down in. */
const repeatable = ['--single-threaded', '--hash-seed=7', '--random-seed=7']

/**
 * Writes down what V8 compiles of this bundle up to its first answer, always the same bytes. The flags that make it so
 * do not change what is compiled, so it is marked as made without them.
 */
export function writeCodeCache(work: string): void {
  const [bundle, cache] = ['lychgate.cjs', 'lychgate.cache']
  // The first run makes the keys, and which is made first is luck.
  for (let count = 0; count < 2; count += 1) {
    runNode(work, [...repeatable, compile, bundle, cache, 'assets', 'data'], { UV_THREADPOOL_SIZE: '1' })
  }
  runNode(work, [mark, bundle, cache])
}
