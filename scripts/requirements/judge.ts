import type { Clause, Document } from './ledger.ts'
import type { Outcome, Test } from './tap.ts'

/** `unproven`: nothing passed that proves it, and nothing says why. */
export type State = 'over HTTP' | 'white-box' | 'declined' | 'planned' | 'unproven'

export const states: readonly State[] = ['over HTTP', 'white-box', 'declined', 'planned', 'unproven']

/** A clause, what became of it, and the tests that prove it, those over HTTP first. */
export interface Verdict {
  readonly clause: Clause
  readonly state: State
  readonly proofs: readonly Test[]
}

/** The verdicts on one document. */
export interface DocumentVerdict {
  readonly document: Document
  readonly verdicts: readonly Verdict[]
}

/**
 * Tests that call the code itself, by the beginning of their path. All others talk to a listening server or run the
 * command, and see what a client, a browser or an operator sees.
 */
const whiteBox: readonly string[] = [
  'test/config/',
  'test/domain/',
  // Pages rendered from made-up models, and a verifier without a guard around it.
  'test/http/page',
  'test/guard/signed-by',
  'test/guard/key-rotation',
  'test/keys/',
  'test/mutants/',
  'test/passwords.test.ts',
  'test/properties/',
  'test/scripts/',
  'test/storage/',
]

/** The ids that `src` names as the rule of a rejection, each with its file. Rules of this server alone begin with `lychgate-`. */
export type Rules = readonly { readonly id: string; readonly file: string }[]

/** Whether a test of this file proves what can be seen over HTTP. */
export function isOverHttp(file: string): boolean {
  return !whiteBox.some((start) => file.startsWith(start))
}

/** What became of each clause in a run, and everything that is wrong with it. */
export function judge(
  documents: readonly Document[],
  tests: readonly Test[],
  rules: Rules,
): { readonly documents: readonly DocumentVerdict[]; readonly problems: readonly string[] } {
  const carriers = new Map<string, Test[]>()
  // Files that run at once end in any order.
  const ordered = tests.toSorted((one, other) => (one.file < other.file ? -1 : Number(one.file > other.file)))
  for (const test of ordered) for (const id of test.ids) carriers.set(id, [...(carriers.get(id) ?? []), test])
  const known = new Set(documents.flatMap(({ clauses }) => clauses.map(({ id }) => id)))
  const judged = documents.map((document) => ({
    document,
    verdicts: document.clauses.map((clause) => verdictOn(clause, carriers.get(clause.id) ?? [])),
  }))
  const problems = [
    ...unknownIds(known, carriers, rules),
    ...judged.flatMap(({ verdicts }) =>
      verdicts.flatMap((verdict) => problemsOf(verdict, carriers.get(verdict.clause.id) ?? [])),
    ),
  ]
  return { documents: judged, problems }
}

function verdictOn(clause: Clause, carriers: readonly Test[]): Verdict {
  const passed = carriers.filter(({ outcome }) => outcome === 'passed')
  const proofs = [
    ...passed.filter(({ file }) => isOverHttp(file)),
    ...passed.filter(({ file }) => !isOverHttp(file)),
  ]
  return { clause, proofs, state: stateOf(clause, proofs) }
}

function stateOf(clause: Clause, [best]: readonly Test[]): State {
  if (clause.declined !== undefined) return 'declined'
  if (best !== undefined) return isOverHttp(best.file) ? 'over HTTP' : 'white-box'
  return clause.planned === undefined ? 'unproven' : 'planned'
}

const badOutcome: Readonly<Record<Exclude<Outcome, 'passed'>, string>> = {
  failed: 'failed',
  skipped: 'was skipped, in whole or in part',
  empty: 'asserts nothing',
}

function problemsOf({ clause, state, proofs }: Verdict, carriers: readonly Test[]): readonly string[] {
  const { id, declined, planned, source, tier, level, check } = clause
  const [carrier] = carriers
  const isOwed = tier === 1 && level.startsWith('MUST')
  return [
    ...carriers.map(({ outcome, file, title }) =>
      outcome === 'passed' ? false : `${id}: its proof ${badOutcome[outcome]}: ${file}: ${title}`,
    ),
    declined !== undefined && carrier !== undefined && `${id}: is declined, and ${carrier.file} proves it`,
    planned !== undefined && proofs[0] !== undefined && `${id}: is planned, and ${proofs[0].file} proves it`,
    isOwed && state === 'unproven' && `${id}: no passing test carries it`,
    state === 'white-box' &&
      !check.startsWith('white-box') &&
      `${id}: can be seen over HTTP, and is proven only by ${proofs[0]?.file}`,
    proofs.length > 0 && source === undefined && `${id}: is proven, and names no source`,
  ].filter((problem) => problem !== false)
}

function unknownIds(
  known: ReadonlySet<string>,
  carriers: ReadonlyMap<string, readonly Test[]>,
  rules: Rules,
): readonly string[] {
  const inTitles = [...carriers].flatMap(([id, tests]) =>
    known.has(id) ? [] : tests.map(({ file, title }) => `${id}: is in no ledger: ${file}: ${title}`),
  )
  const inSource = rules.flatMap(({ id, file }) =>
    known.has(id) ? [] : [`${id}: is in no ledger: rule of a refusal in ${file}`],
  )
  return [...inTitles, ...inSource]
}
