import type { Fault } from '../../test/mutants/fault.ts'
import type { TestFinder } from './check.ts'
import type { TestRun, Workspace } from './workspace.ts'

/** What became of a fault: killed by a test that proves its rule, or the sentence that says why that is not so. */
export type Verdict =
  | { readonly killedBy: string; readonly test: string }
  | { readonly survived: string }
  | { readonly doubtful: string }

/** Tries one fault in a workspace. */
export type Judge = (fault: Fault, workspace: Workspace) => Promise<Verdict>

/** A test that waits for something that a fault prevents, a mail say, fails by then: a long while, as machines stall. */
const shortestLimitSeconds = 25

/**
 * A fault is killed by a test that passes without it, fails with it, and carries the id of its rule if it has one. A
 * file that does not start, takes for ever, or fails without any fault shows nothing. Such a doubt may be the machine's,
 * that was busy: it counts when it comes twice.
 */
export function createJudge(testsOf: TestFinder): Judge {
  const sound = new Map<string, Promise<TestRun>>()
  /** The result of the file without any fault, found out once if that is green. */
  const soundRun = async (test: string, only: string | undefined, workspace: Workspace) => {
    const key = `${test} ${only ?? ''}`
    const running = sound.get(key) ?? workspace.run(test, { only })
    sound.set(key, running)
    const run = await running
    if (run.end !== 'green') sound.delete(key)
    return run
  }
  /** Only the tests of the rule, if these pass without the others. */
  const soundRunOf = async (test: string, fault: Fault, workspace: Workspace) => {
    const only = 'rule' in fault ? `[${fault.rule}]` : undefined
    const run = await soundRun(test, only, workspace)
    if (only === undefined || (run.end === 'green' && run.passed.some((title) => title.includes(only))))
      return { run, only }
    return { run: await soundRun(test, undefined, workspace), only: undefined }
  }
  const judgeOnce: Judge = async (fault, workspace) => {
    const tests = testsOf(fault)
    const doubts: string[] = []
    for (const test of tests) {
      const { run: before, only } = await soundRunOf(test, fault, workspace)
      if (before.end !== 'green') {
        doubts.push(`${test} is ${before.end} without any fault: ${before.failed.join(' | ')}`)
        continue
      }
      const proves = (title: string) =>
        before.passed.includes(title) && (!('rule' in fault) || title.includes(`[${fault.rule}]`))
      const seconds = Math.max(shortestLimitSeconds, 10 * before.seconds)
      const options = { only, isEnough: proves, seconds }
      const run = await workspace.withFault(fault, () => workspace.run(test, options))
      const red = run.failed.filter((title) => before.passed.includes(title))
      const killedBy = red.find(proves)
      if (killedBy !== undefined) return { killedBy, test }
      if (red.length > 0) doubts.push(`noticed, and by no test of its rule: ${test}: ${red.join(' | ')}`)
      else if (run.end !== 'green') doubts.push(`${test} is ${run.end}, and none of its tests failed`)
    }
    const [doubt] = doubts
    return doubt === undefined ? { survived: `nothing noticed: ${tests.join(', ')}` } : { doubtful: doubt }
  }
  return async (fault, workspace) => {
    const verdict = await judgeOnce(fault, workspace)
    return 'doubtful' in verdict ? judgeOnce(fault, workspace) : verdict
  }
}
