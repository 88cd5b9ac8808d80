import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describeFailure, failuresIn } from './failures.ts'
import { quickStart } from './quick-start.ts'

const compiled = fileURLToPath(new URL('../.tap/compiled', import.meta.url))
/** The line of a file: `ok 3 - test/keys/ring.test.ts # time=834.5ms`. */
const lineOfFile = /^(ok|not ok) \d+ - (\S+) # time=([\d.]+)ms/

/**
 * Runs tap with these arguments: prints a line for each file that ends, and all failures at the end. The reporters of
 * tap draw each assertion, which costs half as much CPU time as the tests do.
 */
export async function runTap(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly isFine: boolean; readonly tap: string }> {
  const child = spawn('tap', ['--reporter=tap', ...args], {
    env: { ...process.env, ...quickStart(compiled), ...environment },
    stdio: ['inherit', 'pipe', 'inherit'],
  })
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    const [, status, file, time] = lineOfFile.exec(line) ?? []
    if (status !== undefined)
      process.stdout.write(`${status.padEnd(6)} ${file}, ${(Number(time) / 1000).toFixed(1)} s\n`)
  }
  const tap = lines.join('\n')
  for (const failure of failuresIn(tap)) process.stdout.write(`\n${describeFailure(failure)}`)
  return { isFine: (await exit) === 0, tap }
}
