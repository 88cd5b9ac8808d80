import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { main } from '../../src/main.ts'
import type { Ended, Surroundings } from './command.ts'

type Said = { stdout: string; stderr: string }

/** The output of a command, without that of the test runner, which writes to the same streams. */
const ofCommand = new AsyncLocalStorage<Said>()

for (const stream of ['stdout', 'stderr'] as const) {
  const write = process[stream].write.bind(process[stream])
  process[stream].write = (...sent: unknown[]) => {
    const said = ofCommand.getStore()
    // `as`: passes its arguments through.
    if (said === undefined) return write(...(sent as Parameters<typeof write>))
    said[stream] += String(sent[0])
    return true
  }
}

/**
 * Runs command lines one after the other in this process, which costs a hundredth of a process each. There is no
 * terminal, and standard input is empty.
 */
export async function runAll(lines: readonly (readonly string[])[]): Promise<readonly Ended[]> {
  const results: Ended[] = []
  for (const line of lines) {
    const before = process.stdout.listeners('error')
    const said = { stdout: '', stderr: '' }
    const code = await ofCommand.run(said, () => main(['node', 'lychgate', ...line]))
    for (const listener of process.stdout.listeners('error')) {
      // `as`: Node types listeners by event, and lists them without it.
      if (!before.includes(listener)) process.stdout.off('error', listener as (error: Error) => void)
    }
    results.push({ code, ...said })
  }
  // The reads of one turn share a snapshot, which another connection of this process may have begun before the change.
  await setImmediate()
  return results
}

/** Runs one command line, with these settings added to those of the process, and this standard input. */
export async function runHere(
  line: readonly string[],
  { environment = {}, input = '' }: Surroundings = {},
): Promise<Ended> {
  const { stdin } = process
  Object.assign(process.env, environment)
  Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([input]) })
  try {
    const [result] = await runAll([line])
    if (result === undefined) throw new Error('nothing was run')
    return result
  } finally {
    Object.defineProperty(process, 'stdin', { configurable: true, value: stdin })
    for (const name of Object.keys(environment)) delete process.env[name]
  }
}
