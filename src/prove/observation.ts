import type { IncomingHttpHeaders } from 'node:http'

/** A request. A header with several values is sent as several lines. */
export interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | undefined
  /** A field of the form whose value reports do not show, whatever its name. */
  readonly secretField?: string
}

/** A request and the response to it. */
export interface Seen {
  readonly sent: Sent
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** What a check observed, and the first rule that an observation breaks. Without an observation it is no pass. */
export interface Judgement {
  readonly seen: readonly Seen[]
  readonly fault?: string | undefined
}

/** A fact about one response: undefined if it is met, otherwise what came instead. */
export type Rule = (seen: Seen) => string | undefined

/** The server does not offer what the clause is about. */
export class NotApplicable extends Error {}

/** The clause takes something that this run was not given. */
export class NotRun extends Error {
  constructor(option: string, options?: ErrorOptions) {
    super(`needs ${option}`, options)
  }
}

/** The clause applies and could not be observed. */
export class NotTestable extends Error {}

/** Judges a response by rules, in their order. */
export function judge(seen: Seen, ...rules: readonly Rule[]): Judgement {
  for (const rule of rules) {
    const fault = rule(seen)
    if (fault !== undefined) return { seen: [seen], fault }
  }
  return { seen: [seen] }
}

/** Judges several responses, each by its own rules; the first fault counts, and is the last that is shown. */
export function judgeEach(...judgements: readonly Judgement[]): Judgement {
  const at = judgements.findIndex(({ fault }) => fault !== undefined)
  const shown = at === -1 ? judgements : judgements.slice(0, at + 1)
  return { seen: shown.flatMap(({ seen }) => seen), fault: judgements[at]?.fault }
}
