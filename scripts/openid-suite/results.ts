import { type Plan, plansOf } from './plans.ts'
import type { ModuleResult } from './run-plan.ts'

/** What a run of a plan found. */
export interface PlanResult {
  readonly plan: Plan
  readonly modules: readonly ModuleResult[]
}

/** What was run, when, and on what. */
export interface Run {
  /** Of the suite. */
  readonly version: string
  readonly date: string
  /** Of this checkout. */
  readonly commit: string
}

const results = ['PASSED', 'REVIEW', 'SKIPPED', 'WARNING', 'FAILED'] as const
const columns = ['plan', 'variant', 'modules', ...results, 'suite', 'on', 'commit']
const [begin, end] = ['<!-- suite:start -->', '<!-- suite:end -->']
const row = (...cells: readonly unknown[]) => `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |')
/** The cells by which the row of a plan is found. */
const headOf = ({ title, note }: Pick<Plan, 'title' | 'note'>) => row(title, note)

/** The table of the plans that were run. */
export function tableOf(run: Run, found: readonly PlanResult[]): string {
  return [
    row(...columns.map((column) => column.toLowerCase())),
    row(...columns.map(() => '---')),
    ...found.map((result) => rowOf(run, result)),
  ].join('\n')
}

function rowOf({ version, date, commit }: Run, { plan, modules }: PlanResult): string {
  const counts = results.map((name) => modules.filter(({ result }) => columnOf(result) === name).length)
  return row(plan.title, plan.note, modules.length, ...counts, version, date, commit)
}

/** A module that did not come to its end did not pass. */
function columnOf(result: string): string {
  return result === 'INTERRUPTED' || result === 'UNKNOWN' ? 'FAILED' : result
}

/** Puts the rows of plans that were run into a text; those of other plans stay. @throws {Error} if it has no table. */
export function withResults(text: string, run: Run, found: readonly PlanResult[]): string {
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`there is no ${begin} … ${end}`)
  const before = text.slice(from, to).split('\n')
  const rows = plansOf('').flatMap((plan) => {
    const result = found.find(({ plan: { name } }) => name === plan.name)
    const old = before.find((line) => line.startsWith(headOf(plan)))
    return result === undefined ? (old ?? []) : rowOf(run, result)
  })
  return `${text.slice(0, from)}${[begin, tableOf(run, []), ...rows].join('\n')}\n\n${text.slice(to)}`
}

/** The modules that ended otherwise than with a pass, and that the text gives no reason for. */
export function unexplained(text: string, found: readonly PlanResult[]): readonly string[] {
  const explained = [...text.matchAll(/`(…?[\w-]+)`/g)].map(([, name = '']) => name)
  const isExplained = (module: string) =>
    explained.some((name) => (name.startsWith('…') ? module.endsWith(name.slice(1)) : module === name))
  const others = found.flatMap(({ modules }) => modules.filter(({ result }) => result !== 'PASSED'))
  return [...new Set(others.map(({ module }) => module))].filter((module) => !isExplained(module))
}

/** Whether a module ended as badly as it may not. */
export function isUnexpected({ expected = {} }: Plan, { module, result }: ModuleResult): boolean {
  return !['PASSED', 'WARNING', 'REVIEW', 'SKIPPED'].includes(result) && expected[module] !== result
}
