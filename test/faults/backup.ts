/** A backup is taken while clients of every kind are at work, and restored when the server is gone. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { ended, newFolder, printed, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { check, checkSingleUse, createLedger } from './load/ledger.ts'
import { createLoad } from './load/load.ts'
import { addOperatorClients } from './load/operator-clients.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())

t.test(`a backup under load (seed ${seed}) has everything acknowledged before it began`, async (t) => {
  const [data, shelf, port, dice] = [newFolder(t), newFolder(t), await freePort(), createDice(seed)]
  const settings = { port, LYCHGATE_LOG_LEVEL: 'fatal', LYCHGATE_LIFETIMES_CODE_SECONDS: '600' }
  const operatorClients = await addOperatorClients(`sqlite:${data}/lychgate.db`, 12)
  let running = await startProcess(t, data, settings)
  const { server } = running
  const load = createLoad(server, dice, operatorClients)
  const { ledger } = load
  load.begin()
  // So much that some of it is left alone during the copy, however slow the machine is.
  await until(() => ledger.consents.length > 3 && ledger.approvals.length > 30)

  const before = {
    clients: [...ledger.clients],
    consents: [...ledger.consents],
    approvals: ledger.approvals.map((approval) => ({ approval, ...structuredClone({ ...approval }) })),
  }
  const backup = await run(['backup', '--data', data, '--json', `${shelf}/lychgate.db`])
  t.equal(backup.code, 0, backup.stderr)
  // What changed during the copy may or may not be in it; everything else must be in it unchanged.
  const settled = before.approvals.filter(
    ({ approval, touched }) => touched % 2 === 0 && approval.touched === touched,
  )
  const clientsThen = ledger.clients.length
  await until(() => ledger.clients.length > clientsThen + 3)
  await load.end()
  t.strictSame(ledger.faults, [], 'the load noticed nothing')
  t.equal(ledger.lost, 0)
  const { clients: copied } = JSON.parse(backup.stdout) as { readonly clients: number }
  t.ok(copied >= before.clients.length + operatorClients.length)
  t.ok(copied < ledger.clients.length + operatorClients.length, 'the load went on afterwards')

  await running.stop('SIGKILL')
  const restored = await run(['restore', '--data', data, '--json', `${shelf}/lychgate.db`])
  t.equal(restored.code, 0, restored.stderr)
  running = await startProcess(t, data, settings)
  const found = createLedger()
  found.approvals.push(...settled)
  await check(server, found, { ...before, approvals: found.approvals })
  t.strictSame(found.faults, [], `${settled.length} of ${before.approvals.length} grants were left alone`)
  await checkSingleUse(server, found)
  t.strictSame(found.faults, [])

  await running.stop('SIGTERM')
  const { replaced } = JSON.parse(restored.stdout) as { readonly replaced: string }
  t.equal((await run(['restore', '--data', data, replaced])).code, 0)
  await startProcess(t, data, settings)
  await check(server, ledger, ledger)
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [], 'what was replaced had everything, killed as it was')
  t.ok(settled.length > 0 && before.consents.length > 0)
})

/** A store of which a copy takes long enough to be interrupted. */
async function largeStore(t: Test): Promise<string> {
  const data = newFolder(t)
  await (await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })).stop('SIGTERM')
  const database = new Database(`${data}/lychgate.db`)
  database.exec('create table padding (bytes blob); insert into padding values (randomblob(60000000))')
  database.close()
  return data
}

t.test(
  'a copy or a rehearsal that is killed leaves nothing that counts, and the next one cleans up',
  async (t) => {
    const [data, shelf] = [await largeStore(t), newFolder(t)]
    const killed = async (args: readonly string[], isUnderWay: () => boolean) => {
      const child = start([...args, '--data', data, shelf])
      await until(isUnderWay)
      child.kill('SIGKILL')
      await ended(child)
    }
    const every = ['backup', '--every', '1h']
    await killed(every, () => readdirSync(shelf).length > 0)
    t.ok(readdirSync(shelf).every((name) => /\.db\.unfinished-\d+(?:-journal)?$/.test(name)))
    const none = await run(['restore', '--rehearse', '--data', data, shelf])
    t.match(none, { code: 1, stderr: /cannot be restored: there is no such file\n$/ })

    const child = start([...every, '--data', data, shelf])
    await printed(child, /a restore needs both/, child.stdout)
    child.kill('SIGTERM')
    t.match(await ended(child), { code: 0 })
    t.match(readdirSync(shelf), [/Z\.db$/])

    const rehearsal = `${data}/lychgate.db.rehearsal`
    await killed(['restore', '--rehearse'], () => existsSync(rehearsal))
    t.ok(existsSync(rehearsal))
    const rehearsed = await run(['restore', '--rehearse', '--data', data, shelf])
    t.match(rehearsed, { code: 0, stdout: /The backup is sound/ })
    t.notOk(existsSync(rehearsal))
  },
)

if (spawnSync('prlimit', ['--version']).status === 0) {
  t.test('a disk that is full leaves no copy, and a repeated one goes on when there is space', async (t) => {
    const [data, shelf] = [await largeStore(t), newFolder(t)]
    const limit = (pid = 0, bytes = 'unlimited') => {
      const { status } = spawnSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:`])
      if (status !== 0) throw new Error('prlimit failed')
    }
    const child = start(['backup', '--every', '1s', '--keep', '1', '--data', data, shelf])
    await printed(child, /a restore needs both/, child.stdout)
    const [first = ''] = readdirSync(shelf)
    limit(child.pid, '1000000')
    await printed(child, /^lychgate: file: nothing was backed up to [^\n]*; next try in 1 s\n/m)
    t.strictSame(readdirSync(shelf), [first], 'the last copy stays, and no part of another')
    limit(child.pid)
    await until(() => readdirSync(shelf).every((name) => /Z\.db$/.test(name) && name !== first))
    child.kill('SIGTERM')
    t.equal((await ended(child)).code, 0)

    const late = start(['restore', '--rehearse', '--data', data, shelf])
    limit(late.pid, '1000000')
    t.match(await ended(late), { code: 1, stderr: /^lychgate: file: [^\n]* cannot be restored: [^\n]*\n$/ })
    t.strictSame(
      readdirSync(data).filter((name) => name.includes('rehearsal')),
      [],
    )
  })
} else {
  t.comment('SKIPPED: there is no prlimit')
  t.not(process.env['CI'], 'true', 'nothing is skipped with CI=true')
}

/** Looks again and again; a condition that is never met ends with the time limit of the test. */
async function until(isMet: () => boolean): Promise<void> {
  while (!isMet()) await setTimeout(50)
}
