import type { FastifyRequest } from 'fastify'
import { clauseOf } from '../../observability/clause-of-rule.ts'
import type { Alter, Members } from './changes.ts'
import type { Conduct } from './conduct.ts'
import type { Criterion } from './criteria.ts'

/** A misbehaving issuer: a whole server that breaks exactly one rule. */
export interface Profile {
  readonly id: string
  readonly title: string
  /** The clause it breaks, such as `RFC 9207 §2`. */
  readonly clause: string
  /** The row of the requirement ledger that the real server meets. */
  readonly ledger?: string
  /** What a sound client does. */
  readonly sound: string
  readonly fooledWhen: Criterion
  /** Changes the responses of the real server; absent: it does not misbehave. */
  readonly alter?: Alter
  /** Changes a request before the real server sees it; returns whether it did. */
  readonly alterRequest?: (request: FastifyRequest, conduct: Pick<Conduct, 'has'>) => boolean
  /** Changes the claims of logout tokens before they are signed. */
  readonly alterLogout?: (claims: Members) => Members
}

/** A profile, and what clients did there. */
export interface WatchedProfile {
  readonly profile: Profile
  readonly conduct: Conduct
}

/** The clause of an entry is that of its ledger row, and its criterion that of its group, unless it says otherwise. */
type Entry = Omit<Profile, 'id' | 'clause' | 'fooledWhen'> & Partial<Pick<Profile, 'clause' | 'fooledWhen'>>

/** Makes profiles of entries by id; a client counts as fooled by them as `usual` says. */
export function profilesOf(usual: Criterion, entries: Readonly<Record<string, Entry>>): readonly Profile[] {
  return Object.entries(entries).map(([id, entry]) => {
    const { clause = clauseOf(entry.ledger ?? '').name, fooledWhen = usual } = entry
    return { ...entry, id, clause, fooledWhen }
  })
}
