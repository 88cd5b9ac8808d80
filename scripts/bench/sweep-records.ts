import { insert, put, type Write } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { Store } from '../../src/storage/store.ts'
import { insertLink } from '../../src/users/rules/one-time-link.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from '../../test/storage/samples.ts'

/** The instants of the records that are made here. */
export const sizes = { ended: 1_700_000_000, now: 1_800_000_000, later: 1_900_000_000 } as const

/** Ids of active grants. */
export const livingGrants: string[] = []

/** Writes that many grants, every fourth of them expired, and a quarter as many of each other kind, all expired. */
export async function fill(store: Store, grants: number): Promise<void> {
  await store.write(insert('user', sample.user))
  await store.write(insert('client', { ...sample.client, id: 'app', origin: 'integration' }))
  for (let from = 0; from < grants; from += 2000) {
    const numbers = Array.from({ length: Math.min(2000, grants - from) }, (_, n) => from + n)
    await store.write(...numbers.map(grantOf))
  }
  for (let from = 0; from < grants / 4; from += 500) {
    const numbers = Array.from({ length: Math.min(500, grants / 4 - from) }, (_, n) => from + n)
    await store.write(...numbers.flatMap(othersOf))
  }
}

function grantOf(n: number): Write {
  const { ended, later } = sizes
  const end = n % 4 === 0 ? ended : later
  const id = sample.grantId(n)
  if (end === later) livingGrants.push(id)
  const scope = ['openid', 'profile', 'courses:read']
  const resource = ['https://auth.example.com']
  return {
    op: 'insertGrant',
    grant: {
      ...sample.grant,
      id,
      secret: sample.bytes(n, 16),
      clientId: 'app',
      scope,
      resource,
      codeChallenge: sample.digest(n),
      seq: 1,
      absoluteExpiresAt: later,
      refreshExpiresAt: end,
      expiresAt: end,
    },
  }
}

/** Keys are spread over their trees, like those of real records. */
function othersOf(n: number): Write[] {
  const { ended: expiresAt } = sizes
  const id = sample.digest((n * 2_654_435_761) % 4_294_967_296)
  const used = { ...sample.client, issuedAt: expiresAt - 9, usedAt: expiresAt }
  return [
    insert('session', { ...sample.fullSession, id, idleExpiresAt: expiresAt }),
    insert(interactionKind, { ...sample.fullInteraction, id, expiresAt }),
    insertLink({ ...sample.fullLink, id, expiresAt }),
    put(throttleKind, { key: `${id} 192.0.2.0/24`, failures: 1, expiresAt }),
    { op: 'revokeAccessToken', grantId: sample.grantId(n * 4 + 1), tokenId: sample.bytes(n, 16), expiresAt },
    insert('client', { ...sample.client, id: `unused ${id}`, issuedAt: expiresAt, usedAt: expiresAt }),
    insert('client', { ...used, id: `idle ${id}` }),
    insert('rejection', { ...sample.fullRejection, id }),
    insert('auditEvent', { ...sample.fullAuditEvent, at: expiresAt }),
  ]
}
