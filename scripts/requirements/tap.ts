/** A test, or an assertion whose message begins with an id. */
export interface Proof {
  readonly file: string
  /** The title of the test, without its leading ids; an assertion has that of the test around it. */
  readonly title: string
  /** The ids of the clauses it proves. */
  readonly ids: readonly string[]
  readonly outcome: Outcome
}

/** `empty`: the test asserts nothing. `skipped`: the test or a part of it was skipped or is marked as to do. */
export type Outcome = 'passed' | 'failed' | 'skipped' | 'empty'

/** The results of a run. */
export interface Run {
  /** The test files that ran to their end, passed or not. */
  readonly files: readonly string[]
  readonly proofs: readonly Proof[]
}

/** Parses the TAP of a run of test files: subtests are indented by four, a file is a point that is not indented. */
export function readTap(tap: string): Run {
  const [files, proofs]: [string[], Proof[]] = [[], []]
  const ofFile: Omit<Proof, 'file'>[] = []
  const open: Open[] = []
  for (const { depth, text } of linesOf(tap)) {
    if (depth > open.length) continue
    if (text.startsWith('# Subtest: ')) {
      const { title } = splitTitle(unescaped(text.slice('# Subtest: '.length)))
      open.splice(depth, open.length, { title, points: 0, skipped: false })
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
      proofs.push(...ofFile.splice(0).map((proof) => ({ file: point.title, ...proof })))
      continue
    }
    const { ids, title } = splitTitle(point.title)
    if (own !== undefined || point.skipped) ofFile.push({ ids, title, outcome: outcomeOf(point, own) })
    else if (ids.length > 0) {
      const around = open.slice(1).at(-1)?.title ?? title
      ofFile.push({ ids, title: around, outcome: point.ok ? 'passed' : 'failed' })
    }
  }
  return { files, proofs }
}

/** A subtest that has begun and not ended. */
interface Open {
  readonly title: string
  points: number
  skipped: boolean
}

/** Yields the lines of TAP with their depth. Leaves out diagnostics, which may quote anything. */
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

/** Splits a title into its leading ids, each in square brackets, and the text after them. */
export function splitTitle(text: string): { readonly ids: readonly string[]; readonly title: string } {
  const ids: string[] = []
  let title = text
  for (;;) {
    // An id begins with a-z and has a hyphen: a title may begin with `[::1]`.
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
