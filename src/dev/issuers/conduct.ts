/**
 * What a client did at a misbehaving issuer, and the verdict. It was fooled if, after a wrong response, it did what
 * only a client does that accepted it; it rejected the response if it did not; otherwise it did not reach the issuer.
 */
import { type Criterion, isCall, type JudgedStep, onlyReported, usesTheTokens } from './criteria.ts'
import type { Step } from './step.ts'

/** What a client reports about itself. */
export interface ReportedOutcome {
  readonly outcome: 'rejected' | 'fooled'
  readonly reason?: string
}

/** Whether a client accepted a wrong response, or received none. */
export type Verdict = ReportedOutcome['outcome'] | 'not reached'

/** What was seen at one issuer. */
export interface Seen {
  readonly verdict: Verdict
  /** How many wrong responses were sent. */
  readonly wrong: number
  /** The request that showed that the client was fooled. */
  readonly evidence?: string
  readonly outcome?: ReportedOutcome
  /** What came after the first wrong response, oldest first. */
  readonly next: readonly string[]
  /** An access token of this issuer was used: a whole flow succeeded. */
  readonly isCompleted: boolean
}

/** At most this many steps are compared, the newest, and this many reported. */
const [stepsKept, stepsReported] = [500, 20]

/** Watches one issuer. */
export class Conduct {
  readonly #criterion: Criterion
  #memory = emptyMemory()

  constructor(criterion: Criterion) {
    this.#criterion = criterion
  }

  /** Adds a request and its response; `isWrong` if the response was changed. */
  add(step: Step, isWrong: boolean): void {
    const memory = this.#memory
    const shown = step.sent.accessToken ?? step.sent.refreshToken
    const judged = { ...step, showsKnownToken: shown === undefined ? undefined : memory.tokens.has(shown) }
    if (memory.wrong.length > 0) this.#judge(judged)
    for (const token of [step.gave.accessToken, step.gave.refreshToken]) {
      if (token !== undefined) memory.tokens.add(token)
    }
    memory.isCompleted ||= isCall(judged) && judged.showsKnownToken === true && step.status === 200
    memory.steps = [...memory.steps, judged].slice(-stepsKept)
    if (!isWrong) return
    memory.wrongCount += 1
    memory.wrong = [...memory.wrong, judged].slice(-stepsKept)
  }

  /** Whether there was such a step. */
  has(matches: (step: JudgedStep) => boolean): boolean {
    return this.#memory.steps.some(matches)
  }

  /** Adds the client's own report. */
  addOutcome(outcome: ReportedOutcome): void {
    this.#memory.outcome = outcome
  }

  /** Deletes what was seen. */
  clear(): void {
    this.#memory = emptyMemory()
  }

  seen(): Seen {
    const { wrongCount, evidence, outcome, next, isCompleted } = this.#memory
    return {
      verdict: this.#verdict(),
      wrong: wrongCount,
      ...(evidence !== undefined && { evidence }),
      ...(outcome && { outcome }),
      next,
      isCompleted,
    }
  }

  #judge(later: JudgedStep): void {
    const memory = this.#memory
    const { isMet, moment } = this.#criterion
    if (memory.next.length < stepsReported) memory.next.push(lineOf(later))
    for (const wrong of memory.wrong) {
      const between = memory.steps.slice(memory.steps.indexOf(wrong) + 1)
      if (isMet(wrong, later, between)) memory.evidence ??= lineOf(later)
      memory.isUsed ||= usesTheTokens.isMet(wrong, later, [])
      memory.isMoment ||= moment?.(wrong, later) ?? true
    }
  }

  /** What was seen counts more than what the client reports, unless it reports that it was fooled. */
  #verdict(): Verdict {
    const { wrongCount, evidence, outcome, isUsed, isMoment } = this.#memory
    if (wrongCount === 0) return 'not reached'
    if (evidence !== undefined || outcome?.outcome === 'fooled') return 'fooled'
    if (this.#criterion === onlyReported) return outcome?.outcome ?? 'not reached'
    return isUsed && !isMoment ? 'not reached' : 'rejected'
  }
}

function emptyMemory() {
  return {
    steps: [] as readonly JudgedStep[],
    /** The steps whose response was wrong. */
    wrong: [] as readonly JudgedStep[],
    wrongCount: 0,
    next: [] as string[],
    evidence: undefined as string | undefined,
    outcome: undefined as ReportedOutcome | undefined,
    /** Tokens of a wrong response were used. */
    isUsed: false,
    /** A wrong response has come to matter. */
    isMoment: false,
    isCompleted: false,
    tokens: new Set<string>(),
  }
}

function lineOf({ method, path, status, sent: { grantType } }: Step): string {
  return `${method} ${path}${grantType === undefined ? '' : ` ${grantType}`} ${status}`
}
