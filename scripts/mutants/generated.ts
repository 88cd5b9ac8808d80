import { hash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { explainedMutations } from '../../test/mutants/explained.ts'
import { readLedger } from '../requirements/ledger.ts'
import { apply, type Mutation, mutationsOf } from './generate.ts'
import { isSame } from './points.ts'
import { createTypeCheck } from './type-check.ts'
import type { TestRun, Workspace } from './workspace.ts'

/** Which generated mutations to try. */
export interface Selection {
  /** Only these files. Absent: the domain, and the rules of every folder. */
  readonly files?: readonly string[] | undefined
  /** Only this many, drawn by `seed`. Absent: all. */
  readonly sample?: number | undefined
  readonly seed: number
}

/** A mutation that is not tried, because its program does the same. */
export interface Explanation extends Pick<Mutation, 'file' | 'where' | 'operator' | 'text'> {
  readonly reason: string
}

/** The pure files: what decides, and nothing else. */
const decidingFiles = ['src/domain/*.ts', 'src/**/rules.ts', 'src/**/rules/*.ts']

/** How long a test may take that waits for something which a mutation prevents. */
const shortestLimitSeconds = 25

/** How many conformance tests are tried for one mutation. */
const mostConformanceTests = 6

/**
 * Selects mutations. The draw depends on the seed and on each mutation alone, so that a change of one file keeps the
 * rest of the sample.
 */
export function selectMutations(
  root: string,
  { files, sample = Infinity, seed }: Selection,
): readonly Mutation[] {
  const paths = files ?? globSync([...decidingFiles], { cwd: root }).sort()
  const all = paths.flatMap((file) => mutationsOf(file, readFileSync(join(root, file), 'utf8')))
  if (all.length <= sample) return all
  const lot = (one: Mutation) => hash('sha256', JSON.stringify([seed, nameOf(one)]), 'hex')
  const drawn = new Set([...all].sort((one, other) => (lot(one) < lot(other) ? -1 : 1)).slice(0, sample))
  return all.filter((mutation) => drawn.has(mutation))
}

/** Returns the explanations that no mutation has any more, one line each. */
export function staleExplanations(root: string): readonly string[] {
  const files = [...new Set(explainedMutations.map(({ file }) => file))]
  const present = new Set(selectMutations(root, { files, seed: 0 }).map(nameOf))
  return explainedMutations
    .filter((explained) => !present.has(nameOf(explained)))
    .map(({ file, where, operator, text }) => `stale: ${file} has no ${operator} in ${where}: ${text}`)
}

/**
 * Tries mutations, each with the tests of its file until one fails, and prints every survivor and the score.
 * @returns how many survived without an explanation.
 */
export async function tryMutations(
  root: string,
  mutations: readonly Mutation[],
  workspaces: readonly Workspace[],
  say: (line: string) => void,
): Promise<number> {
  const testsOf = createTestFinder(root)
  const explained = new Set(explainedMutations.map(nameOf))
  const tried = mutations.filter((mutation) => !explained.has(nameOf(mutation)))
  const count = { tests: 0, types: 0 }
  const survivors: Mutation[] = []
  const tryOne = async (mutation: Mutation, workspace: Workspace) => {
    const test = await findKiller(root, mutation, testsOf(mutation.file), workspace)
    if (test !== undefined) count.tests += 1
    else survivors.push(mutation)
    say(`${test === undefined ? 'survived' : 'killed  '}  ${describe(mutation)}  ${test ?? ''}`)
  }
  const left = tried.values()
  await Promise.all(
    workspaces.map(async (workspace) => {
      for (const mutation of left) await tryOne(mutation, workspace)
    }),
  )
  const compiles = createTypeCheck(root)
  let unexplained = 0
  say('')
  for (const mutation of survivors) {
    if (!compiles(mutation.file, mutated(root, mutation))) count.types += 1
    else {
      unexplained += 1
      say(`survived  ${describe(mutation)}`)
    }
  }
  const killed = count.tests + count.types
  const score = ((100 * killed) / Math.max(1, tried.length)).toFixed(1)
  say(
    `${mutations.length} generated mutants: ${count.tests} killed by tests, ${count.types} by the type check, ` +
      `${mutations.length - tried.length} explained, ${unexplained} survived; score ${score} %`,
  )
  return unexplained
}

/** The first test file with a test that passes without the mutation and fails with it. */
async function findKiller(
  root: string,
  mutation: Mutation,
  tests: Candidates,
  workspace: Workspace,
): Promise<string | undefined> {
  const fails = async (test: string, warm: boolean) => {
    const sound = await soundRun(test, workspace)
    const seconds = Math.max(shortestLimitSeconds, 10 * sound.seconds)
    const run = await workspace.withText(mutation.file, mutated(root, mutation), () =>
      workspace.run(test, { warm, seconds }),
    )
    const isKilled = run.failed.some((point) => sound.passed.some((one) => isSame(one, point)))
    return warm ? run.end !== 'green' : isKilled || run.passed.length === 0
  }
  for (const test of tests.files()) {
    if (!(await fails(test, true))) continue
    // What an earlier mutation left behind, or a busy machine, must not count as a kill.
    if (!isUnit(test) && !(await fails(test, false))) continue
    tests.prefer(test)
    return test
  }
  return undefined
}

const soundRuns = new Map<string, Promise<TestRun>>()

/** The result of a test file without any mutation, found once in a run that passes. */
async function soundRun(test: string, workspace: Workspace): Promise<TestRun> {
  const running = soundRuns.get(test) ?? workspace.run(test, { warm: true })
  soundRuns.set(test, running)
  const run = await running
  if (run.end === 'green') return run
  const again = await workspace.run(test)
  if (again.end !== 'green') throw new Error(`${test} fails without any mutation`)
  soundRuns.set(test, Promise.resolve(again))
  return again
}

/** The tests of one source file, the likeliest to notice a mutation first. */
interface Candidates {
  files(): readonly string[]
  /** Moves a test that noticed one to the front, behind the unit tests, which take less time. */
  prefer(test: string): void
}

/**
 * Finds the tests of a source file: the unit tests that import it, then the conformance tests with the most ids of
 * clauses that the ledger or the file itself ties to it, then the other tests that import it.
 */
function createTestFinder(root: string): (file: string) => Candidates {
  const tests = globSync('test/**/*.test.ts', { cwd: root }).map((file) => ({
    file,
    text: readFileSync(join(root, file), 'utf8'),
  }))
  const clauses = readLedger(root).documents.flatMap((document) => document.clauses)
  const found = new Map<string, Candidates>()
  return (file) => {
    const known = found.get(file)
    if (known !== undefined) return known
    const source = readFileSync(join(root, file), 'utf8')
    const ids = clauses
      .filter((clause) => clause.source?.includes(file) || source.includes(`'${clause.id}'`))
      .map(({ id }) => `[${id}]`)
    const importing = tests.filter((test) => test.text.includes(`'${relative(dirname(test.file), file)}'`))
    const carrying = tests
      .filter((test) => test.file.startsWith('test/conformance/') && !importing.includes(test))
      .map((test) => ({ ...test, carried: ids.filter((id) => test.text.includes(id)).length }))
      .filter(({ carried }) => carried > 0)
      .sort((one, other) => other.carried - one.carried)
      .slice(0, mostConformanceTests)
    const importingFiles = importing.map((test) => test.file)
    const units = importingFiles.filter(isUnit)
    let others = [...carrying.map((test) => test.file), ...importingFiles.filter((test) => !isUnit(test))]
    const candidates: Candidates = {
      files: () => [...units, ...others],
      prefer: (test) => {
        if (!units.includes(test)) others = [test, ...others.filter((other) => other !== test)]
      },
    }
    found.set(file, candidates)
    return candidates
  }
}

function isUnit(test: string): boolean {
  return test.startsWith('test/domain/')
}

function mutated(root: string, mutation: Mutation): string {
  return apply(readFileSync(join(root, mutation.file), 'utf8'), mutation)
}

/** Tells mutations apart, wherever in its file a function is. */
function nameOf({
  file,
  where,
  operator,
  text,
}: Pick<Mutation, 'file' | 'where' | 'operator' | 'text'>): string {
  return JSON.stringify([file, where, operator, text])
}

function describe({ file, line, where, operator, text }: Mutation): string {
  return `${file}:${line} ${where}: ${operator}: ${text}`
}
