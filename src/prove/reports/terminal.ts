import { nameOf, placeOf, type Result, type Verdict } from '../check.ts'
import { curlOf, responseText } from '../redact.ts'
import type { Run } from '../runner.ts'

/** Counts results by verdict. */
export function countsOf(results: readonly Result[]): Readonly<Record<Verdict, number>> {
  const counts = { pass: 0, fail: 0, warning: 0, 'not applicable': 0, 'not testable': 0, 'not run': 0 }
  for (const { verdict } of results) counts[verdict] += 1
  return counts
}

const marks: Readonly<Record<Verdict, string>> = {
  pass: 'pass',
  fail: 'FAIL',
  warning: 'warn',
  'not applicable': 'n/a ',
  'not testable': '?   ',
  'not run': '-   ',
}

/** The report for a terminal: what is wrong with its observation, then the reasons of what was not judged, then counts. */
export function terminalReport(run: Run, { verbose = false }: { readonly verbose?: boolean } = {}): string {
  const { results, requests, milliseconds, remaining, issuer, profile } = run
  const lines = results
    .filter(({ verdict }) => verbose || verdict !== 'pass')
    .flatMap((result) => linesOf(result))
  const counts = countsOf(results)
  const sums = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict}`)
  return [
    ...lines,
    '',
    `${issuer} ${profile}: ${sums.join(', ')}`,
    `${requests} requests in ${(milliseconds / 1000).toFixed(1)} s${run.isInterrupted ? ', interrupted' : ''}`,
    ...(remaining.length > 0 ? [`clients that remain at the server: ${remaining.join(' ')}`] : []),
    '',
  ].join('\n')
}

function linesOf({ check, verdict, because, seen }: Result): readonly string[] {
  const head = `${marks[verdict]} ${nameOf(check)}: ${check.wants}`
  if (verdict === 'pass') return [head]
  if (verdict !== 'fail' && verdict !== 'warning') return [`${head}\n       ${because ?? ''}`]
  const { title, url } = placeOf(check.id)
  const last = seen.at(-1)
  return [
    head,
    ...(url === '' ? [] : [`       ${check.level}, ${title}: ${url}`]),
    `       found: ${because ?? ''}`,
    ...(last === undefined
      ? []
      : [indented('sent:  ', curlOf(last.sent)), indented('came:  ', responseText(last))]),
  ]
}

function indented(title: string, text: string): string {
  return `       ${title}${text.replaceAll('\n', '\n              ')}`
}
