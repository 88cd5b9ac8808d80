/**
 * Builds the executable twice, compares the two, and runs its tests; packs the npm package, and runs its test.
 * `npm run check:build -- package` checks the package only, `-- executable` the other.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { Argument } from 'commander'
import { scriptCommand } from '../command.ts'
import { runTap } from '../tap.ts'
import { dist } from './bundle.ts'
import { buildExecutable } from './executable.ts'

const [file, again] = [`${dist}/lychgate`, `${dist}/lychgate.again`]
const tests = [
  'test/build/one-file.ts',
  'test/build/doors.ts',
  'test/build/newcomer.ts',
  'test/interop/*.test.ts',
  'test/process/kill.test.ts',
  'test/cli/server.test.ts',
  'test/cli/init.test.ts',
]

const { args } = scriptCommand('check:build', 'Build the executable and the package, and test them.')
  .addArgument(new Argument('[what]', 'only this').choices(['executable', 'package']))
  .parse()
const isFine = (await isExecutableFine()) && (await isPackageFine())
process.exitCode = isFine ? 0 : 1

async function isExecutableFine(): Promise<boolean> {
  if (args[0] === 'package') return true
  return (await isRepeatable()) && (await runTap(tests, { TEST_EXECUTABLE: file })).isFine
}

async function isPackageFine(): Promise<boolean> {
  return args[0] === 'executable' || (await runTap(['test/build/package.ts'])).isFine
}

async function isRepeatable(): Promise<boolean> {
  mkdirSync(dist, { recursive: true })
  await buildExecutable(file)
  await buildExecutable(again)
  const isSame = readFileSync(file).equals(readFileSync(again))
  for (const path of [again, `${again}.licences.txt`]) rmSync(path)
  process.stdout.write(`two builds of these sources ${isSame ? 'are the same bytes' : 'differ'}\n`)
  return isSame
}
