import { hash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isCore } from '../../test/mutants/core.ts'
import type { Fault } from '../../test/mutants/fault.ts'
import type { Breaker, TestFinder } from './check.ts'
import type { Killer } from './judge.ts'
import { tokensOf } from './tokens.ts'

/** A fault that a test has killed. */
interface Kill extends Killer {
  readonly id: string
  /** Covers the rule, the tokens of the source with the fault in it, and those of the test's file: no comment, no layout. */
  readonly hash: string
}

/** Which faults have been killed, and by which test: one line each in a file that is committed. */
export interface KillRecord {
  /** Whether a test has killed this fault, and neither the fault, nor the code of its source or test has changed since. */
  includes(fault: Fault): boolean
  /** The test that killed the fault the last time, whatever has changed since. */
  lastKiller(fault: Fault): Killer | undefined
  /** Writes the kill of a fault to the file, in place of an earlier one. */
  add(fault: Fault, killer: Killer): void
  /** Takes a fault that survives out of the file. */
  remove(fault: Fault): void
}

/** The file of the record, below the root. */
export const killsFile = 'test/mutants/kills.jsonl'

/**
 * Reads the record below `root`. Of tests it keeps the text they have now, and so does the breaker of sources: a file
 * that changes during a run must not be recorded as tried. Faults that are not among `faults` are left out.
 */
export function openKills(
  root: string,
  faults: readonly Fault[],
  testsOf: TestFinder,
  breakSource: Breaker,
): KillRecord {
  const path = join(root, killsFile)
  const tests = new Map(
    globSync('test/**/*.test.ts', { cwd: root }).map((file) => [
      file,
      readFileSync(join(root, file), 'utf8'),
    ]),
  )
  const known = new Set(faults.map(({ id }) => id))
  let kills = (existsSync(path) ? readFileSync(path, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Kill => JSON.parse(line))
    .filter(({ id }) => known.has(id))

  const hashOf = (fault: Fault, test: string) => {
    const rule = 'rule' in fault ? fault.rule : ''
    const broken = breakSource(fault)
    const covered = [fault.id, rule, codeOf(broken.file, broken.text), codeOf(test, tests.get(test) ?? '')]
    return hash('sha256', JSON.stringify(covered), 'hex').slice(0, 16)
  }
  const without = ({ id }: Fault) => kills.filter((kill) => kill.id !== id)
  const write = (changed: readonly Kill[]) => {
    kills = changed.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    writeFileSync(path, kills.map((kill) => `${JSON.stringify(kill)}\n`).join(''))
  }

  return {
    // Git keeps the lines of both sides of a merge, so a fault may have two.
    includes: (fault) =>
      kills.some(
        ({ id, test, hash }) =>
          id === fault.id && testsOf(fault).includes(test) && hash === hashOf(fault, test),
      ),
    lastKiller: ({ id }) => kills.find((kill) => kill.id === id),
    add: (fault, { test, title }) =>
      write([...without(fault), { id: fault.id, test, title, hash: hashOf(fault, test) }]),
    remove: (fault) => write(without(fault)),
  }
}

/** Returns the code of a file without comments and layout, which no test notices; what is not TypeScript stays. */
function codeOf(file: string, text: string): string {
  return (file.endsWith('.ts') ? tokensOf(text)?.joined : undefined) ?? text
}

/** Selects the faults of the core, and of the rest those whose kill is not on record or not of their current files. */
export function faultsToTry(faults: readonly Fault[], kills: KillRecord): readonly Fault[] {
  return faults.filter((fault) => isCore(fault) || !kills.includes(fault))
}
