import type { AddressInfo } from 'node:net'
import * as oauth from 'oauth4webapi'
import type { Seconds } from '../../domain/model.ts'
import { systemClock } from '../../system.ts'
import { objectOf } from '../json-body.ts'
import { type Call, type RecordingFetch, recordingFetch } from './call.ts'
import type { Check, Outcome, Run } from './run.ts'

/** Where the server is, and its time. */
export interface Place {
  readonly issuer: string
  /** Where it listens. */
  readonly address: AddressInfo
  readonly now: () => Seconds
}

/** What a step works with. */
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

/** Takes a step of a run. */
export type Take = (run: Run, place: Place) => Promise<Outcome>

/**
 * Makes a step. It is done if every check is passed, unless it returns `ok` itself, and failed if the library throws.
 * @param failure What it says then, unless a check failed.
 */
export function attempt(
  failure: string,
  step: (attempt: Attempt) => Promise<Omit<Outcome, 'ok' | 'calls' | 'checks'> & { readonly ok?: boolean }>,
): Take {
  return async (run, place) => {
    const calls: Call[] = []
    const checks: Check[] = []
    const isPassed = () => checks.every(({ ok }) => ok)
    const number = () => {
      run.calls += 1
      return `${run.id.slice(0, 8)}-${run.calls}`
    }
    const agent = `Lychgate-try-it/1 (${run.id.slice(0, 6)})`
    const fetch = recordingFetch(place.address, agent, number, calls)
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
      const said = isPassed() ? failure : 'This answer must not be used.'
      const shown = [{ name: 'error', value: error instanceof Error ? error.message : String(error) }]
      return { ok: false, said, calls, checks, shown }
    }
  }
}
