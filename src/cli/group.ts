import type { Command } from 'commander'
import type { Config } from '../config/schema.ts'
import {
  allowedGroupsOf,
  canonicalGroupName,
  ensureGroup,
  type Group,
  groupKind,
  groupNameKind,
  membershipKind,
  membershipPrefix,
} from '../domain/group.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Store } from '../storage/store.ts'
import { systemRandom } from '../system/system.ts'
import { keepAdministrator } from '../users/administrators.ts'
import { addToGroup, changeGroups, inOrder, listGroups, removeFromGroup } from '../users/groups.ts'
import { WrongUsage } from './failure.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './files/open-target.ts'
import { findGroup, findUser, noGroup } from './find.ts'
import {
  addForceFlag,
  addOperatorFlags,
  addYesFlag,
  type DestructiveFlags,
  type ForceFlag,
  type OperatorFlags,
  parseLimit,
} from './flags.ts'
import { withStore } from './open.ts'
import { type Operator, withOperator } from './operate.ts'
import { administratorsIn, confirmOrAbort, operatorContext } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

const createHelp = `
Members of a group are members of its parent, too. Clients see the name, by the scope groups.

Examples:
  lychgate group create staff --description 'Everyone who works here'
  lychgate group create teachers --parent staff
  lychgate group create students --administrators teachers
`

const showHelp = `
Members are listed in the order of their sub, a thousand at most; --after goes on after the last one.

Examples:
  lychgate group show staff
  lychgate group show staff --limit 100 --after user_3n0R…
`

const setHelp = `
What is not named stays; an empty text removes the description, the parent or the administrators.

Examples:
  lychgate group set teachers --parent staff --description 'Everyone who teaches'
  lychgate group set teachers --parent ''
  lychgate group set students --administrators teachers
`

const membersHelp = `
Users are named by user name, email address or sub. The next refresh and the next call of UserInfo have the change.
The group of administrators (admin.group) is created with its first member.

Examples:
  lychgate group add staff alice bob@example.com
  lychgate group remove staff bob@example.com
`

const example = (line: string) => `\nExample:\n  lychgate group ${line}\n`

/** Adds `lychgate group …`: the groups of users, and who is in them. */
export function addGroupCommands(program: Command): void {
  const group = program.command('group').description('create, list, change and delete groups of users')
  const command = (name: string, description: string) => group.command(name).description(description)
  const withDetails = (one: Command) =>
    one
      .option('--description <text>', 'what the group is for')
      .option('--parent <group>', 'the group above it: its members count as members of that one, too')
      .option('--administrators <group>', 'the group whose members administer its members, by the admin API')
  /** A command that works on a running server, too. */
  const act = (one: Command, help: string) => addServerFlags(addOperatorFlags(one, serverHelp + help))
  act(withDetails(command('create <name>', 'create a group')), createHelp).action(groupCreate)
  addOperatorFlags(command('list', 'list every group by name'), example('list --json')).action(groupList)
  const show = command('show <group>', 'show a group and who was added to it')
    .option('--limit <number>', 'at most this many members', parseLimit, 1000)
    .option('--after <sub>', 'only members after this one')
  addOperatorFlags(show, showHelp).action(groupShow)
  const rename = command('rename <group> <name>', 'give a group another name; members and access stay')
  act(addForceFlag(rename), example('rename teachers lecturers')).action(groupRename)
  const set = withDetails(command('set <group>', 'change the description, the parent or the administrators'))
  act(addForceFlag(set), setHelp).action(groupSet)
  const removal = addYesFlag(command('delete <group>', 'delete a group; its members stay users'))
  act(addForceFlag(removal), example('delete teachers --yes')).action(groupDelete)
  addOperatorFlags(command('add <group> <users...>', 'add users to a group'), membersHelp).action(groupAdd)
  const leave = command('remove <group> <users...>', 'remove users from a group')
  addOperatorFlags(addForceFlag(leave), membersHelp).action(groupRemove)
}

interface GroupFlags extends ServerFlags {
  readonly description?: string
  readonly parent?: string
  readonly administrators?: string
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/groups.ts')

const scopes = ['admin:users:read', 'admin:users:write']

/** `lychgate group create`: creates a group. */
async function groupCreate(name: string, flags: GroupFlags): Promise<void> {
  await withOperator(flags, scopes, async (operator) => {
    const body = { name, ...(await detailsOf(operator, flags)) }
    await printGroup(operator, flags, await operator.perform((await operations()).addGroup, {}, body))
  })
}

/** `lychgate group list`: lists every group by name. */
async function groupList(flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const groups = inOrder(await listGroups(store))
    const names = new Map(groups.map(({ id, name }) => [id, name]))
    const named = ({ parentId = '', administratorsId = '' }: Group) => ({
      parent: names.get(parentId),
      administrators: names.get(administratorsId),
    })
    printList(
      flags,
      groups,
      (group) => describeGroup(group, named(group)),
      (group) => {
        const { parent, administrators } = named(group)
        const relations = [
          ...(parent === undefined ? [] : [`in ${parent}`]),
          ...(administrators === undefined ? [] : [`by ${administrators}`]),
        ]
        return [group.name, group.id, relations.join(', '), group.description ?? '']
      },
    )
  })
}

interface ShowFlags extends OperatorFlags {
  readonly limit: number
  readonly after?: string
}

/** `lychgate group show`: shows a group and who was added to it. */
async function groupShow(named: string, { limit, after, ...flags }: ShowFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const group = await findGroup(store, named)
    const prefix = membershipPrefix(group.id)
    const from = after === undefined ? {} : { after: prefix + after }
    const found = await store.listFrom(membershipKind, { prefix, ...from, limit: limit + 1 })
    const members = await Promise.all(
      found.slice(0, limit).map(async ({ userId, addedAt }) => ({
        sub: userId,
        username: (await store.find('user', userId))?.username ?? '',
        added_at: addedAt,
      })),
    )
    const more = found.length > limit
    const description = describeGroup(group, await namedBy(store, group))
    const below = (await listGroups(store)).filter(({ parentId }) => parentId === group.id)
    const children = inOrder(below).map(({ name }) => name)
    printResult(
      flags,
      { ...description, children, members, more },
      {
        ...description,
        created_at: instant(group.createdAt),
        children,
        members: `${members.length}${more ? ' and more (--after)' : ''}`,
      },
    )
    if (flags.json || members.length === 0) return
    process.stdout.write('\n')
    printList(
      flags,
      members,
      (member) => member,
      ({ username, sub, added_at }) => [username, sub, `since ${instant(added_at)}`],
    )
  })
}

/** `lychgate group rename`: renames a group. */
async function groupRename(named: string, name: string, flags: ServerFlags): Promise<void> {
  await change(named, flags, () => Promise.resolve({ name }))
}

/** `lychgate group set`: changes the description or the parent of a group. */
async function groupSet(named: string, flags: GroupFlags): Promise<void> {
  const { description, parent, administrators } = flags
  if (Object.keys(omitUndefined({ description, parent, administrators })).length === 0)
    throw new WrongUsage('nothing to change; name --description, --parent or --administrators')
  await change(named, flags, (operator) => detailsOf(operator, flags))
}

/** The members of a change; an empty text is none. */
async function detailsOf({ findGroup }: Operator, { description, parent, administrators }: GroupFlags) {
  const idOf = async (text: string | undefined) =>
    text === undefined || text === '' ? text : (await findGroup(text)).group_id
  const [parent_id, administrators_id] = [await idOf(parent), await idOf(administrators)]
  return omitUndefined({ description, parent_id, administrators_id })
}

async function change(
  named: string,
  flags: ServerFlags,
  wanted: (operator: Operator) => Promise<object>,
): Promise<void> {
  await withOperator(flags, scopes, async (operator) => {
    const { group_id } = await operator.findGroup(named)
    const { editGroup } = await operations()
    await printGroup(operator, flags, await operator.perform(editGroup, { group_id }, await wanted(operator)))
  })
}

/** Prints a group with the names of the groups that it names. */
async function printGroup({ findGroup }: Operator, flags: OperatorFlags, group: Described): Promise<void> {
  const nameOf = async (id: unknown) => (typeof id === 'string' ? (await findGroup(id)).name : undefined)
  const { group_id, name, description, parent_id, administrators_id, created_at } = group
  const named = { parent: await nameOf(parent_id), administrators: await nameOf(administrators_id) }
  const whole = { group_id, name, ...omitUndefined({ description, ...named }), created_at }
  printResult(flags, whole, whole)
}

type Described = Readonly<Record<string, unknown>>

/** `lychgate group delete`: deletes a group with its memberships. */
async function groupDelete(named: string, flags: DestructiveFlags & ServerFlags): Promise<void> {
  await withOperator(flags, scopes, async ({ findGroup, perform, store }) => {
    const { group_id, name } = await findGroup(named)
    // A client of the admin API may be allowed to see users alone.
    const clients =
      (await store?.list('client'))?.filter((one) => allowedGroupsOf(one)?.includes(group_id)) ?? []
    const names = clients.map((client) => client.name ?? client.id).join(', ')
    const effect = clients.length === 0 ? '' : ` They may no longer use: ${names}.`
    const question = `Delete the group ${name}? Its members stay users.${effect}`
    await confirmOrAbort(flags, question, 'nothing was deleted')
    await perform((await operations()).removeGroup, { group_id })
    printResult(flags, { group_id, deleted: true }, { deleted: name })
  })
}

/** `lychgate group add`: adds users to a group. */
async function groupAdd(named: string, logins: readonly string[], flags: OperatorFlags): Promise<void> {
  await changeMembers(named, logins, flags, 'added', (store, group, userId) =>
    addToGroup(store, group, userId, operatorContext()),
  )
}

/** Creates the group of administrators when its first member is added, as the link of the first user does. */
async function ensureAdministrators(store: Store, named: string, { admin }: Config): Promise<void> {
  const name = canonicalGroupName(admin.group)
  if (canonicalGroupName(named.trim()) !== name || (await store.find(groupNameKind, name))) return
  await changeGroups(store, (groups) => ensureGroup(groups, admin.group, systemRandom(16), operatorContext()))
}

/** `lychgate group remove`: removes users from a group. */
async function groupRemove(
  named: string,
  logins: readonly string[],
  flags: OperatorFlags & ForceFlag,
): Promise<void> {
  await changeMembers(named, logins, flags, 'removed', (store, group, userId, config) => {
    const context = operatorContext()
    return removeFromGroup(store, group, userId, context, (decision) =>
      keepAdministrator(decision, administratorsIn(config, flags), context.at),
    )
  })
}

async function changeMembers(
  named: string,
  logins: readonly string[],
  flags: OperatorFlags,
  done: 'added' | 'removed',
  changeOne: (store: Store, group: Group, userId: string, config: Config) => Promise<boolean | undefined>,
): Promise<void> {
  await withStore(flags, async (store, config) => {
    // All of them first: a misspelt name changes nothing.
    const users = await Promise.all(logins.map((login) => findUser(store, login)))
    if (done === 'added') await ensureAdministrators(store, named, config)
    const group = await findGroup(store, named)
    const changed: string[] = []
    for (const { id, username } of users) {
      const isChanged = await changeOne(store, group, id, config)
      if (isChanged === undefined) throw noGroup()
      if (isChanged) changed.push(username)
    }
    const result = { group_id: group.id, name: group.name, [done]: changed }
    printResult(flags, result, { [done]: changed.length === 0 ? 'none' : changed, group: group.name })
  })
}

/** Returns the names of the groups that a group names. */
async function namedBy(store: Store, { parentId = '', administratorsId = '' }: Group) {
  const [parent, administrators] = await Promise.all([
    store.find(groupKind, parentId),
    store.find(groupKind, administratorsId),
  ])
  return { parent: parent?.name, administrators: administrators?.name }
}

function describeGroup(
  { id, name, description, createdAt }: Group,
  named: Awaited<ReturnType<typeof namedBy>>,
) {
  return { group_id: id, name, ...omitUndefined({ description, ...named }), created_at: createdAt }
}
