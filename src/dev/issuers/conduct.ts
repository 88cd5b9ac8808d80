/**
 * What a client did at a misbehaving issuer, and what that says: fooled when it does, after it was lied to, what only
 * somebody does who believed it; rejected when it was lied to and did not; not reached when it was not lied to.
 */
import type { Sent, Step } from './step.ts'

export type Outcome = 'rejected' | 'fooled'
export type Verdict = Outcome | 'not reached'

/** A step as it is judged. */
export interface JudgedStep extends Step {
  /** It shows an access or refresh token this issuer has told to somebody; undefined when it shows none. */
  readonly showsKnownToken: boolean | undefined
}

/** When a client was fooled: by what it does, or, where nobody else can see it, by its own word. */
export interface Criterion {
  /** "… redeems the code of that answer" */
  readonly text: string
  /** @param before The steps between the lie and `later`. */
  readonly isMet: (lie: JudgedStep, later: JudgedStep, before: readonly JudgedStep[]) => boolean
}

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
const [stepsKept, stepsTold] = [2000, 20]

/** For what only the client can know. */
export const onlyTold: Criterion = {
  text: 'it says so itself (POST …/outcome): nobody else sees what it made of the answer',
  isMet: () => false,
}

/** Watches one issuer. */
export class Conduct {
  readonly #criterion: Criterion
  #steps: JudgedStep[] = []
  #lies: JudgedStep[] = []
  #lieCount = 0
  #next: string[] = []
  #evidence: string | undefined
  #told: Told | undefined
  #isCompleted = false
  readonly #tokens = new Set<string>()

  constructor(criterion: Criterion) {
    this.#criterion = criterion
  }

  /** Takes in a request and its answer. */
  add(step: Step, isLie: boolean): void {
    const judged = { ...step, showsKnownToken: this.#knows(step.sent) }
    if (this.#lies.length > 0) {
      if (this.#next.length < stepsTold) this.#next.push(lineOf(judged))
      const met = this.#lies.some((lie) =>
        this.#criterion.isMet(lie, judged, this.#steps.slice(this.#steps.indexOf(lie) + 1)),
      )
      if (met) this.#evidence ??= lineOf(judged)
    }
    for (const token of [step.gave.accessToken, step.gave.refreshToken]) {
      if (token !== undefined) this.#tokens.add(token)
    }
    this.#isCompleted ||= isCall(judged) && judged.showsKnownToken === true && step.status === 200
    this.#steps = [...this.#steps, judged].slice(-stepsKept)
    if (isLie) {
      this.#lieCount += 1
      this.#lies = [...this.#lies, judged].slice(-stepsKept)
    }
  }

  /** Whether a step like this one came before. */
  has(like: (step: JudgedStep) => boolean): boolean {
    return this.#steps.some(like)
  }

  /** Takes the client's own word, which goes before what was seen. */
  tell(told: Told): void {
    this.#told = told
  }

  seen(): Seen {
    return {
      verdict: this.#verdict(),
      lies: this.#lieCount,
      ...(this.#evidence !== undefined && { evidence: this.#evidence }),
      ...(this.#told && { told: this.#told }),
      next: this.#next,
      isCompleted: this.#isCompleted,
    }
  }

  #verdict(): Verdict {
    if (this.#lieCount === 0) return 'not reached'
    if (this.#told !== undefined) return this.#told.outcome
    if (this.#evidence !== undefined) return 'fooled'
    return this.#criterion === onlyTold ? 'not reached' : 'rejected'
  }

  #knows({ accessToken, refreshToken }: Sent): boolean | undefined {
    const token = accessToken ?? refreshToken
    return token === undefined ? undefined : this.#tokens.has(token)
  }
}

function lineOf({ method, path, status, sent }: Step): string {
  const what = sent.grantType === undefined ? '' : ` ${sent.grantType}`
  return `${method} ${path}${what} ${status}`
}

const isCall = ({ place }: Step) => place === 'userinfo' || place === 'api'
const isRefresh = ({ sent }: Step) => sent.refreshToken !== undefined

export const redeemsTheCode: Criterion = {
  text: 'it sends a code of that answer to the token endpoint',
  isMet: ({ gave }, { sent }) => sent.code !== undefined && gave.codes.includes(sent.code),
}

export const usesTheTokens: Criterion = {
  text: 'it uses a token of that answer: the access token at UserInfo or the API, or the refresh token',
  isMet: ({ gave }, { sent }) =>
    (sent.accessToken !== undefined && sent.accessToken === gave.accessToken) ||
    (sent.refreshToken !== undefined && sent.refreshToken === gave.refreshToken),
}

/** For what concerns every token there is. */
export const usesAnyToken: Criterion = {
  text: 'it uses a token of this issuer: an access token at UserInfo or the API, or a refresh token',
  isMet: (_lie, later) => later.showsKnownToken === true,
}

export const keepsTheAccess: Criterion = {
  text: 'it goes on with what it has: calls the API, or refreshes',
  isMet: (_lie, later) => (later.place === 'api' && later.showsKnownToken === true) || isRefresh(later),
}

export const goesOnHere: Criterion = {
  text: 'it registers, sends a person to the authorization endpoint, or asks for tokens',
  isMet: (_lie, { place }) => ['registration', 'authorization', 'callback', 'token'].includes(place),
}

export const asksWithoutS256: Criterion = {
  text: 'it sends an authorization request without code_challenge_method=S256',
  isMet: (_lie, { place, method, path, sent }) =>
    path === '/oauth/authorize' && place !== 'other' && method !== 'HEAD' && sent.challengeMethod !== 'S256',
}

export const asksForTokens: Criterion = {
  text: 'a request for tokens arrives',
  isMet: (_lie, { place }) => place === 'token',
}

export const callsAnyway: Criterion = {
  text: 'it calls UserInfo or the API all the same, or refreshes',
  isMet: (_lie, later) => isCall(later) || isRefresh(later),
}

export const showsNoToken: Criterion = {
  text: 'it calls UserInfo or the API without a token this issuer gave it (the text "undefined", say), or refreshes with such a one',
  isMet: (_lie, later) => (isCall(later) || isRefresh(later)) && later.showsKnownToken !== true,
}

export const usesTheExpired: Criterion = {
  text: 'it uses the access token after it has expired',
  isMet: ({ gave }, { sent, at }) =>
    sent.accessToken !== undefined && sent.accessToken === gave.accessToken && at >= (gave.expiresAt ?? at),
}

export const repeatsTheRefused: Criterion = {
  text: 'it makes the same call with the same token again after it was refused (403)',
  isMet: (_lie, later, before) =>
    isCall(later) &&
    before.some(
      ({ status, path, method, sent }) =>
        status === 403 &&
        path === later.path &&
        method === later.method &&
        sent.accessToken === later.sent.accessToken,
    ),
}

/** For the issuer that does not lie. */
export const never: Criterion = { text: 'never: this issuer does not lie', isMet: () => false }
