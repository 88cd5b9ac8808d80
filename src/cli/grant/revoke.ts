import type { AuditContext } from '../../domain/audit.ts'
import { connectionsOf, consentKind, endConnection, endGrant } from '../../domain/connections.ts'
import { accept } from '../../domain/decision.ts'
import type { Store } from '../../storage/store.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { CommandFailed, WrongUsage } from '../failure.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { usersFor } from '../users-for.ts'
import { findGrant } from './show.ts'

interface RevokeFlags extends DestructiveFlags {
  readonly user?: string
  readonly client?: string
}

/** `lychgate grant revoke`: one grant, or every grant of a user, of a client, or of a user at a client. */
export async function grantRevoke(id: string | undefined, flags: RevokeFlags): Promise<void> {
  const { user, client } = flags
  const isMany = user !== undefined || client !== undefined
  if ((id !== undefined) === isMany) throw new WrongUsage('name a grant, or say --user, --client or both')
  await withStore(flags, async (store) => {
    const revoked = id === undefined ? await revokeMany(store, flags) : await revokeOne(store, id, flags)
    if (flags.json) printJson({ revoked })
    else printMembers({ revoked: id ?? revoked })
  })
}

async function revokeOne(store: Store, id: string, flags: RevokeFlags): Promise<number> {
  const { userId } = await findGrant(store, id)
  await confirmOrAbort(flags, `Revoke the grant ${id}? Its tokens die.`, 'nothing was revoked')
  const withdrawal = { ...operatorContext(), userId }
  const isEnded = await store.transact('grant', id, (grant) => endGrant(grant, withdrawal))
  if (!isEnded) throw new CommandFailed('the grant had ended already')
  return 1
}

async function revokeMany(store: Store, flags: RevokeFlags): Promise<number> {
  const { user, client } = flags
  if (client !== undefined && (await store.find('client', client)) === undefined)
    throw new CommandFailed('no client has this id')
  const people = await usersFor(store, user)
  const of = [user && `of ${people[0]?.username}`, client && `at ${client}`].filter(Boolean).join(' ')
  await confirmOrAbort(flags, `Revoke every grant ${of}? Their tokens die.`, 'nothing was revoked')
  const context = operatorContext()
  let revoked = 0
  for (const { id } of people) revoked += await revokeOf(store, id, client, context)
  return revoked
}

async function revokeOf(
  store: Store,
  userId: string,
  clientId: string | undefined,
  context: AuditContext,
): Promise<number> {
  const [grants, consents] = await Promise.all([
    store.listOf('grant', userId),
    store.listOf(consentKind, userId),
  ])
  const ended = connectionsOf(grants, consents, context.at).filter(
    (connection) => clientId === undefined || connection.clientId === clientId,
  )
  if (ended.length > 0) {
    const writes = ended.flatMap((connection) => endConnection(connection, { ...context, userId }))
    await store.transact('user', userId, () => accept(undefined, ...writes))
  }
  return ended.reduce((sum, connection) => sum + connection.grants.length, 0)
}
