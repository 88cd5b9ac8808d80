import { visibleLines } from '../print.ts'
import { type ClauseReport, observationOf, type ReportedClause, verdictsOf } from './report.ts'

/**
 * Formats a report as JUnit XML, with a test case for each check: failed if the clause is not met, skipped if it was not
 * judged. A warning passes, and is in the output of its case.
 */
export function junit(report: ClauseReport): string {
  const { tool, subject, profile, results } = report
  const counts = verdictsOf(report)
  const judged = (['pass', 'fail', 'warning'] as const).reduce((sum, one) => sum + (counts.get(one) ?? 0), 0)
  const skipped = results.length - judged
  const sums = `tests="${results.length}" failures="${counts.get('fail') ?? 0}" errors="0" skipped="${skipped}"`
  const seconds = secondsOf(results.reduce((sum, { milliseconds = 0 }) => sum + milliseconds, 0))
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="${escaped(`${tool} ${subject} ${profile}`)}" ${sums} time="${seconds}">
${results.map(testCase).join('\n')}
  </testsuite>
</testsuites>
`
}

function testCase(result: ReportedClause): string {
  const { check, place, wants, verdict, because = '', milliseconds = 0, level, url } = result
  const name = escaped(`${check}: ${wants}`)
  const head = `    <testcase classname="${escaped(place)}" name="${name}" time="${secondsOf(milliseconds)}"`
  if (verdict === 'pass') return `${head}/>`
  const text = escaped(
    [because, [`${level}, ${place}`, url].filter(Boolean).join(': '), observationOf(result)].join('\n'),
  )
  if (verdict === 'fail') return `${head}><failure message="${escaped(because)}">${text}</failure></testcase>`
  if (verdict === 'warning') return `${head}><system-out>warning: ${text}</system-out></testcase>`
  return `${head}><skipped message="${escaped(`${verdict}: ${because}`)}"/></testcase>`
}

function secondsOf(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3)
}

/** Escapes text for XML and HTML, without the characters that XML 1.0 §2.2 excludes. */
export function escaped(text: string): string {
  return visibleLines(text).replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
