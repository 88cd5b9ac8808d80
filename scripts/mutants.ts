/**
 * Shows that the suite has teeth: puts one deliberate fault after the other into a copy of the source and runs the tests
 * that have to notice. Fails when one survives, does not apply any more, or is noticed by no test of its rule.
 */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Fault } from '../test/mutants/fault.ts'
import { faults as allFaults } from '../test/mutants/faults.ts'
import { readCount, scriptCommand } from './command.ts'
import { createBreaker, flawsOf, type TestFinder, testFinder } from './mutants/check.ts'
import { type Selection, selectMutations, staleExplanations, tryMutations } from './mutants/generated.ts'
import { createJudge, type Verdict } from './mutants/judge.ts'
import { faultsToTry, type KillRecord, openKills } from './mutants/kills.ts'
import { openScores, type Score, summaryOf } from './mutants/scores.ts'
import { tiesOf } from './mutants/tied.ts'
import { openWorkspace, type Workspace } from './mutants/workspace.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** How many MUSTs of shipped features must have a fault. Raise it when you add faults. */
const leastTied = 220
const workspaces: Workspace[] = []
process.on('exit', () => {
  for (const workspace of workspaces) workspace.remove()
})
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))

interface Options {
  readonly only?: string[]
  readonly changed?: true
  readonly jobs: number
  readonly check?: true
  readonly count?: true
  readonly generated?: true
  readonly file?: string[]
  readonly sample?: number
  readonly seed: number
  readonly units?: true
}

process.exit(await main())

async function main(): Promise<number> {
  const options = scriptCommand(
    'mutants',
    'Puts one deliberate fault after the other into a copy of src; a test of its rule has to fail.',
  )
    .option('--only <id...>', 'these faults only')
    .option(
      '--changed',
      'the faults whose kill is not on record, or has changed since, and the core of the rest',
    )
    // A test spends much of its time waiting: one more keeps the cores busy.
    .option('--jobs <number>', 'how many at once', readCount, availableParallelism() + 1)
    .option('--count', 'only how many MUSTs of shipped features are tied to a fault')
    .option('--check', 'only whether every fault still applies')
    .option(
      '--generated',
      'generated mutations in place of the faults, of the domain and of every rules.ts that has no score',
    )
    .option('--file <path...>', 'of those, the ones of these files, again')
    .option('--sample <number>', 'of those, so many', readCount)
    .option('--seed <number>', 'the draw of the sample', readCount, 1)
    .option('--units', 'those with unit tests alone; of a file with survivors no score is kept')
    .parse()
    .opts<Options>()
  const { only, changed, jobs, check, count } = options
  if (options.generated) return tryGenerated({ ...options, files: options.file }, jobs)
  if (count) return countTies() ? 0 : 1
  const unknown = only?.find((id) => !allFaults.some((fault) => fault.id === id))
  if (unknown !== undefined) {
    process.stderr.write(`mutants: there is no fault ${unknown}\n`)
    return 64
  }
  const faults = allFaults.filter(({ id }) => only === undefined || only.includes(id))
  const [breakSource, testsOf] = [createBreaker(root), testFinder(root)]
  const flaws = [...flawsOf(faults, root, breakSource), ...staleExplanations(root)]
  for (const flaw of flaws) say(flaw)
  if (flaws.length > 0) return 1
  if (check) {
    say(`${faults.length} faults apply`)
    return 0
  }
  const kills = openKills(root, allFaults, testsOf, breakSource)
  const tried = changed ? faultsToTry(faults, kills) : faults
  const outcome = await tryAll(tried, { jobs, testsOf, kills, known: faults.length - tried.length })
  if (only !== undefined) return outcome
  sayOldScores()
  return countTies() ? outcome : 1
}

/**
 * Tries generated mutations: of these files, of a sample, or of all files whose score is not on record. Returns 1 when
 * one of them survives without an explanation.
 */
async function tryGenerated(selection: Selection, jobs: number): Promise<number> {
  const record = openScores(root)
  const isWhole = selection.files === undefined && selection.sample === undefined
  const mutations = selectMutations(root, selection).filter(({ file }) => !isWhole || !record.isCurrent(file))
  for (let job = 0; job < Math.min(jobs, mutations.length); job++) workspaces.push(openWorkspace(root))
  const scores: Score[] = []
  const units = selection.units === true
  const settle = (score: Score) => {
    scores.push(score)
    const isWholeFile = selection.sample === undefined
    // Other tests may notice what the unit tests do not.
    const isFinal = !units || score.survived.length === 0
    // At once: a run that is stopped keeps the files it has finished.
    if (isWholeFile && isFinal) record.put(score)
  }
  await tryMutations(root, mutations, { workspaces, units, say, settle })
  const shown = isWhole ? record.all() : scores
  const survivors = shown.flatMap(({ survived }) => survived)
  for (const line of ['', ...survivors]) say(line)
  say(summaryOf(shown))
  return survivors.length === 0 ? 0 : 1
}

/** Prints which files `--generated` would try. They do not fail the run: to try them can take long. */
function sayOldScores(): void {
  const record = openScores(root)
  const mutated = new Set(selectMutations(root, { seed: 0 }).map(({ file }) => file))
  const old = [...mutated].filter((file) => !record.isCurrent(file))
  if (old.length > 0) say(`without a current score of generated mutations: ${old.join(', ')}`)
}

/** Prints how many MUSTs have a fault. Returns whether these are enough. */
function countTies(): boolean {
  const { tied, untied } = tiesOf(allFaults, root)
  say(`${tied.length} of ${tied.length + untied.length} tier-1 MUSTs are tied to a fault`)
  return tied.length >= leastTied
}

interface Trial {
  readonly jobs: number
  readonly testsOf: TestFinder
  readonly kills: KillRecord
  /** How many faults are not tried, because their kill is on record. */
  readonly known: number
}

async function tryAll(faults: readonly Fault[], { jobs, testsOf, kills, known }: Trial): Promise<number> {
  const judge = createJudge(testsOf)
  const count = { killed: 0, survived: 0, doubtful: 0 }
  const alive: string[] = []
  const tryOne = async (fault: Fault, workspace: Workspace) => {
    const start = performance.now()
    const verdict = await judge(fault, workspace, kills.lastKiller(fault))
    // At once: a run that is stopped keeps what it has found.
    if ('killedBy' in verdict) kills.add(fault, verdict)
    else kills.remove(fault)
    const [word, story] = wordsFor(verdict)
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    count[word] += 1
    const line = `${word.padEnd(8)}  ${fault.id}  ${seconds} s  ${story}`
    say(line)
    if (word !== 'killed') alive.push(line)
  }
  const left = faults.values()
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      const workspace = openWorkspace(root)
      workspaces.push(workspace)
      // The jobs share the iterator: each takes the next fault when it is free.
      for (const fault of left) await tryOne(fault, workspace)
    }),
  )
  const { killed, survived, doubtful } = count
  // Once more, where they are not looked for among hundreds.
  for (const line of ['', ...alive]) say(line)
  const rest = doubtful > 0 ? `, ${doubtful} doubtful` : ''
  const recorded = known > 0 ? `; ${known} more on record as killed, and unchanged since` : ''
  say(`${faults.length} faults tried, ${killed} killed, ${survived} survived${rest}${recorded}`)
  return killed === faults.length ? 0 : 1
}

function wordsFor(verdict: Verdict): ['killed' | 'survived' | 'doubtful', string] {
  if ('killedBy' in verdict) return ['killed', `${verdict.test}: ${verdict.killedBy}`]
  return 'survived' in verdict ? ['survived', verdict.survived] : ['doubtful', verdict.doubtful]
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
