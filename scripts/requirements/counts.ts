import { type DocumentVerdict, type State, states, type Verdict } from './judge.ts'

/** How many clauses of a document are in each state. */
export interface Counts {
  readonly document: string
  readonly clauses: number
  readonly states: Readonly<Record<State, number>>
}

/** The counts of each document, and of all. */
export function count(documents: readonly DocumentVerdict[]): {
  readonly documents: readonly Counts[]
  readonly total: Counts
} {
  return {
    documents: documents.map(({ document, verdicts }) => countOf(document.name, verdicts)),
    total: countOf(
      'all',
      documents.flatMap(({ verdicts }) => verdicts),
    ),
  }
}

/** The counts as rows of text, a heading first. */
export function countRows(documents: readonly DocumentVerdict[]): readonly (readonly string[])[] {
  const counted = count(documents)
  const rows = [...counted.documents, counted.total].map((counts) => [
    counts.document,
    String(counts.clauses),
    ...states.map((state) => String(counts.states[state])),
  ])
  return [['document', 'clauses', ...states], ...rows]
}

function countOf(document: string, verdicts: readonly Verdict[]): Counts {
  const of = (state: State) => verdicts.filter((verdict) => verdict.state === state).length
  return {
    document,
    clauses: verdicts.length,
    states: {
      'over HTTP': of('over HTTP'),
      'white-box': of('white-box'),
      declined: of('declined'),
      planned: of('planned'),
      unproven: of('unproven'),
    },
  }
}
