/** A test of a run: a point of the TAP with points of its own, or one that was skipped. */
export interface Test {
  readonly file: string
  /** Without the ids it begins with. */
  readonly title: string
  /** The ids of the clauses it proves. */
  readonly ids: readonly string[]
  readonly outcome: Outcome
}

/** `empty`: it asserted nothing. `skipped`: it or a part of it was skipped or is still to do. */
export type Outcome = 'passed' | 'failed' | 'skipped' | 'empty'

/** What a run did. */
export interface Run {
  /** The test files that ran to their end, passed or not. */
  readonly files: readonly string[]
  readonly tests: readonly Test[]
}

/** Reads the TAP of a run of test files: subtests are indented by four, a file is a point at the margin. */
export function readTap(tap: string): Run {
  const [files, tests]: [string[], Test[]] = [[], []]
  const ofFile: Omit<Test, 'file'>[] = []
  const open: Open[] = []
  for (const { depth, text } of linesOf(tap)) {
    if (depth > open.length) continue
    if (text.startsWith('# Subtest: ')) {
      open.splice(depth, open.length, { points: 0, skipped: false })
      continue
    }
    const point = readPoint(text)
    if (point === undefined) continue
    const [own] = open.splice(depth)
    for (const around of open) {
      around.points += 1
      around.skipped ||= point.skipped
    }
    if (depth === 0) {
      files.push(point.title)
      tests.push(...ofFile.splice(0).map((test) => ({ file: point.title, ...test })))
    } else if (own !== undefined || point.skipped) {
      ofFile.push({ ...splitTitle(point.title), outcome: outcomeOf(point, own) })
    }
  }
  return { files, tests }
}

/** A subtest whose own point has not come yet. */
interface Open {
  points: number
  skipped: boolean
}

/** The lines of TAP with their depth, without diagnostics: these may quote anything. */
function* linesOf(tap: string): Generator<{ readonly depth: number; readonly text: string }> {
  let diagnosticEnd: string | undefined
  for (const line of tap.split('\n')) {
    const text = line.trimStart()
    const indent = line.slice(0, line.length - text.length)
    if (diagnosticEnd !== undefined) {
      if (line === diagnosticEnd) diagnosticEnd = undefined
    } else if (text === '---') diagnosticEnd = `${indent}...`
    else if (indent.length % 4 === 0) yield { depth: indent.length / 4, text }
  }
}

/** The ids a title begins with, each in square brackets, and what follows them. */
export function splitTitle(text: string): { readonly ids: readonly string[]; readonly title: string } {
  const ids: string[] = []
  let title = text
  for (;;) {
    // What has no hyphen, or begins with no letter, is no id: a title may begin with `[::1]`.
    const [whole, id] = /^\[([a-z][A-Za-z0-9.]*-[A-Za-z0-9.-]+)\]\s*/.exec(title) ?? []
    if (whole === undefined || id === undefined) return { ids, title }
    ids.push(id)
    title = title.slice(whole.length)
  }
}

interface Point {
  readonly ok: boolean
  readonly title: string
  readonly skipped: boolean
}

function readPoint(text: string): Point | undefined {
  const [whole, not, rest = ''] = /^(not )?ok \d+(?: - )?(.*)$/.exec(text) ?? []
  if (whole === undefined) return undefined
  const [, title = '', directive = ''] = /^((?:\\.|[^#\\])*)(?:# *(.*))?$/.exec(rest) ?? []
  return {
    ok: not === undefined,
    title: unescaped(title.trim()),
    skipped: /^(?:skip|todo)\b/i.test(directive),
  }
}

function outcomeOf({ ok, skipped }: Point, own: Open | undefined): Outcome {
  if (skipped || own?.skipped) return 'skipped'
  if (!ok) return 'failed'
  return own?.points === 0 ? 'empty' : 'passed'
}

function unescaped(text: string): string {
  return text.replaceAll(/\\([#\\])/g, '$1')
}
