/**
 * The disk of a busy server is full: by a limit on the size of its files, and on a small file system where one can be
 * mounted.
 */
import { spawnSync } from 'node:child_process'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { platform } from 'node:os'
import t, { type Test } from 'tap'
import { newFolder } from '../helpers/command.ts'
import { callApi, obtainTokens, register, type TestClient } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { check, createLedger } from './load/ledger.ts'

/** How to fill a disk on this machine, and empty it again. */
interface Disk {
  fill(pid: number): void
  free(pid: number): void
}

const runs = (command: string, ...args: readonly string[]) => spawnSync(command, args).status === 0

async function fillsUp(t: Test, data: string, disk: Disk): Promise<void> {
  const port = await freePort()
  const settings = { port, LYCHGATE_LOG_LEVEL: 'fatal' }
  const running = await startProcess(t, data, settings)
  const { server } = running
  const pid = running.child.pid ?? 0
  const client = await register(server)
  const { access_token: access } = await obtainTokens(server, client, { user: devAlice })
  const kept: TestClient[] = [client]
  const tryToRegister = async () => {
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'x'.repeat(100), redirect_uris: [client.redirectUri] }),
    })
    const body = (await response.json()) as { readonly client_id?: string; readonly error?: string }
    if (response.status === 201) kept.push({ ...client, id: body.client_id ?? '' })
    return { status: response.status, retryAfter: response.headers.get('retry-after'), error: body.error }
  }

  disk.fill(pid)
  let rejected = await tryToRegister()
  for (let count = 0; rejected.status === 201 && count < 5000; count += 1) rejected = await tryToRegister()
  const unavailable = { status: 503, retryAfter: '1', error: 'temporarily_unavailable' }
  t.strictSame(rejected, unavailable)
  for (let count = 0; count < 20; count += 1) {
    const next = await tryToRegister()
    if (next.status !== 201) t.strictSame(next, unavailable)
  }
  t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 200, 'reads succeed')
  t.equal((await fetch(`${server.issuer}/livez`)).status, 200)

  disk.free(pid)
  t.match(await tryToRegister(), { status: 201 }, 'it goes on without a restart')
  t.equal((await fetch(`${server.issuer}/readyz`)).status, 200)
  await obtainTokens(server, client, { user: devAlice })
  t.equal(running.child.exitCode, null)

  await running.stop('SIGKILL')
  await startProcess(t, data, settings)
  const ledger = createLedger()
  await check(server, ledger, { clients: kept, consents: [], approvals: [] })
  t.strictSame(ledger.faults, [], `all ${kept.length} clients that were acknowledged are there`)
}

if (runs('prlimit', '--version')) {
  t.test('when files cannot grow, writes are 503, and succeed again when they can', async (t) => {
    const data = newFolder(t)
    const journal = `${data}/lychgate.db-wal`
    const limit = (pid: number, bytes: string) => {
      if (!runs('prlimit', '--pid', String(pid), `--fsize=${bytes}:`)) throw new Error('prlimit failed')
    }
    await fillsUp(t, data, {
      fill: (pid) => limit(pid, String(statSync(journal).size + 50_000)),
      free: (pid) => limit(pid, 'unlimited'),
    })
  })
} else {
  t.comment(`SKIPPED: ${platform()} has no prlimit`)
  t.not(process.env['CI'], 'true', 'nothing is skipped with CI=true')
}

const folder = newFolder(t)
if (runs('mount', '-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder)) {
  t.teardown(() => spawnSync('umount', ['--lazy', folder]))
  t.test('when the file system is full, writes are 503, and succeed again when there is space', async (t) => {
    const filler = `${folder}/filler`
    await fillsUp(t, folder, {
      fill: () => {
        for (let size = 3_000_000; size > 100_000; size -= 100_000) {
          try {
            writeFileSync(filler, Buffer.alloc(size))
            return
          } catch {
            // Larger than the remaining space.
          }
        }
        throw new Error('the file system cannot be filled')
      },
      free: () => rmSync(filler),
    })
  })
} else t.comment('not run: this user cannot mount a small file system')
