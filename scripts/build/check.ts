/** Builds the executable twice, compares the two, and runs the tests of the executable against it. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { runTap } from '../tap.ts'
import { dist } from './bundle.ts'
import { buildExecutable } from './executable.ts'

const [file, again] = [`${dist}/lychgate`, `${dist}/lychgate.again`]
const tests = [
  'test/build/one-file.ts',
  'test/build/package.ts',
  'test/interop/*.test.ts',
  'test/process/kill.test.ts',
  'test/cli/server.test.ts',
  'test/cli/init.test.ts',
]

process.exitCode = (await isRepeatable()) ? await runTests() : 1

async function isRepeatable(): Promise<boolean> {
  mkdirSync(dist, { recursive: true })
  await buildExecutable(file)
  await buildExecutable(again)
  const isSame = readFileSync(file).equals(readFileSync(again))
  for (const path of [again, `${again}.licences.txt`]) rmSync(path)
  process.stdout.write(`two builds of these sources ${isSame ? 'are the same bytes' : 'differ'}\n`)
  return isSame
}

async function runTests(): Promise<number> {
  const { isFine } = await runTap(tests, { TEST_EXECUTABLE: file })
  return isFine ? 0 : 1
}
