import type { Seconds } from '../../domain/model.ts'
import type { Clause } from '../../observability/clause-of-rule.ts'

/** The name of a request in a flow, such as `discovery` or `revocation`. */
export type Step = string

/** A rule, and the stored and received values that it compared, without secrets. */
export interface Judgement {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  readonly clause: Clause
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: string
  readonly received?: string
}

/** The rule that rejected a request, and the error in the response. */
export interface RejectedCheck extends Judgement {
  readonly error: string
  /** It is part of every successful run, such as a poll before the user decides. */
  readonly isRoutine?: true
}

/** A request or a response as it was on the wire, with secrets replaced by `(kind~fingerprint)`. */
export interface Message {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: { readonly type: string; readonly text: string; readonly cut: boolean }
}

/** A token on the wire. The same fingerprint means the same token. */
export interface TokenSight {
  readonly kind: 'code' | 'refresh' | 'access' | 'id'
  /** The same as in `(code~3f9a1c)`. */
  readonly fingerprint: string
  /** Its number within its grant; a code is number 0. */
  readonly seq?: number
  readonly grantId?: string
  readonly issuedAt?: Seconds
  readonly expiresAt?: Seconds
  /** The scope of an access token that has less than its grant. */
  readonly scope?: readonly string[]
  /** The header and the claims of a JWT; its signature is left out. */
  readonly jwt?: { readonly header: unknown; readonly claims: unknown }
}

/** One request and its response. */
export interface Exchange {
  /** The request id. */
  readonly id: string
  readonly step: Step
  /** The server's time when the request arrived. */
  readonly at: Seconds
  /** Milliseconds since the first request of its flow. */
  readonly afterMs: number
  readonly tookMs: number
  /** How far the server's clock was moved since the previous exchange. */
  readonly clockMoved?: Seconds
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly status: number
  /** The connection ended before the whole response was sent. */
  readonly broken: boolean
  readonly request: Message
  readonly answer: Message
  /** The target of a redirect. */
  readonly location?: string
  /** The checks that passed, in order. */
  readonly passed: readonly Judgement[]
  readonly refused?: RejectedCheck
  /** How many routine rejections in a row it stands for, the last of them; absent: one. */
  readonly times?: number
  /** The changes it made in the store. */
  readonly writes: readonly string[]
  readonly presented: readonly TokenSight[]
  readonly issued: readonly TokenSight[]
  /** Other notes, such as an applied fault. */
  readonly notes: readonly string[]
}

/** A token of a flow, with the tokens that were issued for it. */
export interface TokenNode extends TokenSight {
  /** The request that issued it. */
  readonly by: string
  /** Whether the server would accept it now; if not, `why`. */
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
  /** The name of the user who signed in. */
  readonly user?: string
  /** How many of its exchanges were rejected. */
  readonly refused: number
  readonly exchanges: readonly Exchange[]
  /** How many exchanges were deleted, because one flow keeps a limited number. */
  readonly omitted: number
  /** The lineage of its tokens. */
  readonly tokens: readonly TokenNode[]
}
