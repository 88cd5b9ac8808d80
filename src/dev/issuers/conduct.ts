/**
 * What a client did at a misbehaving issuer, and the verdict: fooled if, after the false response, it does what
 * only a client does that believed it; rejected if it received the false response and did not; not reached if it
 * never received it.
 */
import { type Criterion, isCall, type JudgedStep, onlyTold, usesTheTokens } from './criteria.ts'
import type { Sent, Step } from './step.ts'

/** What becomes of a client that was lied to. */
export type Outcome = 'rejected' | 'fooled'
/** The same, or that it was not. */
export type Verdict = Outcome | 'not reached'

/** What a client said itself about a lie. */
export interface Told {
  readonly outcome: Outcome
  readonly reason?: string
}

/** What was seen at one issuer. */
export interface Seen {
  readonly verdict: Verdict
  /** How often the lie was told. */
  readonly lies: number
  /** The request that showed that the client was fooled. */
  readonly evidence?: string
  readonly told?: Told
  /** What came after the first lie, the oldest first. */
  readonly next: readonly string[]
  /** Some access token of this issuer was used: a whole flow came to its end. */
  readonly isCompleted: boolean
}

/** The newest so many steps count, and so many after the first lie are told. */
const [stepsKept, stepsTold] = [500, 20]

/** Watches one issuer. */
export class Conduct {
  readonly #criterion: Criterion
  #seen: Memory = nothing()

  constructor(criterion: Criterion) {
    this.#criterion = criterion
  }

  /** Takes in a request and its answer. */
  add(step: Step, isLie: boolean): void {
    const seen = this.#seen
    const judged = { ...step, showsKnownToken: showsKnownToken(step.sent, seen.tokens) }
    if (seen.lies.length > 0) this.#judge(judged)
    for (const token of [step.gave.accessToken, step.gave.refreshToken]) {
      if (token !== undefined) seen.tokens.add(token)
    }
    seen.isCompleted ||= isCall(judged) && judged.showsKnownToken === true && step.status === 200
    seen.steps = [...seen.steps, judged].slice(-stepsKept)
    if (!isLie) return
    seen.lieCount += 1
    seen.lies = [...seen.lies, judged].slice(-stepsKept)
  }

  /** Whether a step like this one came before. */
  has(like: (step: JudgedStep) => boolean): boolean {
    return this.#seen.steps.some(like)
  }

  /** Takes the client's own word. */
  tell(told: Told): void {
    this.#seen.told = told
  }

  /** Forgets all. */
  clear(): void {
    this.#seen = nothing()
  }

  seen(): Seen {
    const { lieCount, evidence, told, next, isCompleted } = this.#seen
    return {
      verdict: this.#verdict(),
      lies: lieCount,
      ...(evidence !== undefined && { evidence }),
      ...(told && { told }),
      next,
      isCompleted,
    }
  }

  #judge(later: JudgedStep): void {
    const seen = this.#seen
    const { isMet, moment } = this.#criterion
    if (seen.next.length < stepsTold) seen.next.push(lineOf(later))
    for (const lie of seen.lies) {
      if (isMet(lie, later, seen.steps.slice(seen.steps.indexOf(lie) + 1))) seen.evidence ??= lineOf(later)
      seen.isUsed ||= usesTheTokens.isMet(lie, later, [])
      seen.isMoment ||= moment?.(lie, later) ?? true
    }
  }

  /** What was seen goes before what the client says of itself, unless it says that it was fooled. */
  #verdict(): Verdict {
    const { lieCount, evidence, told, isUsed, isMoment } = this.#seen
    if (lieCount === 0) return 'not reached'
    if (evidence !== undefined || told?.outcome === 'fooled') return 'fooled'
    if (this.#criterion === onlyTold) return told?.outcome ?? 'not reached'
    return isUsed && !isMoment ? 'not reached' : 'rejected'
  }
}

/** What a conduct remembers. */
interface Memory {
  steps: JudgedStep[]
  lies: JudgedStep[]
  lieCount: number
  next: string[]
  evidence: string | undefined
  told: Told | undefined
  isUsed: boolean
  isMoment: boolean
  isCompleted: boolean
  readonly tokens: Set<string>
}

function nothing(): Memory {
  return {
    steps: [],
    lies: [],
    lieCount: 0,
    next: [],
    evidence: undefined,
    told: undefined,
    isUsed: false,
    isMoment: false,
    isCompleted: false,
    tokens: new Set(),
  }
}

function showsKnownToken({ accessToken, refreshToken }: Sent, tokens: ReadonlySet<string>) {
  const token = accessToken ?? refreshToken
  return token === undefined ? undefined : tokens.has(token)
}

function lineOf({ method, path, status, sent }: Step): string {
  const what = sent.grantType === undefined ? '' : ` ${sent.grantType}`
  return `${method} ${path}${what} ${status}`
}
