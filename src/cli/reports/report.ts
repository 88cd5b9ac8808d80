/** What was found about clauses: of a server by `prove`, of a client by `dev report`. */
export interface ClauseReport {
  /** The command that judged. */
  readonly tool: string
  /** The issuer, or the client. */
  readonly subject: string
  readonly profile: string
  readonly results: readonly ReportedClause[]
}

export interface ReportedClause {
  readonly check: string
  readonly level: string
  /** The text and its section, and where to read it. */
  readonly place: string
  readonly url: string
  readonly wants: string
  readonly verdict: 'pass' | 'fail' | 'warning' | 'not applicable' | 'not testable' | 'not run'
  readonly because?: string
  readonly milliseconds?: number
  readonly observations: readonly { readonly sent: string; readonly came: string }[]
}

/** How many clauses have each verdict that occurs. */
export function verdictsOf({ results }: ClauseReport): ReadonlyMap<ReportedClause['verdict'], number> {
  const counts = new Map<ReportedClause['verdict'], number>()
  for (const { verdict } of results) counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
  return counts
}

/** The last observation of a result as text. */
export function observationOf({ observations }: ReportedClause): string {
  const last = observations.at(-1)
  return last === undefined ? '' : `sent: ${last.sent}\ncame: ${last.came}`
}
