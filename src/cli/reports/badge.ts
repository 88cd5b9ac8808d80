import { escaped } from './junit.ts'
import { type ClauseReport, verdictsOf } from './report.ts'

const characterWidth = 6.6
const padding = 10

/** Draws a badge: the profile, and how many of the clauses that were judged are met. */
export function badge(report: ClauseReport): string {
  const counts = verdictsOf(report)
  const [passed, failed] = [counts.get('pass') ?? 0, counts.get('fail') ?? 0]
  const judged = passed + failed + (counts.get('warning') ?? 0)
  const [left, right] = [report.profile, `${passed} of ${judged} clauses`]
  const [first, second] = [left, right].map((text) => Math.ceil(text.length * characterWidth) + 2 * padding)
  const [start = 0, end = 0] = [first, second]
  // White text on these colours has a contrast above 4.5.
  const colour = failed > 0 ? '#b3261e' : judged === passed ? '#1b6e36' : '#8a5a00'
  const text = (content: string, from: number, width: number) =>
    `<text x="${from + width / 2}" y="14" textLength="${width - 2 * padding}">${escaped(content)}</text>`
  const label = escaped(`${left}: ${right}`)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${start + end}" height="20" role="img" aria-label="${label}">
  <title>${escaped(`${report.subject}, ${left}: ${right}`)}</title>
  <rect width="${start}" height="20" fill="#444"/>
  <rect x="${start}" width="${end}" height="20" fill="${colour}"/>
  <g fill="#fff" text-anchor="middle" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">
    ${text(left, 0, start)}
    ${text(right, start, end)}
  </g>
</svg>
`
}
