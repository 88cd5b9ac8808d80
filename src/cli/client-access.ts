import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parse } from 'yaml'
import { changeIntegration } from '../clients/integration.ts'
import { allowedGroupsOf, groupKind } from '../domain/group.ts'
import { isObject } from '../domain/is-object.ts'
import type { Client } from '../domain/model.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import type { Store } from '../storage/store.ts'
import { findAmong, listGroups, namesOf } from '../users/groups.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { findGroup, requireClient, requireGroup } from './find.ts'
import { addOperatorFlags, collect, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext } from './operator.ts'
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

interface AccessFlags extends OperatorFlags {
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
  addOperatorFlags(access, accessHelp).action(clientAccess)
}

/** Adds `lychgate client claims`: what the tokens of a client have besides the claims of the protocol. */
export function addClientClaimsCommand(client: Command): void {
  const claims = client
    .command('claims <client_id>')
    .description('show or set claims of the tokens of a client: groups, roles, constants')
    .option('--set <file>', 'a YAML or JSON file with all of them')
  addOperatorFlags(claims, claimsHelp).action(clientClaims)
}

interface ClaimsFlags extends OperatorFlags {
  readonly set?: string
}

/** `lychgate client claims`: shows or replaces the claims that an operator gives the tokens of a client. */
async function clientClaims(clientId: string, { set, ...flags }: ClaimsFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    let client = requireClient(await store.find('client', clientId))
    if (!(claimsMember in declared.clientMetadata)) throw new WrongUsage('this server has no groups')
    if (set !== undefined) {
      const change = { [claimsMember]: await withIds(store, readRules(set)) }
      client = await store.transact('client', clientId, (current) =>
        changeIntegration(current, change, knownTo(config, declared), operatorContext()),
      )
    }
    printJson(await withNames(store, client))
  })
}

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

/** Names the groups of roles by their ids, which a group keeps when it is renamed. */
async function withIds(store: Store, rules: readonly unknown[]): Promise<readonly unknown[]> {
  const groups = await listGroups(store)
  return mapRoles(rules, (name) => requireGroup(findAmong(groups, name)).id)
}

async function withNames(store: Store, { extra }: Client): Promise<readonly unknown[]> {
  const rules = extra?.[claimsMember]
  return mapRoles(Array.isArray(rules) ? rules : [], namesOf(await listGroups(store)))
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
  await withStore(flags, async (store, config) => {
    const found = requireClient(await store.find('client', clientId))
    if (!(member in declared.clientMetadata)) throw new WrongUsage('this server has no groups')
    if (allow === undefined && !everyone) return print(store, flags, found)
    const groups = await Promise.all((allow ?? []).map((name) => findGroup(store, name)))
    const change = { [member]: groups.map(({ id }) => id) }
    const changed = await store.transact('client', clientId, (current) =>
      changeIntegration(current, change, knownTo(config, declared), operatorContext()),
    )
    await print(store, flags, changed)
  })
}

/** The member of client metadata that has the ids of the groups. */
const member = 'allowed_groups'

async function print(store: Store, flags: OperatorFlags, client: Client): Promise<void> {
  const ids = allowedGroupsOf(client)
  const groups = await Promise.all((ids ?? []).map((id) => store.find(groupKind, id)))
  const names = ids?.map((id, index) => groups[index]?.name ?? `${id} (deleted)`)
  const described = { client_id: client.id, allowed_groups: names ?? null }
  printResult(flags, described, { ...described, allowed_groups: names ?? 'everyone' })
}
