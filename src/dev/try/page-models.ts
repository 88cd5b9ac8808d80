import type { Clause } from '../../audit/clause-of-rule.ts'
import type { Exchange } from '../flows/flow.ts'
import type { Outcome } from './run.ts'

/** Where a run begins. */
export interface TryPage {
  readonly scopes: string
  readonly people: readonly string[]
  readonly chosen?: string
  readonly steps: readonly { readonly title: string; readonly explanation: string }[]
  /** Misbehaving issuers to run against. */
  readonly liars: readonly { readonly id: string; readonly title: string; readonly clause: string }[]
}

/** A call as it is shown. */
export interface ShownCall {
  readonly method: string
  readonly url: string
  readonly status: number
  readonly tookMs: number
  /** As sent, and as received. */
  readonly request: string
  readonly answer: string
  readonly curl: string
  /** What the server says of it, from the trace. */
  readonly seen?: Exchange
}

/** A variant of a step: what happens when it is done wrong, or otherwise. */
export interface ShownVariant {
  readonly id: string
  readonly button: string
  readonly canTake: boolean
  readonly isLatest: boolean
  readonly outcome?: Outcome
  readonly calls: readonly ShownCall[]
}

/** A step as it stands. */
export interface ShownStep {
  readonly id: string
  readonly number: number
  readonly title: string
  readonly explanation: string
  readonly clauses: readonly Clause[]
  readonly state: 'done' | 'failed' | 'now' | 'later'
  readonly button?: string
  /** It was taken last. */
  readonly isLatest: boolean
  readonly outcome?: Outcome
  readonly calls: readonly ShownCall[]
  readonly variants: readonly ShownVariant[]
  /** The authorization request, where the browser goes next. */
  readonly leads?: {
    readonly url: string
    readonly parameters: readonly { readonly name: string; readonly value: string; readonly why: string }[]
  }
  /** What the browser did between the two, from the trace. */
  readonly browser: readonly Exchange[]
}

/** One run of the try-it client. */
export interface TryRunPage {
  readonly id: string
  readonly steps: readonly ShownStep[]
  readonly isOver: boolean
  /** The flow of this run in the trace. */
  readonly flowId?: string
}
