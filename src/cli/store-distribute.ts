import type { Command } from 'commander'
import { auditEvent } from '../domain/audit.ts'
import { loadConfig, storeUrl } from '../settings/load.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addOperatorFlags, type OperatorFlags } from './flags.ts'
import { operatorContext } from './operator.ts'
import { printJson } from './print.ts'

const help = `
Spreads the grants of a store over the machines of Citus. Stop every server first. It takes as long as PostgreSQL copies
the grants, in one transaction: if it fails, nothing has changed. There is no way back but lychgate store copy.
It names what is missing, and changes nothing, if Citus is not of a version that this was tried with, has no worker, or
would not be safe.

Examples:
  lychgate store distribute
  LYCHGATE_STORE_FILE=/etc/lychgate/store lychgate store distribute
`

/** Adds `lychgate store distribute`. */
export function addDistributeCommand(group: Command): void {
  const command = group
    .command('distribute')
    .description('spread the grants over the machines of Citus, while no server runs')
  addOperatorFlags(command, help).action(storeDistribute)
}

async function storeDistribute({ config: file, data, json }: OperatorFlags): Promise<void> {
  const url = storeUrl(loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file }))
  if (!/^postgres(?:ql)?:\/\//.test(url))
    throw new WrongUsage('store: must be a PostgreSQL database with Citus')
  const { distributeStore, openStore } = await import('../storage/open.ts')
  const facts = await distributeStore(url).catch((fault: Error) => {
    throw new CommandFailed(`store: ${fault.message}`, { cause: fault })
  })
  const store = await openStore(url)
  await store.write(auditEvent('store-distributed', operatorContext()))
  await store.close()
  if (json) return void printJson(facts)
  const { engine, shards, workers } = facts
  process.stdout.write(`${engine}: grants are in ${shards} parts on ${workers} machines.
Start every server again, with the coordinator as its store.\n`)
}
