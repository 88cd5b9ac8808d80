import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parse } from 'yaml'
import type { Group } from '../domain/group.ts'
import { isObject } from '../domain/is-object.ts'
import { declared } from '../features.ts'
import { findAmong, namesOf } from '../users/groups.ts'
import { changesClients, editClient, readClient, readsClients } from './client-operations.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { requireGroup } from './find.ts'
import { collect, type OperatorFlags } from './flags.ts'
import { type Json, type Operator, readsUsers, withOperator } from './operate.ts'
import { printJson, printResult } from './print.ts'

const accessHelp = `
Without a flag it shows who may use the client. --allow names every group that may: the members of those groups, and of
the groups below them. Other users see a page that names a contact (groups.contact, or the contact of the client), and
the access that they have ends with the next refresh. Clients that act for themselves are not affected.

Examples:
  lychgate client access client_x1f8…
  lychgate client access client_x1f8… --allow staff --allow 'Students of 2026'
  lychgate client access client_x1f8… --everyone
`

const claimsHelp = `
Without --set it shows the claims. --set names a YAML or JSON file with a list of claims; an empty list removes them. Each
has the name of the claim, where it goes (in: userinfo, id_token, access_token; default: the first two), and one of:
  groups: true        the names of the user's groups; ID Tokens and UserInfo also need the scope groups
  roles: {…}          the roles of the user at this client, by the name of a group
  value: …            a constant
  copy: …             another claim of the user, such as preferred_username
Claims of the protocol cannot be set. Access tokens have them if their API takes JWTs (RFC 9068).

Examples:
  lychgate client claims client_x1f8…
  echo '[{ claim: roles, roles: { admins: Admin, staff: Editor } }]' > claims.yaml
  lychgate client claims client_x1f8… --set claims.yaml
`

interface AccessFlags extends ServerFlags {
  readonly allow?: readonly string[]
  readonly everyone?: true
}

/** Adds `lychgate client access`: which groups may use a client. */
export function addClientAccessCommand(client: Command): void {
  const access = client
    .command('access <client_id>')
    .description('show or change which groups of users may use a client')
    .option('--allow <group>', 'a group whose members may use it; may be repeated', collect)
    .option('--everyone', 'every user may use it')
  addAnywhereFlags(access, accessHelp).action(clientAccess)
}

/** Adds `lychgate client claims`: further claims in the tokens of a client. */
export function addClientClaimsCommand(client: Command): void {
  const claims = client
    .command('claims <client_id>')
    .description('show or set claims of the tokens of a client: groups, roles, constants')
    .option('--set <file>', 'a YAML or JSON file with all of them')
  addAnywhereFlags(claims, claimsHelp).action(clientClaims)
}

interface ClaimsFlags extends ServerFlags {
  readonly set?: string
}

/** `lychgate client claims`: shows or replaces the claims that an operator gives the tokens of a client. */
async function clientClaims(clientId: string, { set, ...flags }: ClaimsFlags): Promise<void> {
  await withOperator(flags, set === undefined ? reads : changes, async (operator) => {
    const client = await readClient(operator, clientId)
    if (!(claimsMember in declared.clientMetadata)) throw new WrongUsage('this server has no groups')
    const groups = await groupsOf(operator)
    if (set === undefined) return printJson(withNames(groups, client))
    const rules = mapRoles(readRules(set), (name) => requireGroup(findAmong(groups, name)).id)
    const changed = await editClient(operator, clientId, () => ({ [claimsMember]: rules }))
    printJson(withNames(groups, changed))
  })
}

const reads = [...readsClients, ...readsUsers]
const changes = [...changesClients, ...readsUsers]

const claimsMember = 'token_claims'

function readRules(file: string): readonly unknown[] {
  let rules: unknown
  try {
    rules = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new CommandFailed(`${file} cannot be read: ${String(error).split('\n', 1)[0]}`)
  }
  if (!Array.isArray(rules)) throw new CommandFailed(`${file} must have a list of claims`)
  return rules
}

/** Reads every group: roles name them by their ids, which a group keeps when it is renamed. */
async function groupsOf({ list }: Operator): Promise<readonly Pick<Group, 'id' | 'name'>[]> {
  const groups = await list((await import('../admin/operations/group-reads.ts')).listGroups, {})
  return groups.map(({ group_id, name }) => ({ id: String(group_id), name: String(name) }))
}

function withNames(groups: readonly Pick<Group, 'id' | 'name'>[], { [claimsMember]: rules }: Json) {
  return mapRoles(Array.isArray(rules) ? rules : [], namesOf(groups))
}

/** Renames the groups of roles in rules of claims, and leaves everything else. */
export function mapRoles(rules: readonly unknown[], rename: (group: string) => string): readonly unknown[] {
  return rules.map((rule) => {
    const roles = isObject(rule) ? rule['roles'] : undefined
    if (!isObject(rule) || !isObject(roles)) return rule
    const renamed = Object.entries(roles).map(([group, role]) => [rename(group), role])
    return { ...rule, roles: Object.fromEntries(renamed) }
  })
}

/** `lychgate client access`: shows or changes which groups may use a client. */
async function clientAccess(clientId: string, { allow, everyone, ...flags }: AccessFlags): Promise<void> {
  if (allow !== undefined && everyone) throw new WrongUsage('--allow and --everyone exclude each other')
  const isRead = allow === undefined && !everyone
  await withOperator(flags, isRead ? reads : changes, async (operator) => {
    const client = await readClient(operator, clientId)
    if (!(member in declared.clientMetadata)) throw new WrongUsage('this server has no groups')
    const groups = await groupsOf(operator)
    if (isRead) return print(groups, flags, client)
    const ids = (allow ?? []).map((name) => requireGroup(findAmong(groups, name)).id)
    print(groups, flags, await editClient(operator, clientId, () => ({ [member]: ids })))
  })
}

/** The member of client metadata that has the ids of the groups. */
const member = 'allowed_groups'

function print(
  groups: readonly Pick<Group, 'id' | 'name'>[],
  flags: OperatorFlags,
  { client_id, [member]: allowed }: Json,
): void {
  const known = new Map(groups.map(({ id, name }) => [id, name]))
  const ids = Array.isArray(allowed) ? allowed.map(String) : undefined
  const names = ids?.map((id) => known.get(id) ?? `${id} (deleted)`)
  const described = { client_id, allowed_groups: names ?? null }
  printResult(flags, described, { ...described, allowed_groups: names ?? 'everyone' })
}
