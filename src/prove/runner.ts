import { systemMilliseconds } from '../system/system.ts'
import type { Check, Result } from './check.ts'
import { type Client, openClients } from './clients.ts'
import type { Traits } from './flow.ts'
import { openLab } from './lab.ts'
import { NotApplicable, NotRun, NotTestable } from './observation.ts'
import type { Recording } from './presets.ts'
import { discover, type Server } from './server.ts'
import { createKey } from './tokens.ts'
import { openWire, type WireOptions } from './wire.ts'

/** What a run is about. */
export interface RunOptions extends Omit<WireOptions, 'issuer'> {
  readonly issuer: string
  /** Chooses the checks and how clients behave, once the metadata are known. */
  readonly plan: (server: Server) => {
    readonly checks: readonly Check[]
    readonly traits: Traits
    readonly profile: string
  }
  readonly provided: readonly Client[]
  readonly initialToken?: string | undefined
  readonly isSlow?: boolean
  readonly documentUrl?: string | undefined
  readonly recordings: readonly Recording[]
  readonly credentials: { readonly username: string; readonly password: string } | undefined
  readonly onBegin?: (count: number, profile: string) => void
  readonly onResult?: (result: Result) => void
}

/** What a run found. */
export interface Run {
  readonly issuer: string
  readonly profile: string
  readonly results: readonly Result[]
  readonly requests: number
  readonly milliseconds: number
  /** Clients that could not be deleted. */
  readonly remaining: readonly string[]
  /** The signal came before the end. */
  readonly isInterrupted: boolean
}

/**
 * Runs the checks one after the other, and deletes the clients that they registered, also after an interruption.
 * @throws {NotTestable} if the issuer has no metadata.
 */
export async function prove(options: RunOptions): Promise<Run> {
  const started = systemMilliseconds()
  const wire = openWire({ ...options, issuer: new URL(options.issuer) })
  const server = await discover(options.issuer, wire)
  const { checks, traits, profile } = options.plan(server)
  const clients = openClients(server, wire, options.initialToken)
  const lab = openLab({ ...options, server, wire, clients, traits, key: createKey() })
  const results: Result[] = []
  options.onBegin?.(checks.length, profile)
  let remaining: readonly string[] = []
  try {
    for (const check of checks) {
      if (options.signal.aborted) break
      const begun = systemMilliseconds()
      const found = await outcomeOf(check, lab, options.signal)
      if (found === undefined) break
      const result = { check, milliseconds: systemMilliseconds() - begun, ...found }
      results.push(result)
      options.onResult?.(result)
    }
  } finally {
    // Ctrl-C ends the requests of checks, not these.
    const signal = AbortSignal.timeout(longestCleaning)
    const cleaning = {
      ...options,
      issuer: new URL(options.issuer),
      mostRequests: Number.POSITIVE_INFINITY,
      signal,
    }
    remaining = await clients.remove(openWire(cleaning))
  }
  const milliseconds = systemMilliseconds() - started
  const isInterrupted = options.signal.aborted
  return {
    issuer: options.issuer,
    profile,
    results,
    requests: wire.count(),
    milliseconds,
    remaining,
    isInterrupted,
  }
}

const longestCleaning = 30_000

/** Runs a check, which cannot end the run; undefined if it was interrupted. */
async function outcomeOf(
  check: Check,
  lab: Parameters<Check['run']>[0],
  signal: AbortSignal,
): Promise<Pick<Result, 'verdict' | 'because' | 'seen'> | undefined> {
  try {
    const { seen, fault } = await check.run(lab)
    if (seen.length === 0) return { verdict: 'not testable', because: 'nothing was observed', seen }
    if (fault === undefined) return { verdict: 'pass', seen }
    return { verdict: check.level === 'MUST' ? 'fail' : 'warning', because: fault, seen }
  } catch (error) {
    if (signal.aborted) return undefined
    if (error instanceof NotApplicable) return { verdict: 'not applicable', because: error.message, seen: [] }
    if (error instanceof NotRun) return { verdict: 'not run', because: error.message, seen: [] }
    if (error instanceof NotTestable) return { verdict: 'not testable', because: error.message, seen: [] }
    return { verdict: 'not testable', because: `the check itself failed: ${String(error)}`, seen: [] }
  }
}
