import { profiles } from './catalogue.ts'
import type { Conduct, Seen, Verdict } from './conduct.ts'
import type { Profile } from './lie.ts'

/** A profile as it is listed. */
export interface Listed extends Pick<Profile, 'id' | 'title' | 'clause' | 'ledger' | 'sound'> {
  readonly issuer: string
  readonly fooled_when: string
}

/** One profile of a report. */
export interface ReportedProfile extends Listed, Pick<Seen, 'lies' | 'evidence' | 'next'> {
  readonly verdict: Verdict | 'passed'
  /** What the client reported itself. */
  readonly told?: string
}

/** What clients did at the misbehaving issuers of a development server. */
export interface Report {
  readonly issuer: string
  /** A client passed the issuer that does not misbehave: without it, a rejection elsewhere proves nothing. */
  readonly reference: 'passed' | 'not passed'
  readonly fooled: number
  readonly rejected: number
  readonly not_reached: number
  readonly profiles: readonly ReportedProfile[]
}

/** Where a profile is and what it is about. */
export function listed({ id, fooledWhen, lie: _, ask: __, ...rest }: Profile, root: string): Listed {
  return { id, issuer: `${root}/${id}`, ...rest, fooled_when: fooledWhen.text }
}

/** Reports what was seen at each profile. */
export function report(issuer: string, root: string, conducts: ReadonlyMap<string, Conduct>): Report {
  const lines = profiles.flatMap((profile) => {
    const seen = conducts.get(profile.id)?.seen()
    return seen === undefined ? [] : [reported(profile, root, seen)]
  })
  const count = (verdict: ReportedProfile['verdict']) =>
    lines.filter((line) => line.verdict === verdict).length
  return {
    issuer,
    reference: conducts.get('reference')?.seen().isCompleted ? 'passed' : 'not passed',
    fooled: count('fooled'),
    rejected: count('rejected'),
    not_reached: profiles.length - 1 - count('fooled') - count('rejected'),
    profiles: lines,
  }
}

function reported(
  profile: Profile,
  root: string,
  { verdict, told, isCompleted, ...seen }: Seen,
): ReportedProfile {
  return {
    ...listed(profile, root),
    verdict: profile.lie === undefined && isCompleted ? 'passed' : verdict,
    ...seen,
    ...(told && { told: told.reason === undefined ? told.outcome : `${told.outcome}: ${told.reason}` }),
  }
}
