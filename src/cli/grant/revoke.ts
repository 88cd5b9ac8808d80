import type { Occasion } from '../../domain/audit.ts'
import { connectionsOf, endConnection, endGrant } from '../../domain/connections.ts'
import { accept } from '../../domain/decision.ts'
import type { Store } from '../../storage/store.ts'
import { CommandFailed, WrongUsage } from '../failure.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { operatorOccasion } from '../operator.ts'
import { peopleFor } from '../people.ts'
import { printJson, printMembers } from '../print.ts'
import { findGrant } from './show.ts'

interface RevokeFlags extends DestructiveFlags {
  readonly user?: string
  readonly client?: string
}

/** `lychgate grant revoke`: one grant, or every grant of a person, of a client, or of a person at a client. */
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
  const { accountId } = await findGrant(store, id)
  await insist(flags, `Revoke the grant ${id}? Its tokens die.`, 'nothing was revoked')
  const withdrawal = { ...operatorOccasion(), accountId }
  const isEnded = await store.transact('grant', id, (grant) => endGrant(grant, withdrawal))
  if (!isEnded) throw new CommandFailed('the grant had ended already')
  return 1
}

async function revokeMany(store: Store, flags: RevokeFlags): Promise<number> {
  const { user, client } = flags
  if (client !== undefined && (await store.find('client', client)) === undefined)
    throw new CommandFailed('no client has this id')
  const people = await peopleFor(store, user)
  const of = [user && `of ${people[0]?.username}`, client && `at ${client}`].filter(Boolean).join(' ')
  await insist(flags, `Revoke every grant ${of}? Their tokens die.`, 'nothing was revoked')
  const occasion = operatorOccasion()
  let revoked = 0
  for (const { id } of people) revoked += await revokeOf(store, id, client, occasion)
  return revoked
}

async function revokeOf(
  store: Store,
  accountId: string,
  clientId: string | undefined,
  occasion: Occasion,
): Promise<number> {
  const [grants, consents] = await Promise.all([
    store.listOf('grant', accountId),
    store.listOf('consent', accountId),
  ])
  const ended = connectionsOf(grants, consents, occasion.at).filter(
    (connection) => clientId === undefined || connection.clientId === clientId,
  )
  if (ended.length > 0) {
    const writes = ended.flatMap((connection) => endConnection(connection, { ...occasion, accountId }))
    await store.transact('account', accountId, () => accept(undefined, ...writes))
  }
  return ended.reduce((sum, connection) => sum + connection.grants.length, 0)
}
