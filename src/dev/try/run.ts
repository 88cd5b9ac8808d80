import { hash } from 'node:crypto'
import type { Seconds } from '../../domain/model.ts'
import type { RandomSource } from '../../system.ts'
import type { Call } from './call.ts'

/** Something a client has to check before it goes on. */
export interface Check {
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly ok: boolean
}

/** What a step came to. */
export interface Outcome {
  readonly ok: boolean
  /** In a sentence. */
  readonly said: string
  readonly calls: readonly Call[]
  readonly checks?: readonly Check[]
  /** Names and values worth looking at, line by line. */
  readonly shown?: readonly { readonly name: string; readonly value: string; readonly why?: string }[]
  readonly decoded?: readonly { readonly name: string; readonly json: string }[]
}

/** The tokens of the last answer that had some. */
export interface Tokens {
  readonly access: string
  readonly refresh?: string
  readonly id?: string
}

/** One use of the try-it client: what a client keeps between its steps. */
export interface Run {
  readonly id: string
  readonly startedAt: Seconds
  readonly redirectUri: string
  readonly scope: string
  /** The area of the API it calls. */
  readonly area: string
  readonly loginHint?: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly challenge: string
  /** By step; a step that is done again replaces what it came to. */
  readonly outcomes: Map<string, Outcome>
  calls: number
  metadata?: Readonly<Record<string, unknown>>
  clientId?: string
  /** What came back to the redirect URI. */
  callback?: Readonly<Record<string, string>>
  tokens?: Tokens
  /** The refresh token before the current one. */
  replaced?: string
  /** The step or variant that was taken last. */
  last?: string
  sub?: string
}

/** What a run begins with. */
export type RunChoice = Pick<Run, 'redirectUri' | 'scope' | 'area' | 'loginHint' | 'startedAt'>

/** A run with fresh secrets, RFC 7636 §4.1 and RFC 6749 §10.12. */
export function beginRun(choice: RunChoice, random: RandomSource): Run {
  const verifier = random(32).toString('base64url')
  return {
    ...choice,
    id: random(16).toString('base64url'),
    state: random(16).toString('base64url'),
    nonce: random(16).toString('base64url'),
    verifier,
    challenge: hash('sha256', verifier, 'base64url'),
    outcomes: new Map(),
    calls: 0,
  }
}

const mostRuns = 20

/** The runs of a server, the newest twenty. */
export interface Runs {
  add(run: Run): void
  find(id: string): Run | undefined
  /** The run a callback belongs to: by the state, as clients do. */
  ofState(state: string): Run | undefined
}

/** No runs yet. */
export function openRuns(): Runs {
  const runs = new Map<string, Run>()
  return {
    add(run) {
      runs.set(run.id, run)
      for (const id of [...runs.keys()].slice(0, -mostRuns)) runs.delete(id)
    },
    find: (id) => runs.get(id),
    ofState: (state) => [...runs.values()].find((run) => run.state === state),
  }
}
