import { type ChildProcess, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Test } from 'tap'
import { type Ended, ended, newFolder, run, start } from './command.ts'
import { freePort } from './free-port.ts'
import { devAlice } from './process.ts'
import type { TestServer } from './server.ts'

/** `lychgate serve` with two workers, with the users of a development server. */
export interface WorkersProcess {
  readonly server: TestServer
  readonly child: ChildProcess
  readonly environment: Readonly<Record<string, string>> & { readonly LYCHGATE_DATA: string }
  /** The process ids of the workers that are ready, from the log. */
  ready(): readonly number[]
  /** Waits until the log has so many lines with this message. */
  logged(message: string, times?: number): Promise<void>
  /** Everything written to stdout so far. */
  output(): string
  readonly end: Promise<Ended>
}

export async function startWorkers(
  t: Test,
  settings: Readonly<Record<string, string>> = {},
): Promise<WorkersProcess> {
  const [data, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const environment = {
    LYCHGATE_DATA: data,
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: String(port),
    LYCHGATE_SECRET: 'a secret of a server with two workers',
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_LIMITS_GRANTS_PER_USER_AND_CLIENT: '0',
    ...settings,
  }
  for (const { username, password } of [devAlice, { username: 'bob', password: 'bob-in-dev' }])
    await run(['user', 'add', username], { environment, input: `${password}\n` })
  const child = start(['serve', '--workers', '2'], environment)
  t.teardown(() => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.on('data', (chunk) => {
    seen += chunk
  })
  const end = ended(child)
  const linesWith = (message: string) =>
    seen.split('\n').filter((line) => line.includes(`"msg":${JSON.stringify(message)}`))
  const logged = async (message: string, times = 1) => {
    const patience = AbortSignal.timeout(120_000)
    while (linesWith(message).length < times) {
      patience.throwIfAborted()
      if (child.exitCode !== null) throw new Error(`it ended: ${(await end).stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await logged('ready', 2)
  return {
    server: { issuer, origin: issuer } as TestServer, // as much of it as the flow needs
    child,
    environment,
    ready: () => linesWith('ready').map((line) => JSON.parse(line).pid),
    logged,
    output: () => seen,
    end,
  }
}

/** The processes that this one has started and that run. */
export function childrenOf({ pid }: Pick<ChildProcess, 'pid'>): readonly number[] {
  if (process.platform !== 'linux')
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number)
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}

/** The status of a GET on a new connection; an error where none comes. */
export function getAlone(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(60_000)
    const asked = request(url, { agent: false, headers, signal }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    asked.on('error', reject)
    asked.end()
  })
}
