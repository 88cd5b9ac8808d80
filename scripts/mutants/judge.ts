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

/**
 * A fault is killed by a test that passes without it, fails with it, and carries the id of its rule if it has one. A
 * file that does not start, takes for ever, or fails without any fault shows nothing. Such a doubt may be the machine's,
 * that was busy: it counts when it comes twice.
 */
export function createJudge(testsOf: TestFinder): Judge {
  const sound = new Map<string, Promise<TestRun>>()
  /** What the file comes to without any fault, found out once if that is green. */
  const soundRun = async (test: string, workspace: Workspace) => {
    const running = sound.get(test) ?? workspace.run(test)
    sound.set(test, running)
    const run = await running
    if (run.end !== 'green') sound.delete(test)
    return run
  }
  const judgeOnce: Judge = async (fault, workspace) => {
    const tests = testsOf(fault)
    const doubts: string[] = []
    for (const test of tests) {
      const before = await soundRun(test, workspace)
      if (before.end !== 'green') {
        doubts.push(`${test} is ${before.end} without any fault: ${before.failed.join(' | ')}`)
        continue
      }
      const proves = (title: string) =>
        before.passed.includes(title) && (!('rule' in fault) || title.includes(`[${fault.rule}]`))
      const run = await workspace.withFault(fault, () => workspace.run(test, proves))
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
