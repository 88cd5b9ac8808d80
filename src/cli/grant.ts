import type { Command } from 'commander'
import { everyGrant, revokeGrantsTo } from '../clients/grants.ts'
import type { AuditContext } from '../domain/audit.ts'
import {
  connectionsOf,
  consentKind,
  describeGrant,
  endConnection,
  endGrant,
  type OwnedGrant,
  stateOfGrant,
} from '../domain/connections.ts'
import { accept } from '../domain/decision.ts'
import { isGrantAlive } from '../domain/grant.ts'
import type { Grant, Seconds, User } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { findUser, requireClient } from './find.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

const listHelp = `
States: approved (a code was issued), active, revoked, expired. A grant begins with the code and ends with the last
refresh token. A client that acts for itself has one for each token; its user is -. --ended includes revoked and
expired grants until they are deleted.

Examples:
  lychgate grant list --user alice
  lychgate grant list --client client_x1f8… --ended --json
`

const showHelp = `
Ids may begin with a hyphen, hence the --.

Example:
  lychgate grant show -- a0bIf3q…
`

const revokeHelp = `
Also forgets the consent, so that the user is asked again. Takes effect at once; only JWT access tokens that are not
introspected are accepted until they expire.

Examples:
  lychgate grant revoke -- a0bIf3q…
  lychgate grant revoke --user alice --client client_x1f8…
  lychgate grant revoke --client client_x1f8… --yes
`

/** Adds `lychgate grant …`: what users granted to clients. */
export function addGrantCommands(program: Command): void {
  const group = program.command('grant').description('list, show and revoke the grants of users to clients')
  const list = group
    .command('list')
    .description('list the active grants, by user, oldest first')
    .option('--user <name>', 'only of this user: user name, email address or sub')
    .option('--client <client_id>', 'only of this client')
    .option('--ended', 'also revoked and expired grants')
  addOperatorFlags(list, listHelp).action(grantList)
  const show = group.command('show <grant>').description('show a grant and its state')
  addOperatorFlags(show, showHelp).action(grantShow)
  const revoke = group
    .command('revoke [grant]')
    .description('revoke a grant, or every grant of a user, of a client, or of a user to a client')
    .option('--user <name>', 'every grant of this user')
    .option('--client <client_id>', 'every grant to this client')
  addOperatorFlags(addYesFlag(revoke), revokeHelp).action(grantRevoke)
}

interface ListFlags extends OperatorFlags {
  readonly user?: string
  readonly client?: string
  readonly ended?: true
}

/** `lychgate grant list`: lists what users granted to clients, by user, oldest first. */
async function grantList({ user, client, ended, ...flags }: ListFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const now = systemClock()
    const userId = user === undefined ? undefined : (await findUser(store, user)).id
    const found: Grant[] = []
    for await (const part of everyGrant(store, { userId, clientId: client }))
      found.push(...part.filter((grant) => ended || isGrantAlive(grant, now)))
    const byUser = Map.groupBy(found, (grant) => grant.userId)
    const users: (User | undefined)[] = []
    for (const id of byUser.keys()) users.push(id === undefined ? undefined : await store.find('user', id))
    // Grants of clients that act for themselves have no user: sorting puts what is undefined last.
    const owned = users
      .toSorted((one, other) => (one?.createdAt ?? 0) - (other?.createdAt ?? 0))
      .flatMap((user) =>
        (byUser.get(user?.id) ?? []).map((grant) => ({ ...grant, username: user?.username ?? '-' })),
      )
    const names = new Map((await store.list('client')).map(({ id, name }) => [id, name]))
    const describeNow = (grant: OwnedGrant) => describeGrant(grant, now)
    printList(flags, owned, describeNow, (grant) => lineOf(grant, names.get(grant.clientId), now))
  })
}

function lineOf(grant: OwnedGrant, client: string | undefined, now: Seconds): string[] {
  const { id, username = '', clientId, approvedAt, rotatedAt, scope } = grant
  const refreshed = rotatedAt === undefined ? 'not refreshed' : `refreshed ${instant(rotatedAt)}`
  const cells = [
    id,
    stateOfGrant(grant, now),
    username,
    clientId,
    client ?? '',
    instant(approvedAt),
    refreshed,
  ]
  return [...cells, scope.join(' ')]
}

/** `lychgate grant show`: shows one grant and its state. */
async function grantShow(id: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const grant = await findGrant(store, id)
    const user = grant.userId === undefined ? undefined : await store.find('user', grant.userId)
    const description = describeGrant({ ...grant, username: user?.username }, systemClock())
    const readable = Object.entries(description).map(([name, value]) => [
      name,
      typeof value === 'number' ? instant(value) : value,
    ])
    printResult(flags, description, Object.fromEntries(readable))
  })
}

interface RevokeFlags extends DestructiveFlags {
  readonly user?: string
  readonly client?: string
}

/** `lychgate grant revoke`: revokes one grant, or every grant of a user, of a client, or of a user to a client. */
async function grantRevoke(id: string | undefined, flags: RevokeFlags): Promise<void> {
  const { user, client } = flags
  const isMany = user !== undefined || client !== undefined
  if ((id !== undefined) === isMany) throw new WrongUsage('name a grant, or say --user, --client or both')
  await withStore(flags, async (store) => {
    const revoked = id === undefined ? await revokeMany(store, flags) : await revokeOne(store, id, flags)
    printResult(flags, { revoked }, { revoked: id ?? revoked })
  })
}

async function revokeOne(store: Store, id: string, flags: RevokeFlags): Promise<number> {
  const { userId } = await findGrant(store, id)
  await confirmOrAbort(flags, `Revoke the grant ${id}? Its tokens end.`, 'nothing was revoked')
  const context = { ...operatorContext(), userId }
  const isEnded = await store.transact('grant', id, (grant) => endGrant(grant, context))
  if (!isEnded) throw new CommandFailed('the grant had ended already')
  return 1
}

async function revokeMany(store: Store, flags: RevokeFlags): Promise<number> {
  const { user, client } = flags
  if (client !== undefined) requireClient(await store.find('client', client))
  const owner = user === undefined ? undefined : await findUser(store, user)
  const of = [owner && `of ${owner.username}`, client && `to ${client}`].filter(Boolean).join(' ')
  await confirmOrAbort(flags, `Revoke every grant ${of}? Their tokens end.`, 'nothing was revoked')
  const context = operatorContext()
  if (owner !== undefined) return revokeOf(store, owner.id, client, context)
  return client === undefined ? 0 : revokeGrantsTo(client, store, store, context)
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

/** @throws {CommandFailed} when there is no such grant, or its user or client is gone. */
async function findGrant(store: Store, id: string): Promise<Grant> {
  const grant = await store.find('grant', id)
  if (grant === undefined) throw new CommandFailed('no grant has this id')
  return grant
}
