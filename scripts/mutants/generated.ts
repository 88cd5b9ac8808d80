import { hash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { explainedMutations } from '../../test/mutants/explained.ts'
import { faults } from '../../test/mutants/faults.ts'
import { readLedger } from '../requirements/ledger.ts'
import { testFinder } from './check.ts'
import { apply, type Mutation, mutationsOf } from './generate.ts'
import { isSame } from './points.ts'
import { hashOf, type Score } from './scores.ts'
import { createTypeCheck } from './type-check.ts'
import type { TestRun, Workspace } from './workspace.ts'

/** Which generated mutations to try. */
export interface Selection {
  /** Only these files. Absent: the domain, and the rules of every folder. */
  readonly files?: readonly string[] | undefined
  /** Only this many, drawn by `seed`. Absent: all. */
  readonly sample?: number | undefined
  readonly seed: number
  /** Only with the unit tests: a survivor takes a second in place of minutes. */
  readonly units?: true | undefined
}

/** A mutation that is not tried, because its program does the same. */
export interface Explanation extends Pick<Mutation, 'file' | 'where' | 'operator' | 'text'> {
  readonly reason: string
}

/** The pure files: what decides, and nothing else. */
const decidingFiles = ['src/domain/*.ts', 'src/**/rules.ts', 'src/**/rules/*.ts']

/** How long a test may take that waits for something which a mutation prevents. */
const shortestLimitSeconds = 25

/** How many conformance tests are tried for one mutation, and how many tests of its topic. */
const mostTests = 6

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

/** How mutations are tried. */
export interface MutationTrial {
  readonly workspaces: readonly Workspace[]
  /** See `Selection`. */
  readonly units: boolean
  say(line: string): void
  /** Is called with the score of each file, once all of its mutations are tried. */
  settle(score: Score): void
}

/**
 * Tries mutations, file by file, each with the tests of its file until one fails. What does not type-check counts as
 * killed, and no test is run for it.
 */
export async function tryMutations(
  root: string,
  mutations: readonly Mutation[],
  { workspaces, units, say, settle }: MutationTrial,
): Promise<void> {
  const testsOf = createTestFinder(root, units)
  const compiles = createTypeCheck(root)
  const explained = new Set(explainedMutations.map(nameOf))
  for (const [file, all] of Map.groupBy(mutations, (mutation) => mutation.file)) {
    const source = readFileSync(join(root, file), 'utf8')
    const tried = all.filter((mutation) => !explained.has(nameOf(mutation)))
    const count = { tests: 0, types: 0 }
    const survived: string[] = []
    const tryOne = async (mutation: Mutation, workspace: Workspace) => {
      const text = apply(source, mutation)
      const isTyped = compiles(file, text)
      const test = isTyped ? await findKiller(mutation, text, testsOf(file), workspace) : undefined
      if (!isTyped) count.types += 1
      else if (test !== undefined) count.tests += 1
      else survived.push(describe(mutation))
      const killer = isTyped ? test : 'the type check'
      say(`${killer === undefined ? 'survived' : 'killed  '}  ${describe(mutation)}  ${killer ?? ''}`)
    }
    const left = tried.values()
    await Promise.all(
      workspaces.map(async (workspace) => {
        for (const mutation of left) await tryOne(mutation, workspace)
      }),
    )
    settle({ file, hash: hashOf(source), ...count, explained: all.length - tried.length, survived })
  }
}

/** The first test file with a test that passes without the mutation and fails with it. */
async function findKiller(
  { file }: Mutation,
  text: string,
  tests: Candidates,
  workspace: Workspace,
): Promise<string | undefined> {
  const fails = async (test: string, warm: boolean) => {
    const sound = await soundRun(test, workspace)
    const seconds = Math.max(shortestLimitSeconds, 10 * sound.seconds)
    const run = await workspace.withText(file, text, () => workspace.run(test, { warm, seconds }))
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
 * clauses that the ledger or the file itself ties to it, those that have to notice a deliberate fault in it, those that
 * are named after it, and the other tests that import it.
 */
function createTestFinder(root: string, onlyUnits: boolean): (file: string) => Candidates {
  const tests = globSync(`test/${onlyUnits ? 'domain' : '**'}/*.test.ts`, { cwd: root }).map((file) => ({
    file,
    text: readFileSync(join(root, file), 'utf8'),
  }))
  const clauses = readLedger(root).documents.flatMap((document) => document.clauses)
  const noticingTests = testFinder(root)
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
      .slice(0, mostTests)
    const importingFiles = importing.map((test) => test.file)
    const units = importingFiles.filter(isUnit)
    const noticing = faults
      .filter((fault) => fault.file === file)
      .flatMap(noticingTests)
      .filter((test) => !onlyUnits || isUnit(test))
    const named = tests.map((test) => test.file).filter((test) => basename(test).includes(topicOf(file)))
    const distinct = new Set([
      ...carrying.map((test) => test.file),
      ...noticing,
      ...named.slice(0, mostTests),
      ...importingFiles,
    ])
    let others = [...distinct].filter((test) => !units.includes(test))
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

/** What tests of a file are named after: `audit` of `audit.ts`, `revocation` of `rfc7009-revocation/rules.ts`. */
function topicOf(file: string): string {
  const name = basename(file, '.ts')
  return name === 'rules' ? basename(dirname(file)).replace(/^rfc\d+-/, '') : name
}

function isUnit(test: string): boolean {
  return test.startsWith('test/domain/')
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
