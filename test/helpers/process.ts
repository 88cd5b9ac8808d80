import type { ChildProcess } from 'node:child_process'
import type { Test } from 'tap'
import { type Ended, ended, start } from './command.ts'
import { freePort } from './free-port.ts'
import type { TestServer } from './server.ts'

/** A development server in another process. */
export interface ServerProcess {
  /** As much of a test server as the flow needs. */
  readonly server: TestServer
  readonly child: ChildProcess
  /** Everything written to stdout so far. */
  output(): string
  stop(signal: NodeJS.Signals): Promise<Ended>
}

/** The user every development server has. */
export const devAlice = { username: 'alice', password: 'alice-in-dev' }

/** Starts `lychgate dev` on this data folder, by `launch`, and waits until it responds. */
export async function startProcess(
  t: Test,
  data: string,
  { port, ...environment }: { readonly port?: number } & Readonly<Record<string, unknown>> = {},
  launch: (...of: Parameters<typeof start>) => ChildProcess = start,
): Promise<ServerProcess> {
  const taken = port ?? (await freePort())
  const settings = Object.entries(environment).map(([name, value]) => [name, String(value)])
  const child = launch(['dev', '--port', String(taken), '--data', data], {
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_LIMITS_GRANTS_PER_USER_AND_CLIENT: '0',
    LYCHGATE_DRAIN_SECONDS: '0',
    ...Object.fromEntries(settings),
  })
  let seen = ''
  child.stdout?.on('data', (chunk) => {
    seen += chunk
  })
  const end = ended(child)
  t.teardown(() => child.kill('SIGKILL'))
  const issuer = `http://localhost:${taken}`
  const isUp = async () => (await fetch(`${issuer}/readyz`).catch(() => undefined))?.status === 200
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error(`it ended: ${(await end).stderr}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    server: { issuer, origin: issuer } as TestServer,
    child,
    output: () => seen,
    stop: (signal) => {
      child.kill(signal)
      return end
    },
  }
}
