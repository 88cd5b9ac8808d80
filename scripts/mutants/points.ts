/** A test, or an assertion whose message names a clause. */
export interface Point {
  readonly title: string
  /** The titles of the tests around it, the outermost first. */
  readonly path: readonly string[]
  readonly isTest: boolean
}

/** The test points of TAP, however deep; those skipped are in neither list. */
export function pointsOf(tap: string): {
  readonly passed: readonly Point[]
  readonly failed: readonly Point[]
} {
  const [passed, failed]: [Point[], Point[]] = [[], []]
  const open: string[] = []
  let diagnosticEnd: string | undefined
  for (const line of tap.split('\n')) {
    const [, indent = '', text = ''] = /^( *)(.*)$/.exec(line) ?? []
    if (diagnosticEnd !== undefined) {
      // tap leaves one open that quotes a control character: a line indented less is not part of it.
      const isPast = line.trim() !== '' && indent.length < diagnosticEnd.length - '...'.length
      if (line === diagnosticEnd || isPast) diagnosticEnd = undefined
      if (!isPast) continue
    }
    if (text === '---') diagnosticEnd = `${indent}...`
    const depth = indent.length / 4
    const [, begun] = /^# Subtest: (.*)$/.exec(text) ?? []
    if (begun !== undefined) open.splice(depth, open.length, plain(begun))
    const [whole, not, named = '', directive = ''] =
      /^(not )?ok \d+ - (.*?)(?: # (SKIP|TODO|time=).*)?(?: \{)?$/.exec(text) ?? []
    if (whole === undefined) continue
    const title = plain(named)
    const isTest = open[depth] === title
    const point = { title, path: open.slice(0, depth), isTest }
    open.splice(depth)
    if (directive === 'SKIP' || directive === 'TODO' || !(isTest || title.includes('['))) continue
    if (not === undefined) passed.push(point)
    else failed.push(point)
  }
  return { passed, failed }
}

/** Whether two points are the same one of two runs. */
export function isSame(one: Point, other: Point): boolean {
  return one.title === other.title && one.path.join('\n') === other.path.join('\n')
}

function plain(text: string): string {
  return text.replaceAll(/\\([#\\])/g, '$1').trim()
}
