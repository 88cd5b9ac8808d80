import { insert, put, type Write } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { SweepBounds } from '../../src/storage/store.ts'
import { insertLink } from '../../src/users/rules/one-time-link.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'

/** All of `dueRecords` are due. */
export const allDue: SweepBounds = {
  now: 2_000_000,
  clientsUnusedSince: 3000,
  unusedClientBytes: 134_217_728,
  clientsIdleSince: 3000,
  rejectionsKept: 0,
  auditedSince: 3000,
}

/** One row of each kind that the sweep deletes, and two of some. */
export function dueRecords(n: number): Write[] {
  const id = sample.digest(n)
  const used = { ...sample.client, usedAt: 2000 }
  return [
    insert(interactionKind, { ...sample.interaction, id }),
    insert('session', { ...sample.session, id }),
    insertLink({ ...sample.link, id }),
    put(throttleKind, { ...sample.throttle, key: id }),
    { op: 'revokeAccessToken', grantId: sample.grantId(1), tokenId: sample.bytes(n, 16), expiresAt: 2000 },
    insert('client', { ...sample.client, id: `unused ${n}` }),
    insert('client', { ...used, id: `idle ${n}` }),
    insert('rejection', { ...sample.rejection, id }),
    insert('auditEvent', sample.auditEvent),
    { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt: 2000 } },
  ]
}
