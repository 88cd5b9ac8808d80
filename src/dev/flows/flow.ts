import type { Clause } from '../../audit/clause-of-rule.ts'
import type { Seconds } from '../../domain/model.ts'

/** What a request is in a flow, from discovery to revocation. */
export type Step = string

/** A rule and what it judged: stored against received, never a secret. */
export interface Judgement {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  readonly clause: Clause
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: string
  readonly received?: string
}

/** A rule that rejected, and the error the client was told. */
export interface RejectedCheck extends Judgement {
  readonly error: string
}

/** A request or a response as it was on the wire, its secrets replaced by `(kind~fingerprint)`. */
export interface Message {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: { readonly type: string; readonly text: string; readonly cut: boolean }
}

/** A token that was on the wire: the same fingerprint is the same token. */
export interface TokenSight {
  readonly kind: 'code' | 'refresh' | 'access' | 'id'
  /** As in `(code~3f9a1c)`. */
  readonly fingerprint: string
  /** Which of its grant; a code is number 0. */
  readonly seq?: number
  readonly grantId?: string
  readonly issuedAt?: Seconds
  readonly expiresAt?: Seconds
  /** The scope of an access token that may do less than its grant. */
  readonly scope?: readonly string[]
  /** The header and the claims of a JWT; its signature is left out. */
  readonly jwt?: { readonly header: unknown; readonly claims: unknown }
}

/** One request and its answer. */
export interface Exchange {
  /** The request id. */
  readonly id: string
  readonly step: Step
  /** The server's time when it came. */
  readonly at: Seconds
  /** Milliseconds since the first request of its flow. */
  readonly afterMs: number
  readonly tookMs: number
  /** How far the server's clock was moved since the exchange before. */
  readonly clockMoved?: Seconds
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly status: number
  /** The client went away, or was cut off, before the response was out. */
  readonly broken: boolean
  readonly request: Message
  readonly answer: Message
  /** Where a redirect leads, and what it carries. */
  readonly location?: string
  /** The rules that held, in the order they were asked. */
  readonly held: readonly Judgement[]
  readonly refused?: RejectedCheck
  /** What it changed in the store. */
  readonly writes: readonly string[]
  readonly presented: readonly TokenSight[]
  readonly issued: readonly TokenSight[]
  /** Anything else that was noted about it, such as a fault fired on purpose. */
  readonly notes: readonly string[]
}

/** A token of a flow, with what was made from it. */
export interface TokenNode extends TokenSight {
  /** The request that issued it. */
  readonly by: string
  /** Whether it works now, by the server's own decision, and why not. */
  readonly active: boolean
  readonly why?: string
  readonly rule?: string
  readonly children: readonly TokenNode[]
}

/** Everything one client did with one grant: discovery, registration, authorization, tokens, calls, revocation. */
export interface Flow {
  readonly id: string
  readonly startedAt: Seconds
  readonly lastAt: Seconds
  readonly client?: { readonly id: string; readonly name?: string }
  /** The user name of the user who signed in. */
  readonly person?: string
  /** How many of its exchanges were rejected. */
  readonly refused: number
  readonly exchanges: readonly Exchange[]
  /** Exchanges beyond what is kept of one flow. */
  readonly omitted: number
  /** The lineage of its tokens. */
  readonly tokens: readonly TokenNode[]
}
