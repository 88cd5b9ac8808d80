/**
 * The configuration for Litestream: the disk of a busy server is lost, and a restore has what was acknowledged more
 * than a second before. LITESTREAM names the program; without it, go builds it, which takes minutes.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import t from 'tap'
import { check, checkSingleUse, createLedger } from '../faults/load/ledger.ts'
import { createLoad } from '../faults/load/load.ts'
import { createDice } from '../fuzz/dice.ts'
import { ended, newFolder, spawnFile } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'

const litestreamModule = 'github.com/benbjohnson/litestream/cmd/litestream@v0.5.18'
const configuration = fileURLToPath(new URL('../../deploy/litestream.yml', import.meta.url))
const seed = process.env['FAULTS_SEED'] ?? String(Date.now())

function buildLitestream(): string {
  const folder = newFolder(t)
  const { status, stderr } = spawnSync('go', ['install', litestreamModule], {
    env: { ...process.env, GOBIN: folder },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return `${folder}/litestream`
}

t.test(`a disk that is lost costs at most the last second (seed ${seed})`, async (t) => {
  const litestream = process.env['LITESTREAM'] ?? buildLitestream()
  const [data, replica, port] = [newFolder(t), `${newFolder(t)}/copy`, await freePort()]
  const settings = {
    port,
    LYCHGATE_LOG_LEVEL: 'fatal',
    LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
    LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
  }
  const environment = { LITESTREAM_DATABASE: `${data}/lychgate.db`, LITESTREAM_REPLICA: `file://${replica}` }
  let running = await startProcess(t, data, settings)
  const { server } = running
  const copying = spawnFile(litestream, ['replicate', '-config', configuration], environment)
  t.teardown(() => copying.kill('SIGKILL'))
  const copyingEnd = ended(copying)
  const load = createLoad(server, createDice(seed))
  const { ledger } = load
  load.begin()
  while (ledger.clients.length < 5 || ledger.approvals.length < 40) await setTimeout(50)

  const before = {
    clients: [...ledger.clients],
    consents: [],
    approvals: ledger.approvals.map((approval) => ({ approval, ...structuredClone({ ...approval }) })),
  }
  // The promise is about time, so this is the one place that waits for a clock.
  await setTimeout(1000)
  const settled = before.approvals.filter(
    ({ approval, touched }) => touched % 2 === 0 && approval.touched === touched,
  )
  t.equal(copying.exitCode, null, 'it still copies')
  copying.kill('SIGKILL')
  await running.stop('SIGKILL')
  await load.end()
  await copyingEnd
  t.strictSame(ledger.faults, [], 'the load noticed nothing of the copy')
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${data}/lychgate.db${suffix}`, { force: true })
  rmSync(`${data}/.lychgate.db-litestream`, { recursive: true, force: true })

  const restore = ['restore', '-config', configuration, `${data}/lychgate.db`]
  const restored = await ended(spawnFile(litestream, restore, environment))
  t.equal(restored.code, 0, restored.stderr)
  cpSync(`${data}/lychgate.db`, `${replica}.checked`)
  const database = new Database(`${replica}.checked`, { readonly: true })
  t.equal(database.pragma('integrity_check', { simple: true }), 'ok')
  database.close()
  running = await startProcess(t, data, settings)
  const found = createLedger()
  found.approvals.push(...settled)
  await check(server, found, { ...before, approvals: found.approvals })
  t.strictSame(found.faults, [], `${settled.length} of ${before.approvals.length} grants were left alone`)
  await checkSingleUse(server, found)
  t.strictSame(found.faults, [], 'no code and no refresh token works twice')
  t.ok(settled.length > 5)
})
