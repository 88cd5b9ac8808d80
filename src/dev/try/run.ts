import { hash } from 'node:crypto'
import type { AuthorizationServer } from 'oauth4webapi'
import type { RandomSource } from '../../system.ts'
import type { Call } from './call.ts'

/** A value that a client has to check before it continues. */
export interface Check {
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly ok: boolean
}

/** The result of a step. */
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

/** One use of the try-it client: what a client remembers between its steps. */
export interface Run {
  readonly id: string
  readonly redirectUri: string
  readonly scope: string
  /** The area of the API it calls. */
  readonly area: string
  readonly loginHint?: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly challenge: string
  /** By step or variant; a step that is taken again replaces its outcome. */
  readonly outcomes: Map<string, Outcome>
  calls: number
  metadata?: AuthorizationServer
  clientId?: string
  /** What came back to the redirect URI, and the same once it is validated. */
  callback?: Readonly<Record<string, string>>
  validated?: URLSearchParams
  /** The tokens of the last token response, and its JSON. */
  tokens?: { readonly access: string; readonly refresh?: string; readonly id?: string; readonly json: string }
  /** The refresh token before the current one. */
  replaced?: string
  /** The step or variant that was taken last. */
  last?: string
  sub?: string
}

/** A run with fresh secrets, RFC 7636 §4.1 and RFC 6749 §10.12. */
export function beginRun(
  choice: Pick<Run, 'redirectUri' | 'scope' | 'area' | 'loginHint'>,
  random: RandomSource,
): Run {
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
