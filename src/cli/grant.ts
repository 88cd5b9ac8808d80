import type { Command } from 'commander'
import { CommandFailed, unlessMissing, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags } from './flags.ts'
import { changesUsers, type Json, type Operator, readsUsers, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

const listHelp = `
States: approved (a code was issued), active, revoked, expired. A grant begins with the code and ends with the last
refresh token. A client that acts for itself has one for each token; its user is -. --ended includes revoked and
expired grants until they are deleted. A server needs admin:clients:read for the names of clients; --json has none.

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
introspected are accepted until they expire. With --client a server needs admin:clients:read, and without --user
admin:clients:write.

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
  addAnywhereFlags(list, listHelp).action(grantList)
  const show = group.command('show <grant>').description('show a grant and its state')
  addAnywhereFlags(show, showHelp).action(grantShow)
  const revoke = group
    .command('revoke [grant]')
    .description('revoke a grant, or every grant of a user, of a client, or of a user to a client')
    .option('--user <name>', 'every grant of this user')
    .option('--client <client_id>', 'every grant to this client')
  addAnywhereFlags(addYesFlag(revoke), revokeHelp).action(grantRevoke)
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/grants.ts')

interface ListFlags extends ServerFlags {
  readonly user?: string
  readonly client?: string
  readonly ended?: true
}

/** `lychgate grant list`: lists what users granted to clients, by user, oldest first. */
async function grantList({ user, client, ended, ...flags }: ListFlags): Promise<void> {
  const scopes = flags.json ? readsUsers : [...readsUsers, 'admin:clients:read']
  await withOperator(flags, scopes, async (operator) => {
    const { findUser, findClient, list } = operator
    const filter = {
      ...(user !== undefined && { sub: (await findUser(user)).sub }),
      ...(client !== undefined && { client_id: client }),
    }
    const found = await list((await operations()).listAllGrants, {}, filter)
    const owned = found
      .filter(({ state }) => ended || state === 'approved' || state === 'active')
      .map(withOwner)
      .toSorted(byUser)
    const names = new Map<unknown, string>()
    for (const id of flags.json ? [] : new Set(owned.map(({ client_id }) => String(client_id))))
      names.set(id, String((await findClient(id))?.['client_name'] ?? ''))
    printList(
      flags,
      owned,
      (grant) => grant,
      (grant) => lineOf(grant, names.get(grant['client_id']) ?? ''),
    )
  })
}

/** Names the user, or - for a client that acts for itself. A server of an earlier version does not say it. */
function withOwner({ grant, state, sub, username = sub ?? '-', ...others }: Json): Json {
  return { grant, state, sub, username, ...others }
}

/** Keeps the order of the grants of one user; those without a user are last. */
function byUser(one: Json, other: Json): number {
  if ((one['sub'] === undefined) !== (other['sub'] === undefined)) return one['sub'] === undefined ? 1 : -1
  const [name, next] = [String(one['username']), String(other['username'])]
  return name < next ? -1 : Number(name > next)
}

function lineOf(grant: Json, client: string): string[] {
  const { refreshed_at } = grant
  const refreshed =
    refreshed_at === undefined ? 'not refreshed' : `refreshed ${instant(Number(refreshed_at))}`
  const cells = ['grant', 'state', 'username', 'client_id'].map((name) => `${grant[name]}`)
  return [...cells, client, instant(Number(grant['approved_at'])), refreshed, `${grant['scope']}`]
}

/** `lychgate grant show`: shows one grant and its state. */
async function grantShow(grant_id: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async (operator) => {
    const description = await findGrant(grant_id, operator)
    const { approved_at, authenticated_at, refreshed_at, refresh_token_expires_at, expires_at, ...others } =
      description
    // A server and a store have them in another order.
    const { revoked_at, revoked_by, ...about } = others
    const times = {
      approved_at,
      authenticated_at,
      refreshed_at,
      refresh_token_expires_at,
      expires_at,
      revoked_at,
    }
    const readable = Object.entries(times).map(([name, value]) => [name, value && instant(Number(value))])
    printResult(flags, description, { ...about, ...Object.fromEntries(readable), revoked_by })
  })
}

interface RevokeFlags extends DestructiveFlags, ServerFlags {
  readonly user?: string
  readonly client?: string
}

/** `lychgate grant revoke`: revokes one grant, or every grant of a user, of a client, or of a user to a client. */
async function grantRevoke(id: string | undefined, flags: RevokeFlags): Promise<void> {
  const { user, client } = flags
  const isMany = user !== undefined || client !== undefined
  if ((id !== undefined) === isMany) throw new WrongUsage('name a grant, or say --user, --client or both')
  const onClients =
    user === undefined ? ['admin:clients:read', 'admin:clients:write'] : ['admin:clients:read']
  const scopes = client === undefined ? changesUsers : [...changesUsers, ...onClients]
  await withOperator(flags, scopes, async (operator) => {
    const revoked =
      id === undefined ? await revokeMany(operator, flags) : await revokeOne(operator, id, flags)
    printResult(flags, { revoked }, { revoked: id ?? revoked })
  })
}

async function revokeOne(operator: Operator, grant_id: string, flags: RevokeFlags): Promise<number> {
  await findGrant(grant_id, operator)
  await confirmOrAbort(flags, `Revoke the grant ${grant_id}? Its tokens end.`, 'nothing was revoked')
  const revocation = operator.perform((await operations()).revokeGrant, { grant_id })
  await unlessMissing(revocation, 'the grant had ended already')
  return 1
}

async function revokeMany(operator: Operator, flags: RevokeFlags): Promise<number> {
  const { user, client } = flags
  const { findUser, findClient, list, perform } = operator
  if (client !== undefined && (await findClient(client)) === undefined)
    throw new CommandFailed('no client has this id')
  const owner = user === undefined ? undefined : await findUser(user)
  const of = [owner && `of ${owner.username}`, client && `to ${client}`].filter(Boolean).join(' ')
  await confirmOrAbort(flags, `Revoke every grant ${of}? Their tokens end.`, 'nothing was revoked')
  const { listGrants, revokeGrants, revokeClient } = await operations()
  if (owner === undefined)
    return Number((await perform(revokeClient, { client_id: client ?? '' }))['revoked'])
  const { sub } = owner
  const found = await list(listGrants, { sub })
  const ended = found.filter(({ client_id }) => client === undefined || client_id === client)
  for (const { client_id } of ended) await perform(revokeGrants, { sub, client_id: String(client_id) })
  return ended.reduce((sum, { grants }) => sum + Number(grants), 0)
}

/** @throws {CommandFailed} when there is no such grant, or its user or client is gone. */
async function findGrant(grant_id: string, { perform }: Operator): Promise<Json> {
  return unlessMissing(perform((await operations()).readGrant, { grant_id }), 'no grant has this id')
}
