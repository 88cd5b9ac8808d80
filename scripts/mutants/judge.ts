import type { Fault } from '../../test/mutants/fault.ts'
import type { TestFinder } from './check.ts'
import { isSame, type Point } from './points.ts'
import type { TestRun, Workspace } from './workspace.ts'

/** The test that kills a fault. */
export interface Killer {
  /** The file of the test. */
  readonly test: string
  /** The title of the outermost test of that file. */
  readonly title: string
}

/** The result of a fault: killed by a test that proves its rule, or the sentence that says why not. */
export type Verdict =
  | (Killer & { readonly killedBy: string })
  | { readonly survived: string }
  | { readonly doubtful: string }

/** Tries one fault in a workspace, first with the test alone that killed it before, if one did. */
export type Judge = (fault: Fault, workspace: Workspace, before?: Killer) => Promise<Verdict>

/** A test that waits for something that a fault prevents fails after this time. A busy machine may stall for seconds. */
const shortestLimitSeconds = 25

/** How a file is run to find a fault: what passes then without any fault. */
interface Sound {
  readonly run: TestRun
  /** The only tests that run; all of the file, if these do not pass alone. */
  readonly only: string | undefined
  readonly warm: boolean
}

/**
 * A fault is killed by a test or an assertion that passes without it, fails with it, and carries the id of its rule if
 * it has one. A file that does not start, does not end, or fails without any fault proves nothing. What is not killed in
 * a warm process is tried again in processes of its own.
 */
export function createJudge(testsOf: TestFinder): Judge {
  const results = new Map<string, Promise<TestRun>>()
  /** The result of the file without any fault, found once if that is green. */
  const soundRun = async (test: string, only: string | undefined, warm: boolean, workspace: Workspace) => {
    const key = JSON.stringify([test, only, warm])
    const running = results.get(key) ?? workspace.run(test, { only, warm })
    results.set(key, running)
    const run = await running
    if (run.end !== 'green') results.delete(key)
    return run
  }
  /**
   * Only the tests whose title carries the rule, if these pass without the others; or else those with an assertion that
   * carries it, which a run of the whole file finds.
   */
  const soundRunOf = async (
    test: string,
    fault: Fault,
    warm: boolean,
    workspace: Workspace,
  ): Promise<Sound> => {
    const isProof = provesRule(fault)
    if ('rule' in fault && warm) {
      const only = escapeRegExp(`[${fault.rule}]`)
      const run = await soundRun(test, only, warm, workspace)
      if (run.end === 'green' && run.passed.some(isProof)) return { run, only, warm }
    }
    const run = await soundRun(test, undefined, warm, workspace)
    if (run.end !== 'green' && warm) return soundRunOf(test, fault, false, workspace)
    const points = run.passed.filter(isProof)
    if (!('rule' in fault) || points.length === 0) return { run, only: undefined, warm }
    const around = new Set(points.map(({ title, path: [top = title] }) => escapeRegExp(top)))
    const only = `^(?:${[...around].join('|')})$`
    const part = await soundRun(test, only, warm, workspace)
    const isEnough = part.end === 'green' && points.every((one) => part.passed.some((it) => isSame(it, one)))
    return isEnough ? { run: part, only, warm } : { run, only: undefined, warm }
  }
  const judgeBy = async (
    fault: Fault,
    test: string,
    { run: before, only, warm }: Sound,
    workspace: Workspace,
  ): Promise<Verdict> => {
    const proofs = before.passed.filter(provesRule(fault))
    const isEnough = (point: Point) => proofs.some((proof) => isSame(proof, point))
    const seconds = Math.max(shortestLimitSeconds, 10 * before.seconds)
    const options = { only, isEnough, seconds, warm }
    const run = await workspace.withFault(fault, () => workspace.run(test, options))
    const red = run.failed.filter((point) => before.passed.some((one) => isSame(one, point)))
    const killedBy = proofs.find((proof) => isBroken(proof, run, red))
    if (killedBy !== undefined) {
      const [title = killedBy.title] = killedBy.path
      return { killedBy: killedBy.title, test, title }
    }
    if (red.length > 0) return { doubtful: `noticed, and by no test of its rule: ${test}: ${titles(red)}` }
    if (run.end !== 'green') return { doubtful: `${test} is ${run.end}, and none of its tests failed` }
    return { survived: `nothing noticed: ${test}` }
  }
  const judgeOnce = async (fault: Fault, workspace: Workspace, warm: boolean): Promise<Verdict> => {
    const tests = testsOf(fault)
    const doubts: Verdict[] = []
    for (const test of tests) {
      const sound = await soundRunOf(test, fault, warm, workspace)
      const { end, failed } = sound.run
      if (end !== 'green') {
        doubts.push({ doubtful: `${test} is ${end} without any fault: ${titles(failed)}` })
        continue
      }
      const verdict = await judgeBy(fault, test, sound, workspace)
      if ('killedBy' in verdict) return verdict
      if ('doubtful' in verdict) doubts.push(verdict)
    }
    return doubts[0] ?? { survived: `nothing noticed: ${tests.join(', ')}` }
  }
  /** By the test that killed the fault before, if it is still there and passes without the others. */
  const judgeAgain = async (fault: Fault, { test, title }: Killer, workspace: Workspace) => {
    if (!testsOf(fault).includes(test)) return undefined
    const only = `^${escapeRegExp(title)}$`
    const run = await soundRun(test, only, true, workspace)
    const isProof = run.end === 'green' && run.passed.some(provesRule(fault))
    return isProof ? judgeBy(fault, test, { run, only, warm: true }, workspace) : undefined
  }
  return async (fault, workspace, before) => {
    const again = before && (await judgeAgain(fault, before, workspace))
    if (again !== undefined && 'killedBy' in again) return again
    const verdict = await judgeOnce(fault, workspace, true)
    return 'killedBy' in verdict ? verdict : judgeOnce(fault, workspace, false)
  }
}

/** Which points prove that a fault is noticed. */
function provesRule(fault: Fault): (point: Point) => boolean {
  return ({ title, isTest }) => ('rule' in fault ? title.includes(`[${fault.rule}]`) : isTest)
}

/** Whether a proof failed, or was not reached because a test around it failed. */
function isBroken(proof: Point, run: TestRun, red: readonly Point[]): boolean {
  if (red.some((point) => isSame(point, proof))) return true
  const isMissing = ![...run.passed, ...run.failed].some((point) => isSame(point, proof))
  return isMissing && red.some(({ title, path }) => isAround([...path, title], proof.path))
}

function isAround(outer: readonly string[], inner: readonly string[]): boolean {
  return outer.every((title, depth) => inner[depth] === title)
}

function titles(points: readonly Point[]): string {
  return points.map(({ title }) => title).join(' | ')
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^$()[\]{}|\\/]/g, '\\$&')
}
