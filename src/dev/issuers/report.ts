import type { Seen, Verdict } from './conduct.ts'
import type { Profile, WatchedProfile } from './profile.ts'

/** A line of the list of profiles. */
export interface Listed extends Pick<Profile, 'id' | 'title' | 'clause' | 'ledger' | 'sound'> {
  readonly issuer: string
  readonly fooled_when: string
}

/** One profile of a report. */
export interface ReportedProfile extends Listed, Pick<Seen, 'wrong' | 'evidence' | 'next'> {
  readonly verdict: Verdict | 'passed'
  /** What the client reported itself. */
  readonly told?: string
}

/** What clients did at the misbehaving issuers of a development server. */
export interface Report {
  readonly issuer: string
  /** Whether a client succeeded at the issuer that behaves; if not, a rejection elsewhere proves nothing. */
  readonly reference: 'passed' | 'not passed'
  readonly fooled: number
  readonly rejected: number
  readonly not_reached: number
  readonly profiles: readonly ReportedProfile[]
}

/** Describes a profile and where it is. */
export function listed({ id, title, clause, ledger, sound, fooledWhen }: Profile, root: string): Listed {
  const rule = ledger === undefined ? {} : { ledger }
  return { id, issuer: `${root}/${id}`, title, clause, ...rule, sound, fooled_when: fooledWhen.text }
}

/** Reports what was seen at each profile. */
export function report(issuer: string, root: string, watched: readonly WatchedProfile[]): Report {
  const lines = watched.map(({ profile, conduct }) => reported(profile, root, conduct.seen()))
  const count = (counted: ReportedProfile['verdict']) =>
    lines.filter(({ verdict }) => verdict === counted).length
  return {
    issuer,
    reference: count('passed') > 0 ? 'passed' : 'not passed',
    fooled: count('fooled'),
    rejected: count('rejected'),
    not_reached: lines.length - 1 - count('fooled') - count('rejected'),
    profiles: lines,
  }
}

function isReference({ alter, alterLogout }: Profile): boolean {
  return alter === undefined && alterLogout === undefined
}

function reported(
  profile: Profile,
  root: string,
  { verdict, outcome, isCompleted, ...seen }: Seen,
): ReportedProfile {
  return {
    ...listed(profile, root),
    // Only the issuer that behaves alters nothing.
    verdict: isReference(profile) && isCompleted ? 'passed' : verdict,
    ...seen,
    ...(outcome && { told: [outcome.outcome, outcome.reason].filter(Boolean).join(': ') }),
  }
}
