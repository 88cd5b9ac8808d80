import type { AuditContext } from '../domain/audit.ts'
import { consentKind, endConnection, endGrant } from '../domain/connections.ts'
import { accept } from '../domain/decision.ts'
import { canGrantLive } from '../domain/grant.ts'
import type { Grant } from '../domain/model.ts'
import type { GrantPage, Store } from '../storage/store.ts'

/** How many grants or consents are revoked at once. */
const atOnce = 100

/** Reads grants part by part. One that is approved in the meantime is among the last. */
export async function* everyGrant(
  store: Pick<Store, 'grantsFrom'>,
  which: Omit<GrantPage, 'after' | 'limit'>,
): AsyncGenerator<readonly Grant[], void> {
  let after: string | undefined
  do {
    const { grants, next } = await store.grantsFrom({ ...which, after, limit: atOnce })
    yield grants
    after = next
  } while (after !== undefined)
}

/**
 * Revokes every grant to a client, and forgets the consents: each user's in a transaction of its own, however many there
 * are. Returns how many grants.
 * @param writing Where it is written; it may require more.
 */
export async function revokeGrantsTo(
  clientId: string,
  store: Pick<Store, 'grantsFrom' | 'someOfClient'>,
  writing: Pick<Store, 'transact'>,
  context: AuditContext,
): Promise<number> {
  const disconnect = (userIds: Iterable<string>) =>
    Promise.all(
      [...new Set(userIds)].map((userId) =>
        writing.transact('user', userId, () =>
          accept(undefined, ...endConnection({ clientId }, { ...context, userId })),
        ),
      ),
    )
  let revoked = 0
  for await (const part of everyGrant(store, { clientId })) {
    const grants = part.filter((grant) => canGrantLive(grant, context.at))
    await disconnect(grants.flatMap(({ userId }) => userId ?? []))
    for (const { id, userId } of grants)
      if (userId === undefined) await writing.transact('grant', id, (found) => endGrant(found, context))
    revoked += grants.length
  }
  for (;;) {
    const consents = await store.someOfClient(consentKind, clientId, atOnce)
    if (consents.length === 0) return revoked
    await disconnect(consents.map(({ userId }) => userId))
  }
}
