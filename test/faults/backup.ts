/** A backup is taken while clients of every kind are at work, and restored when the server is gone. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { newFolder, run } from '../helpers/command.ts'
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

/** Looks again and again; a condition that is never met ends with the time limit of the test. */
async function until(isMet: () => boolean): Promise<void> {
  while (!isMet()) await setTimeout(50)
}
