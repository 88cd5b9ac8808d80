import { escaped } from './junit.ts'
import { type ClauseReport, type ReportedClause, verdictsOf } from './report.ts'

const style = `:root { color-scheme: light dark; --edge: #ccc; --fail: #b3261e; --warning: #8a5a00; --pass: #1b6e36; --muted: #5c5c5c }
@media (prefers-color-scheme: dark) { :root { --edge: #444; --fail: #ff8a80; --warning: #e6b450; --pass: #7bd895; --muted: #aaa } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem }
details { border-top: 1px solid var(--edge); padding: .4rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; border-left: 3px solid var(--edge); padding-left: .8rem }
b { display: inline-block; min-width: 7.5rem; font-weight: 600; color: var(--muted) }
.fail b { color: var(--fail) } .warning b { color: var(--warning) } .pass b { color: var(--pass) }
@media (max-width: 40rem) { b { min-width: 0; margin-right: .6rem } }
small { color: var(--muted) }`

/** What is shown first. */
const order: readonly ReportedClause['verdict'][] = [
  'fail',
  'warning',
  'not testable',
  'pass',
  'not applicable',
  'not run',
]

/** Formats a report as one page that loads nothing and needs no script. */
export function html(report: ClauseReport): string {
  const { tool, subject, profile, results } = report
  const title = escaped(`${subject}: ${profile}`)
  const counts = verdictsOf(report)
  const sums = order.map((verdict) => `<li><strong>${counts.get(verdict) ?? 0}</strong> ${verdict}</li>`)
  const sorted = order.flatMap((wanted) => results.filter(({ verdict }) => verdict === wanted))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="${escaped(tool)}">
<title>${title}</title>
<style>
${style}
</style>
</head>
<body>
<main>
<h1>${title}</h1>
<ul>
${sums.join('\n')}
</ul>
${sorted.map(clauseHtml).join('\n')}
</main>
</body>
</html>
`
}

function clauseHtml(result: ReportedClause): string {
  const { check, level, place, url, wants, verdict, because, observations } = result
  const isOpen = verdict === 'fail' || verdict === 'warning'
  const source = url === '' ? escaped(place) : `<a href="${escaped(url)}">${escaped(place)}</a>`
  const shown = observations.map(
    ({ sent, came }) => `<pre>${escaped(sent)}</pre>\n<pre>${escaped(came)}</pre>`,
  )
  return `<details class="${verdict.split(' ')[0]}"${isOpen ? ' open' : ''}>
<summary><b>${verdict}</b>${escaped(wants)} <small>${escaped(check)}</small></summary>
<p>${level}, ${source}${because === undefined ? '' : `: ${escaped(because)}`}</p>
${shown.join('\n')}
</details>`
}
