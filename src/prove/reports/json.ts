import { isObject } from '../../domain/is-object.ts'
import { nameOf, placeOf, type Result } from '../check.ts'
import { curlOf, responseText } from '../redact.ts'
import type { Run } from '../runner.ts'
import { countsOf } from './terminal.ts'

/** The report as JSON; its results are also what a baseline has. */
export function jsonReport(run: Run) {
  const { issuer, profile, results, requests, milliseconds, remaining, isInterrupted } = run
  return {
    issuer,
    profile,
    counts: countsOf(results),
    requests,
    milliseconds,
    interrupted: isInterrupted,
    remaining_clients: remaining,
    results: results.map(resultOf),
  }
}

function resultOf({ check, verdict, because, seen, milliseconds }: Result) {
  const { title, url } = placeOf(check.id)
  return {
    check: nameOf(check),
    clause: check.id,
    level: check.level,
    place: title,
    url,
    wants: check.wants,
    verdict,
    ...(because !== undefined && { because }),
    milliseconds,
    // Of a pass the last observation is enough; the rest is as in the check.
    observations: (verdict === 'pass' ? seen.slice(-1) : seen).map((one) => ({
      sent: curlOf(one.sent),
      came: responseText(one),
    })),
  }
}

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
