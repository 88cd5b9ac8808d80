import type { Command } from 'commander'
import type { Config } from '../config/schema.ts'
import { allowedGroupsOf, canonicalGroupName, ensureGroup, type Group } from '../domain/group.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Store } from '../storage/store.ts'
import { systemRandom } from '../system/system.ts'
import { changeGroups } from '../users/groups.ts'
import { ifFound, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addForceFlag, addYesFlag, type DestructiveFlags, type OperatorFlags, parseLimit } from './flags.ts'
import { changesUsers, type Json, type Operator, readsUsers, withOperator } from './operate.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
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
On a store the group of administrators (admin.group) is created with its first member.

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
  addAnywhereFlags(withDetails(command('create <name>', 'create a group')), createHelp).action(groupCreate)
  addAnywhereFlags(command('list', 'list every group by name'), example('list --json')).action(groupList)
  const show = command('show <group>', 'show a group and who was added to it')
    .option('--limit <number>', 'at most this many members', parseLimit, 1000)
    .option('--after <sub>', 'only members after this one')
  addAnywhereFlags(show, showHelp).action(groupShow)
  const rename = command('rename <group> <name>', 'give a group another name; members and access stay')
  addAnywhereFlags(addForceFlag(rename), example('rename teachers lecturers')).action(groupRename)
  const set = withDetails(command('set <group>', 'change the description, the parent or the administrators'))
  addAnywhereFlags(addForceFlag(set), setHelp).action(groupSet)
  const removal = addYesFlag(command('delete <group>', 'delete a group; its members stay users'))
  addAnywhereFlags(addForceFlag(removal), example('delete teachers --yes')).action(groupDelete)
  addAnywhereFlags(command('add <group> <users...>', 'add users to a group'), membersHelp).action(groupAdd)
  const leave = command('remove <group> <users...>', 'remove users from a group')
  addAnywhereFlags(addForceFlag(leave), membersHelp).action(groupRemove)
}

interface GroupFlags extends ServerFlags {
  readonly description?: string
  readonly parent?: string
  readonly administrators?: string
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/groups.ts')

/** `lychgate group create`: creates a group. */
async function groupCreate(name: string, flags: GroupFlags): Promise<void> {
  await withOperator(flags, changesUsers, async (operator) => {
    const body = { name, ...(await detailsOf(operator, flags)) }
    await printGroup(operator, flags, await operator.perform((await operations()).addGroup, {}, body))
  })
}

const reads = () => import('../admin/operations/group-reads.ts')

/** Reads every group by name, with the names of the groups that it names. */
async function namedGroups({ list }: Pick<Operator, 'list'>): Promise<readonly Json[]> {
  const groups = await list((await reads()).listGroups, {})
  const names = new Map(groups.map(({ group_id, name }) => [group_id, name]))
  return groups
    .toSorted((one, other) => (String(one['name']) < String(other['name']) ? -1 : 1))
    .map((group) => named(group, (id) => names.get(id)))
}

/** Describes a group with the names of the groups that it names. */
function named(group: Json, nameOf: (id: unknown) => unknown) {
  const { group_id, name, description, parent_id, administrators_id, created_at } = group
  const around = { description, parent: nameOf(parent_id), administrators: nameOf(administrators_id) }
  return { group_id, name, ...omitUndefined(around), created_at }
}

/** `lychgate group list`: lists every group by name. */
async function groupList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async (operator) => {
    printList(
      flags,
      await namedGroups(operator),
      (group) => group,
      ({ name, group_id, description = '', parent, administrators }) => {
        const relations = [
          ...(parent ? [`in ${parent}`] : []),
          ...(administrators ? [`by ${administrators}`] : []),
        ]
        return [`${name}`, `${group_id}`, relations.join(', '), `${description}`]
      },
    )
  })
}

interface ShowFlags extends ServerFlags {
  readonly limit: number
  readonly after?: string
}

/** `lychgate group show`: shows a group and who was added to it. */
async function groupShow(text: string, { limit, after, ...flags }: ShowFlags): Promise<void> {
  await withOperator(flags, readsUsers, async (operator) => {
    const { group_id } = await operator.findGroup(text)
    const { listMembers } = await reads()
    const { cursorAfter } = await import('../admin/operations/member-pages.ts')
    const from = after === undefined ? {} : { after: cursorAfter(group_id, after) }
    const found = await operator.list(listMembers, { group_id }, from, limit + 1)
    const members = found.slice(0, limit)
    const more = found.length > limit
    const groups = await namedGroups(operator)
    const description = groups.find((one) => one['group_id'] === group_id) ?? {}
    const below = groups.filter(({ parent }) => parent === description['name'])
    const children = below.map(({ name }) => name)
    printResult(
      flags,
      { ...description, children, members, more },
      {
        ...description,
        created_at: instant(Number(description['created_at'])),
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
      ({ username, sub, added_at }) => [`${username}`, `${sub}`, `since ${instant(Number(added_at))}`],
    )
  })
}

/** `lychgate group rename`: renames a group. */
async function groupRename(text: string, name: string, flags: ServerFlags): Promise<void> {
  await change(text, flags, () => Promise.resolve({ name }))
}

/** `lychgate group set`: changes the description or the parent of a group. */
async function groupSet(text: string, flags: GroupFlags): Promise<void> {
  const { description, parent, administrators } = flags
  if (Object.keys(omitUndefined({ description, parent, administrators })).length === 0)
    throw new WrongUsage('nothing to change; name --description, --parent or --administrators')
  await change(text, flags, (operator) => detailsOf(operator, flags))
}

/** The members of a change; an empty text is none. */
async function detailsOf({ findGroup }: Operator, { description, parent, administrators }: GroupFlags) {
  const idOf = async (text: string | undefined) =>
    text === undefined || text === '' ? text : (await findGroup(text)).group_id
  const [parent_id, administrators_id] = [await idOf(parent), await idOf(administrators)]
  return omitUndefined({ description, parent_id, administrators_id })
}

async function change(
  text: string,
  flags: ServerFlags,
  target: (operator: Operator) => Promise<object>,
): Promise<void> {
  await withOperator(flags, changesUsers, async (operator) => {
    const { group_id } = await operator.findGroup(text)
    const { editGroup } = await operations()
    await printGroup(operator, flags, await operator.perform(editGroup, { group_id }, await target(operator)))
  })
}

async function printGroup(operator: Operator, flags: OperatorFlags, group: Json): Promise<void> {
  const names = new Map<unknown, string>()
  for (const id of [group['parent_id'], group['administrators_id']])
    if (typeof id === 'string') names.set(id, (await operator.findGroup(id)).name)
  const whole = named(group, (id) => names.get(id))
  printResult(flags, whole, whole)
}

/** `lychgate group delete`: deletes a group with its memberships. */
async function groupDelete(text: string, flags: DestructiveFlags & ServerFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findGroup, perform, store }) => {
    const { group_id, name } = await findGroup(text)
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
async function groupAdd(text: string, logins: readonly string[], flags: ServerFlags): Promise<void> {
  await changeMembers(text, logins, flags, 'added', async ({ perform }, group_id, sub) => {
    const { added } = await perform((await operations()).joinGroup, { group_id }, { sub })
    return added === true
  })
}

/** Creates the group of administrators when its first member is added, as the link of the first user does. */
export function ensureAdministrators(store: Store, { admin }: Config): Promise<Group> {
  return changeGroups(store, (groups) =>
    ensureGroup(groups, admin.group, systemRandom(16), operatorContext()),
  )
}

/** `lychgate group remove`: removes users from a group. */
async function groupRemove(text: string, logins: readonly string[], flags: ServerFlags): Promise<void> {
  await changeMembers(text, logins, flags, 'removed', async ({ perform }, group_id, sub) => {
    const { leaveGroup } = await operations()
    return (await ifFound(perform(leaveGroup, { group_id, sub }))) !== undefined
  })
}

async function changeMembers(
  text: string,
  logins: readonly string[],
  flags: ServerFlags,
  done: 'added' | 'removed',
  changeOne: (operator: Operator, groupId: string, sub: string) => Promise<boolean>,
): Promise<void> {
  await withOperator(flags, changesUsers, async (operator) => {
    const { store, config } = operator
    // All of them first: a misspelt name changes nothing.
    const users = await Promise.all(logins.map((login) => operator.findUser(login)))
    const isOfAdministrators =
      config !== undefined && canonicalGroupName(text.trim()) === canonicalGroupName(config.admin.group)
    if (done === 'added' && isOfAdministrators && store) await ensureAdministrators(store, config)
    const { group_id, name } = await operator.findGroup(text)
    const changed: string[] = []
    for (const { sub, username } of users)
      if (await changeOne(operator, group_id, sub)) changed.push(username)
    printResult(
      flags,
      { group_id, name, [done]: changed },
      { [done]: changed.length === 0 ? 'none' : changed, group: name },
    )
  })
}
