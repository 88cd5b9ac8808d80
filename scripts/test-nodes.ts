/**
 * Runs the interop and concurrency tests again with servers of two and of four nodes on one PostgreSQL, where every
 * request goes to the next node. `npm run test:nodes -- test/some.test.ts` runs other files that way, TEST_POSTGRES
 * names an existing PostgreSQL, TEST_EXECUTABLE a file that each node runs: four processes are two nodes of two workers
 * then.
 */
import { globSync } from 'node:fs'
import { startPostgres } from '../test/storage/postgres-server.ts'
import { runTap } from './tap.ts'

const chosen = process.argv.slice(2)
const files =
  chosen.length > 0 ? chosen : ['test/conformance/concurrency.test.ts', ...globSync('test/interop/*.test.ts')]
const ends: (() => unknown)[] = []
let isFailed = false
try {
  const url = process.env['TEST_POSTGRES'] ?? (await startPostgres({ teardown: (end) => ends.push(end) })).url
  const isExecutable = process.env['TEST_EXECUTABLE'] !== undefined
  for (const [nodes, workers] of [[2, 1], isExecutable ? [2, 2] : [4, 1]] as const) {
    const each = workers === 1 ? '' : ` of ${workers} workers each`
    process.stdout.write(`${nodes} nodes${each}, every request to the next one\n`)
    const variables = { TEST_NODES: String(nodes), TEST_WORKERS: String(workers), TEST_POSTGRES: url }
    const { isFine } = await runTap(['--timeout=300', '--jobs=2', ...files], variables)
    isFailed ||= !isFine
  }
} finally {
  for (const end of ends) await end()
}
// Said aloud: the program that starts PostgreSQL ends this one with 0, whatever `process.exitCode` is.
process.exit(isFailed ? 1 : 0)
