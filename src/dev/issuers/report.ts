import { profiles } from './catalogue.ts'
import type { Seen, Verdict } from './conduct.ts'
import type { Profile } from './profile.ts'

/** One profile of a report. */
export interface ReportedProfile extends Listed {
  readonly verdict: Verdict | 'passed'
  /** How often the lie was told. */
  readonly lies: number
  /** The request that showed it. */
  readonly evidence?: string
  /** What the client said itself. */
  readonly told?: string
  /** What was asked after the first lie. */
  readonly next: readonly string[]
}

/** What clients made of the misbehaving issuers of a development server. */
export interface Report {
  readonly issuer: string
  /** A client passed the issuer that does not misbehave: without it, a rejection elsewhere proves nothing. */
  readonly reference: 'passed' | 'not passed'
  readonly fooled: number
  readonly rejected: number
  readonly not_reached: number
  readonly profiles: readonly ReportedProfile[]
}

/** A profile as it is listed. */
export interface Listed {
  readonly id: string
  readonly issuer: string
  readonly title: string
  readonly clause: string
  readonly ledger?: string
  readonly sound: string
  readonly fooled_when: string
}

/** Where a profile is and what it is about. */
export function listed(profile: Profile, root: string): Listed {
  const { id, title, clause, ledger, sound, fooledWhen } = profile
  return {
    id,
    issuer: `${root}/${id}`,
    title,
    clause,
    ...(ledger !== undefined && { ledger }),
    sound,
    fooled_when: fooledWhen.text,
  }
}

/** The report of what was seen at each profile; nothing was seen at those that are absent. */
export function report(issuer: string, root: string, seen: ReadonlyMap<string, Seen>): Report {
  const lines = profiles.map((profile) => reported(profile, root, seen.get(profile.id)))
  const count = (verdict: Verdict) => lines.filter((line) => line.verdict === verdict).length
  return {
    issuer,
    reference: seen.get('reference')?.isCompleted ? 'passed' : 'not passed',
    fooled: count('fooled'),
    rejected: count('rejected'),
    not_reached: profiles.length - 1 - count('fooled') - count('rejected'),
    profiles: lines,
  }
}

function reported(profile: Profile, root: string, seen: Seen | undefined): ReportedProfile {
  const { told, evidence } = seen ?? {}
  const isPassed = profile.lie === undefined && seen?.isCompleted === true
  return {
    ...listed(profile, root),
    verdict: isPassed ? 'passed' : (seen?.verdict ?? 'not reached'),
    lies: seen?.lies ?? 0,
    ...(evidence !== undefined && { evidence }),
    ...(told && { told: told.reason === undefined ? told.outcome : `${told.outcome}: ${told.reason}` }),
    next: seen?.next ?? [],
  }
}
