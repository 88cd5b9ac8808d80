import type { Fault } from '../../test/mutants/fault.ts'
import { type Clause, readLedger } from '../requirements/ledger.ts'

/** The MUSTs of shipped features, by whether a fault breaks them. */
export interface Ties {
  readonly tied: readonly Clause[]
  readonly untied: readonly Clause[]
}

/** Finds which MUSTs of tier 1 in the ledger at `root` have a fault of their own. */
export function tiesOf(faults: readonly Fault[], root: string): Ties {
  const rules = new Set(faults.flatMap((fault) => ('rule' in fault ? [fault.rule] : [])))
  const musts = readLedger(root)
    .documents.flatMap(({ clauses }) => clauses)
    .filter(({ tier, level, declined }) => tier === 1 && level.startsWith('MUST') && declined === undefined)
  return { tied: musts.filter(({ id }) => rules.has(id)), untied: musts.filter(({ id }) => !rules.has(id)) }
}
