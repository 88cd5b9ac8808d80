import { isObject } from '../../domain/is-object.ts'
import { nameOf, type Result } from '../check.ts'

/**
 * Returns the names of the checks that failed, and did not fail in the run of the baseline. A check that the baseline
 * does not have is new. Warnings do not count.
 * @param baseline The report of an earlier run, as JSON.
 */
export function newFailures(
  results: readonly Result[],
  baseline?: Readonly<Record<string, unknown>>,
): readonly string[] {
  const before = failuresOf(baseline)
  return results
    .filter(({ verdict }) => verdict === 'fail')
    .map(({ check }) => nameOf(check))
    .filter((name) => !before.has(name))
}

function failuresOf(report: Readonly<Record<string, unknown>> | undefined): ReadonlySet<string> {
  const results = report?.['results']
  const failed = (Array.isArray(results) ? results : []).flatMap((result: unknown) => {
    if (!isObject(result) || result['verdict'] !== 'fail') return []
    const { check } = result
    return typeof check === 'string' ? [check] : []
  })
  return new Set(failed)
}
