import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { newFolder } from './command.ts'
import { freePort } from './free-port.ts'
import { devAlice, type ServerProcess, startProcess } from './process.ts'
import { newUser, type TestUser } from './user.ts'

/** A file of examples/. */
export const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))

/** The development server for the examples, at free ports. */
export interface ExampleServer {
  readonly issuer: string
  readonly process: ServerProcess
  /** Alice, before she signs in. */
  readonly user: TestUser
  /** The identifier that replaces the address in examples/lychgate.yaml. */
  resource(written: string): string
  /** What an operator's command needs to reach the same store. */
  readonly location: readonly string[]
}

/** Starts `lychgate dev --config examples/lychgate.yaml`. */
export async function startExampleServer(t: Test): Promise<ExampleServer> {
  const data = newFolder(t)
  const config = join(data, 'lychgate.yaml')
  const yaml = readFileSync(example('lychgate.yaml'), 'utf8')
  const origins = new Map<string, string>()
  for (const [written] of yaml.matchAll(/http:\/\/127\.0\.0\.1:\d+/g)) {
    origins.set(written, `http://127.0.0.1:${await freePort()}`)
  }
  const resource = (text: string) =>
    [...origins].reduce((replaced, [written, free]) => replaced.replaceAll(written, free), text)
  writeFileSync(config, resource(yaml))
  const server = await startProcess(t, data, { LYCHGATE_CONFIG: config })
  const { issuer } = server.server
  return {
    issuer,
    process: server,
    user: newUser({ issuer }, devAlice),
    resource,
    location: ['--data', data, '--config', config],
  }
}

/** A running program of examples/. */
export interface RunningExample {
  readonly child: ChildProcess
  /** Its output, once that matches; rejects if the program ends first. */
  until(pattern: RegExp): Promise<string>
  /** Its output, and how it ended. */
  end(): Promise<{ readonly code: number | null; readonly output: string }>
  /** Ends it as an operator would. */
  stop(): Promise<number | null>
}

/** Starts a program of examples/ as its README does. */
export function runExample(
  t: Test,
  [name, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): RunningExample {
  // Without NODE_OPTIONS, as a reader runs it: the hooks tap puts into children do not know TypeScript.
  const command = ['-u', 'NODE_OPTIONS', process.execPath, example(name), ...args]
  const child = spawn('env', command, { env: { ...process.env, ...environment } })
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const changed = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
      for (const look of changed) look()
    })
  }
  return {
    child,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => pattern.test(output) && resolve(output)
        changed.add(look)
        look()
        void ended.then((code) => reject(new Error(`${name} ended with ${code}: ${output}`)))
      }),
    end: async () => ({ code: await ended, output }),
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** The URL that a program printed for a user to open. */
export function addressIn(output: string): string {
  const address = /^http\S+\/oauth\/authorize\?\S+$/m.exec(output)?.[0]
  if (address === undefined) throw new Error(`no address: ${output}`)
  return address
}
