import type { Report, ReportedProfile } from '../dev/issuers/report.ts'
import { visible, visibleLines } from './print.ts'

/**
 * Formats a report as JUnit XML, which CI systems read: a test case for each issuer, failed when the client was
 * fooled, skipped when it was not reached.
 * @param countsAll Counts an issuer that was not reached as failed, too.
 */
export function junit({ profiles, reference, fooled, not_reached }: Report, countsAll: boolean): string {
  const failures = fooled + (countsAll ? not_reached : 0) + (reference === 'passed' ? 0 : 1)
  const counts = `tests="${profiles.length}" failures="${failures}" errors="0" skipped="${countsAll ? 0 : not_reached}"`
  const cases = profiles.map((profile) => testCase(profile, countsAll))
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="issuers that lie" ${counts}>
${cases.join('\n')}
  </testsuite>
</testsuites>
`
}

function testCase(profile: ReportedProfile, countsAll: boolean): string {
  const { id, title, verdict } = profile
  const head = `    <testcase classname="lychgate.issuers" name="${escaped(`${id}: ${title}`)}"`
  if (verdict === 'passed' || verdict === 'rejected') return `${head}/>`
  if (verdict === 'fooled') return `${head}>${failure('fooled', explained(profile))}</testcase>`
  if (id === 'reference') return `${head}>${failure('no client got through', title)}</testcase>`
  return `${head}>${countsAll ? failure('not reached', title) : '<skipped message="not reached"/>'}</testcase>`
}

function failure(message: string, text: string): string {
  return `<failure message="${message}">${escaped(text)}</failure>`
}

/** Text for XML, with nothing in it that XML 1.0 §2.2 has no place for. */
function escaped(text: string): string {
  return visibleLines(text).replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Why the client counts as fooled, a line for each fact. */
export function explained({ id, title, clause, sound, evidence, told }: ReportedProfile): string {
  const seen = [evidence, told && `the client itself: ${told}`].filter(Boolean).join('; ')
  return visibleLines(`${id}: ${title} (${clause})\n  a sound client ${sound}\n  seen: ${visible(seen)}`)
}
