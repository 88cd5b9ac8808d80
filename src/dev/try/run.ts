import { hash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import * as oauth from 'oauth4webapi'
import type { Seconds } from '../../domain/model.ts'
import { type RandomSource, systemClock } from '../../system/system.ts'
import { objectOf } from '../json-body.ts'
import { type Call, type RecordingFetch, recordingFetch } from './call.ts'

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

/** One run of the try-it client: what a client remembers between its steps. */
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
  /** By step or variant; repeating a step replaces its outcome. */
  readonly outcomes: Map<string, Outcome>
  calls: number
  metadata?: oauth.AuthorizationServer
  clientId?: string
  /** The authorization response, and the same after validation. */
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

/** Begins a run with new secrets, RFC 7636 §4.1 and RFC 6749 §10.12. */
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

/** Where the server is, and its time. */
export interface Place {
  readonly issuer: string
  /** Where it listens. */
  readonly address: AddressInfo
  readonly now: () => Seconds
}

/** What a step may use. */
export interface Attempt {
  readonly run: Run
  readonly place: Place
  readonly as: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly fetch: RecordingFetch
  /** The options of every request of the library. */
  readonly options: { [oauth.customFetch]: RecordingFetch; [oauth.allowInsecureRequests]: true }
  /** The members of the last JSON response. */
  members(): Readonly<Record<string, unknown>> | undefined
  /** Sends a request, and returns the status of its response, whatever the library thinks of it. */
  statusOf(request: Promise<unknown>): Promise<number>
  /** Adds a check to what the page shows, and returns whether it is passed. */
  check(what: string, expected: string, found: unknown, ok?: boolean): boolean
}

/** Runs a step. */
export type Take = (run: Run, place: Place) => Promise<Outcome>

/**
 * Makes a step. It succeeds if every check is passed, unless it returns `ok` itself, and fails if the library throws.
 * @param failure What the page shows if it throws before a check failed.
 */
export function attempt(
  failure: string,
  step: (attempt: Attempt) => Promise<Omit<Outcome, 'ok' | 'calls' | 'checks'> & { readonly ok?: boolean }>,
): Take {
  return async (run, place) => {
    const calls: Call[] = []
    const checks: Check[] = []
    const isPassed = () => checks.every(({ ok }) => ok)
    const fetch = recordingFetch(place.address, run, calls)
    try {
      const outcome = await step({
        run,
        place,
        as: run.metadata ?? { issuer: place.issuer },
        client: { client_id: run.clientId ?? '', [oauth.clockSkew]: place.now() - systemClock() },
        fetch,
        options: { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true },
        members: () => objectOf(calls.at(-1)?.answer ?? ''),
        statusOf: async (request) => {
          await request.catch(() => {})
          return calls.at(-1)?.status ?? 0
        },
        check: (what, expected, found, ok = expected === found) => {
          checks.push({ what, expected, found: String(found), ok })
          return ok
        },
      })
      return { ok: isPassed(), ...outcome, calls, checks }
    } catch (error) {
      const said = isPassed() ? failure : 'This response must not be used.'
      const shown = [{ name: 'error', value: error instanceof Error ? error.message : String(error) }]
      return { ok: false, said, calls, checks, shown }
    }
  }
}
