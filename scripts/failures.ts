/** Lists the failed points of a run again at its end, as its beginning may be out of sight by then. */

/** A point that failed although nothing inside it did: an assertion, a timeout, a file that crashed. */
export interface Failure {
  /** The file, the tests around the point, and the point. */
  readonly path: readonly string[]
  /** The lines of its diagnostic, without their indentation. */
  readonly diagnostic: readonly string[]
}

/**
 * The failures in the TAP of a run, in order: subtests are indented by four, a diagnostic by two more than its point.
 */
export function failuresIn(tap: string): readonly Failure[] {
  const failures: Failure[] = []
  const open: { readonly title: string; readonly failuresBefore: number }[] = []
  const lines = tap.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const [whole, indent = '', subtest, not, point = ''] =
      /^((?: {4})*)(?:# Subtest: (.*)|(not )?ok \d+(?: - (.*?))?(?: # time=\S+)?)$/.exec(lines[at] ?? '') ??
      []
    if (whole === undefined) continue
    const around = open.slice(0, indent.length / 4)
    const own = open[around.length]
    open.length = around.length
    if (subtest !== undefined) open.push({ title: subtest, failuresBefore: failures.length })
    const diagnostic: string[] = []
    if (lines[at + 1] === `${indent}  ---`) {
      for (at += 2; at < lines.length && lines[at] !== `${indent}  ...`; at++)
        diagnostic.push((lines[at] ?? '').slice(indent.length + 2))
    }
    if (not === undefined || (own !== undefined && failures.length > own.failuresBefore)) continue
    failures.push({ path: [...around.map(({ title }) => title), point], diagnostic })
  }
  return failures
}

/** A failure as text: where it is, and as many lines of its diagnostic as fit on a screen. */
export function describeFailure({ path, diagnostic }: Failure): string {
  const shown = diagnostic.slice(0, 40).map((line) => `  ${line}`.trimEnd())
  if (diagnostic.length > shown.length) shown.push(`  (${diagnostic.length - shown.length} lines more)`)
  return `${[`not ok: ${path.join(' > ')}`, ...shown].join('\n')}\n`
}
