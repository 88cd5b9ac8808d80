import type { Command } from 'commander'
import type { Config } from '../config/schema.ts'
import {
  allowedGroupsOf,
  canonicalGroupName,
  changeGroup,
  createGroup,
  deleteGroup,
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
import { CommandFailed, WrongUsage } from './failure.ts'
import { findUser } from './find.ts'
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
  const create = withDetails(command('create <name>', 'create a group'))
  addOperatorFlags(create, createHelp).action(groupCreate)
  addOperatorFlags(command('list', 'list every group by name'), example('list --json')).action(groupList)
  const show = command('show <group>', 'show a group and who was added to it')
    .option('--limit <number>', 'at most this many members', parseLimit, 1000)
    .option('--after <sub>', 'only members after this one')
  addOperatorFlags(show, showHelp).action(groupShow)
  const rename = command('rename <group> <name>', 'give a group another name; members and access stay')
  addOperatorFlags(addForceFlag(rename), example('rename teachers lecturers')).action(groupRename)
  const set = withDetails(command('set <group>', 'change the description, the parent or the administrators'))
  addOperatorFlags(addForceFlag(set), setHelp).action(groupSet)
  const removal = addYesFlag(command('delete <group>', 'delete a group; its members stay users'))
  addOperatorFlags(addForceFlag(removal), example('delete teachers --yes')).action(groupDelete)
  addOperatorFlags(command('add <group> <users...>', 'add users to a group'), membersHelp).action(groupAdd)
  const leave = command('remove <group> <users...>', 'remove users from a group')
  addOperatorFlags(addForceFlag(leave), membersHelp).action(groupRemove)
}

interface GroupFlags extends OperatorFlags, ForceFlag {
  readonly description?: string
  readonly parent?: string
  readonly administrators?: string
}

/** `lychgate group create`: creates a group. */
async function groupCreate(
  name: string,
  { description, parent, administrators, ...flags }: GroupFlags,
): Promise<void> {
  await withStore(flags, async (store) => {
    const change = { name, ...(await detailsOf(store, { description, parent, administrators })) }
    const group = await changeGroups(store, (groups) =>
      createGroup(groups, change, systemRandom(16), operatorContext()),
    )
    await print(store, flags, group)
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
async function groupRename(named: string, name: string, flags: OperatorFlags & ForceFlag): Promise<void> {
  await change(named, flags, () => Promise.resolve({ name }))
}

/** `lychgate group set`: changes the description or the parent of a group. */
async function groupSet(
  named: string,
  { description, parent, administrators, ...flags }: GroupFlags,
): Promise<void> {
  const details = { description, parent, administrators }
  if (Object.keys(omitUndefined(details)).length === 0)
    throw new WrongUsage('nothing to change; name --description, --parent or --administrators')
  await change(named, flags, (store) => detailsOf(store, details))
}

async function detailsOf(
  store: Store,
  {
    description,
    parent,
    administrators,
  }: Partial<Record<'description' | 'parent' | 'administrators', string | undefined>>,
) {
  return {
    description,
    parentId: await idOf(store, parent),
    administratorsId: await idOf(store, administrators),
  }
}

async function change(
  named: string,
  flags: OperatorFlags & ForceFlag,
  changeIn: (store: Store) => Promise<Parameters<typeof changeGroup>[2]>,
): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { id } = await findGroup(store, named)
    const wanted = omitUndefined(await changeIn(store))
    const context = operatorContext()
    const group = await changeGroups(store, (groups) => {
      const known = requireGroup(groups.find((one) => one.id === id))
      const decision = changeGroup(groups, known, wanted, context)
      return keepAdministrator(decision, administratorsIn(config, flags), context.at)
    })
    await print(store, flags, group)
  })
}

/** `lychgate group delete`: deletes a group with its memberships. */
async function groupDelete(named: string, flags: DestructiveFlags & ForceFlag): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { id, name } = await findGroup(store, named)
    const clients = (await store.list('client')).filter((client) => allowedGroupsOf(client)?.includes(id))
    const names = clients.map((client) => client.name ?? client.id).join(', ')
    const effect = clients.length === 0 ? '' : ` They may no longer use: ${names}.`
    const question = `Delete the group ${name}? Its members stay users.${effect}`
    await confirmOrAbort(flags, question, 'nothing was deleted')
    const context = operatorContext()
    await changeGroups(store, (groups) => {
      const decision = deleteGroup(groups, requireGroup(groups.find((one) => one.id === id)), context)
      return keepAdministrator(decision, administratorsIn(config, flags), context.at)
    })
    printResult(flags, { group_id: id, deleted: true }, { deleted: name })
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

/**
 * Finds the group with this name or id.
 * @throws {CommandFailed} when there is none.
 */
export async function findGroup(store: Store, text: string): Promise<Group> {
  const found = /^group_[\w-]{22}$/.test(text) ? await store.find(groupKind, text) : undefined
  if (found !== undefined) return found
  const named = await store.find(groupNameKind, canonicalGroupName(text.trim()))
  return requireGroup(named && (await store.find(groupKind, named.id)))
}

/** Returns the id of a group that a flag names; '' for none. */
async function idOf(store: Store, text: string | undefined): Promise<string | undefined> {
  return text === undefined || text === '' ? text : (await findGroup(store, text)).id
}

/** Returns the names of the groups that a group names. */
async function namedBy(store: Store, { parentId = '', administratorsId = '' }: Group) {
  const [parent, administrators] = await Promise.all([
    store.find(groupKind, parentId),
    store.find(groupKind, administratorsId),
  ])
  return { parent: parent?.name, administrators: administrators?.name }
}

/** @throws {CommandFailed} if there is no such group. */
export function requireGroup(group: Group | undefined): Group {
  if (group === undefined) throw noGroup()
  return group
}

function noGroup(): CommandFailed {
  return new CommandFailed('no group has this name or id')
}

async function print(store: Store, flags: OperatorFlags, group: Group): Promise<void> {
  const description = describeGroup(group, await namedBy(store, group))
  printResult(flags, description, description)
}

function describeGroup(
  { id, name, description, createdAt }: Group,
  named: Awaited<ReturnType<typeof namedBy>>,
) {
  return { group_id: id, name, ...omitUndefined({ description, ...named }), created_at: createdAt }
}
