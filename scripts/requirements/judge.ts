import type { Clause, Document } from './ledger.ts'
import type { Outcome, Proof } from './tap.ts'

/** `unproven`: no passed test proves it, and the ledger gives no reason. */
export type State = 'over HTTP' | 'white-box' | 'declined' | 'planned' | 'unproven'

export const states: readonly State[] = ['over HTTP', 'white-box', 'declined', 'planned', 'unproven']

/** A clause, its state, and the tests that prove it, each once, those over HTTP first. */
export interface Verdict {
  readonly clause: Clause
  readonly state: State
  readonly proofs: readonly Proof[]
}

/** The verdicts on one document. */
export interface DocumentVerdict {
  readonly document: Document
  readonly verdicts: readonly Verdict[]
}

/**
 * The tests that see only what a client, a browser or an operator sees, by the beginning of their path, each with the
 * reason. A proof in any other file is white-box.
 */
const overHttp: Readonly<Record<string, string>> = {
  'test/browser/': 'Chromium, against a listening server',
  'test/clients/operator-client.test.ts': 'the requests of a client to a listening server',
  'test/conformance/': 'the requests of a client to a listening server',
  'test/forward-auth/access.test.ts': 'a proxy and a browser of a listening server',
  'test/forward-auth/attacks.test.ts': 'a proxy and a browser of a listening server',
  'test/forward-auth/flow.test.ts': 'a proxy and a browser of a listening server',
  'test/guard/guard.test.ts': 'the requests of a client to a listening API behind the guard',
  'test/http/json-depth.test.ts': 'requests to every route of a listening server',
  'test/http/sweeper.test.ts': 'requests to a listening server before and after a sweep',
  'test/interop/': 'client libraries of other projects, against a listening server',
  'test/keys/running-server.test.ts': 'requests to a listening server whose keys an operator rotates',
  'test/pages/account/': 'a browser on the account page of a listening server',
  'test/pages/authorization-pages.test.ts': 'a browser on the pages of a listening server',
  'test/pages/client-logo.test.ts': 'a browser on the pages of a listening server',
  'test/pages/form-injection.test.ts': 'a browser on the pages of a listening server',
  'test/pages/page-forms.test.ts': 'a browser on the pages of a listening server',
  'test/pages/sign-in/': 'a browser on the pages of a listening server',
  'test/process/': 'the command in a process, and requests to it',
  'test/robustness/': 'bytes on a socket to a listening server',
  'test/users/groups.test.ts': 'what clients and operators see on a listening server',
  'test/users/session-ends.test.ts': 'a browser and clients of a listening server',
}

/** How many clauses a test may name in its title. With more, a reader cannot tell which assertion proves which. */
const mostIds = 4

/**
 * The ids that `src` names as the rule of an error, each with its file. Rules of this server alone begin with
 * `lychgate-`.
 */
export type Rules = readonly { readonly id: string; readonly file: string }[]

/** Whether a test of this file proves what can be observed over HTTP. */
function isOverHttp({ file }: Proof): boolean {
  return Object.keys(overHttp).some((start) => file.startsWith(start))
}

/** Judges each clause by the proofs of a run, and lists every problem. */
export function judge(
  documents: readonly Document[],
  proofs: readonly Proof[],
  rules: Rules,
): { readonly documents: readonly DocumentVerdict[]; readonly problems: readonly string[] } {
  const carriers = new Map<string, Proof[]>()
  // Test files run in parallel and end in any order.
  const ordered = proofs.toSorted((one, other) =>
    one.file < other.file ? -1 : Number(one.file > other.file),
  )
  for (const proof of ordered)
    for (const id of proof.ids) carriers.set(id, [...(carriers.get(id) ?? []), proof])
  const known = new Set(documents.flatMap(({ clauses }) => clauses.map(({ id }) => id)))
  const judged = documents.map((document) => ({
    document,
    verdicts: document.clauses.map((clause) => verdictOn(clause, carriers.get(clause.id) ?? [])),
  }))
  const problems = [
    ...unknownIds(known, carriers, rules),
    ...ordered.flatMap(({ ids, file, title }) =>
      ids.length > mostIds ? [`${file}: names ${ids.length} clauses, and may name ${mostIds}: ${title}`] : [],
    ),
    ...judged.flatMap(({ verdicts }) =>
      verdicts.flatMap((verdict) => problemsOf(verdict, carriers.get(verdict.clause.id) ?? [])),
    ),
  ]
  return { documents: judged, problems }
}

function verdictOn(clause: Clause, carriers: readonly Proof[]): Verdict {
  const passed = carriers.filter(({ outcome }) => outcome === 'passed')
  const sorted = [...passed.filter(isOverHttp), ...passed.filter((proof) => !isOverHttp(proof))]
  const byTest = new Map(sorted.map((proof) => [`${proof.file} ${proof.title}`, proof]))
  const proofs = [...byTest.values()]
  return { clause, proofs, state: stateOf(clause, proofs) }
}

/** A clause about what only the database or the log shows is white-box, wherever its test is. */
function isWhiteBox({ check }: Clause): boolean {
  return check.startsWith('white-box')
}

function stateOf(clause: Clause, [best]: readonly Proof[]): State {
  if (clause.declined !== undefined) return 'declined'
  if (best !== undefined) return isOverHttp(best) && !isWhiteBox(clause) ? 'over HTTP' : 'white-box'
  return clause.planned === undefined ? 'unproven' : 'planned'
}

const badOutcome: Readonly<Record<Exclude<Outcome, 'passed'>, string>> = {
  failed: 'failed',
  skipped: 'was skipped, in whole or in part',
  empty: 'asserts nothing',
}

function problemsOf({ clause, state, proofs }: Verdict, carriers: readonly Proof[]): readonly string[] {
  const { id, declined, planned, source, tier, level } = clause
  const [carrier] = carriers
  const isOwed = tier === 1 && level.startsWith('MUST')
  const hasOwn = carriers.some(({ ids, outcome }) => ids.length === 1 && outcome === 'passed')
  return [
    ...carriers.map(({ outcome, file, title }) =>
      outcome === 'passed' ? false : `${id}: its proof ${badOutcome[outcome]}: ${file}: ${title}`,
    ),
    declined !== undefined && carrier !== undefined && `${id}: is declined, and ${carrier.file} proves it`,
    planned !== undefined && proofs[0] !== undefined && `${id}: is planned, and ${proofs[0].file} proves it`,
    isOwed && state === 'unproven' && `${id}: no passing test or assertion names it`,
    isOwed &&
      proofs.length > 0 &&
      !hasOwn &&
      `${id}: no assertion names it alone, and each title names others too: ${proofs[0]?.file}: ${proofs[0]?.title}`,
    state === 'white-box' &&
      !isWhiteBox(clause) &&
      `${id}: its check is over HTTP, and it is proven only by ${proofs[0]?.file}, which is white-box`,
    proofs.length > 0 && source === undefined && `${id}: is proven, and names no source`,
  ].filter((problem) => problem !== false)
}

function unknownIds(
  known: ReadonlySet<string>,
  carriers: ReadonlyMap<string, readonly Proof[]>,
  rules: Rules,
): readonly string[] {
  const inTests = [...carriers].flatMap(([id, proofs]) =>
    known.has(id) ? [] : proofs.map(({ file, title }) => `${id}: is in no ledger: ${file}: ${title}`),
  )
  const inSource = rules.flatMap(({ id, file }) =>
    known.has(id) ? [] : [`${id}: is in no ledger: rule of an error in ${file}`],
  )
  return [...inTests, ...inSource]
}
