import type { TextClaim } from '../../domain/claims.ts'
import type { Group } from '../../domain/group.ts'
import type { User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { systemRandom } from '../../system/system.ts'
import { namesOf } from '../../users/groups.ts'
import { editProfile } from '../../users/rules/edit-profile.ts'
import { claimFault } from '../../users/rules/editable-claims.ts'
import { canonicalUsername, createUser, lockUser, unlockUser } from '../../users/rules/user.ts'
import { CommandFailed } from '../failure.ts'
import { demands, taken } from '../find.ts'
import { requireAmong } from './groups.ts'
import { attempt, type Batch, contextOf, membersOfNew, pruningFile, resultOf, type Setting } from './plan.ts'
import type { Placed, Wanted } from './read.ts'
import type { UserEntry } from './schema.ts'
import { differences, type State, userEntry } from './state.ts'

type Entry = Placed<UserEntry>

/** Plans what entries say about users. @param groups Those there are when the users are changed. */
export function planUsers(
  setting: Setting,
  { users, memberships, attributes }: Pick<State, 'users' | 'memberships' | 'attributes'>,
  groups: readonly Group[],
  entries: readonly Entry[],
): { readonly named: ReadonlySet<string>; readonly batches: readonly Batch[] } {
  const byId = new Map(users.map((user) => [user.id, user]))
  const byName = new Map(users.map((user) => [user.username, user]))
  const logins = new Map(users.flatMap((user) => loginsOf(user).map((login) => [login, user.id] as const)))
  const named = new Set<string>()
  const batches = entries.flatMap((placed) => {
    const { sub, username } = placed.entry
    const before = sub === undefined ? byName.get(canonicalUsername(username) ?? '') : byId.get(sub)
    if (before !== undefined) named.add(before.id)
    const groupsBefore = memberships.get(before?.id ?? '') ?? []
    return (
      attempt(setting, placed, () => {
        const groupsAfter = (placed.entry.groups ?? []).map((name) => requireAmong(groups, name, 'groups'))
        const after =
          before === undefined ? newUser(attributes, placed) : changedUser(attributes, before, placed)
        if (before !== undefined) for (const login of loginsOf(before)) logins.delete(login)
        if (loginsOf(after).some((login) => logins.has(login))) throw taken()
        for (const login of loginsOf(after)) logins.set(login, after.id)
        return planUser(setting, placed, before, after, { groups, known: groupsBefore, wanted: groupsAfter })
      }) ?? []
    )
  })
  return { named, batches }
}

function loginsOf({ username, email }: User): readonly string[] {
  return email === undefined ? [username] : [username, email]
}

/** What a user is planned with. */
interface Around {
  readonly groups: readonly Group[]
  /** The ids of the groups that the user was added to. */
  readonly known: readonly string[]
  readonly wanted: readonly string[]
}

function planUser(
  setting: Setting,
  placed: Entry,
  before: User | undefined,
  after: User,
  { groups, known, wanted }: Around,
): Batch | [] {
  const nameOf = namesOf(groups)
  const entryOf = (user: User, ids: readonly string[]) => userEntry(user, [...new Set(ids)].map(nameOf))
  const entry = entryOf(after, wanted)
  const members = before === undefined ? membersOfNew(entry) : differences(entryOf(before, known), entry)
  if (before !== undefined && members.length === 0) return []
  const [added, left] = [
    wanted.filter((id) => !known.includes(id)),
    known.filter((id) => !wanted.includes(id)),
  ]
  const groupsOf = (ids: readonly string[]) => groups.filter(({ id }) => ids.includes(id))
  const { target, tell } = setting
  const { file } = placed
  return {
    changes: [
      { action: before === undefined ? 'add' : 'change', kind: 'user', name: after.username, members },
    ],
    write: async () => {
      if (before === undefined) {
        const invited = await target.addUser(after, file)
        if (invited !== undefined) tell({ username: after.username, ...invited })
      } else await target.changeUser({ before, after, file })
      for (const group of groupsOf(added)) await target.addMember(group, after, file)
    },
    // After all additions: another user may be the next administrator.
    finish: async () => {
      for (const group of groupsOf(left)) await target.removeMember(group, after, file)
    },
  }
}

function newUser(declared: State['attributes'], placed: Entry): User {
  const { sub, username, email, email_verified: emailVerified = false, locked } = placed.entry
  const claims = Object.fromEntries(Object.entries(claimsOf(placed.entry)).filter(([, text]) => text !== ''))
  const context = contextOf(placed)
  const attributes = { declared, assigned: placed.entry.attributes ?? {} }
  const profile = { username, emailVerified, claims, attributes, ...(email && { email }) }
  const user = createUser(profile, sub ?? systemRandom(16), context.at)
  return locked === true ? resultOf(lockUser(user, context)) : user
}

/** Returns a user as an entry changes them, apart from their groups. */
function changedUser(declared: State['attributes'], user: User, placed: Entry): User {
  const { username, email, email_verified: emailVerified, locked } = placed.entry
  const context = contextOf(placed)
  const attributes = { declared, assigned: placed.entry.attributes ?? {} }
  const change = { claims: claimsOf(placed.entry), attributes, ...omitUndefined({ email, emailVerified }) }
  const after = resultOf(editProfile(user, change, context))
  if (after.username !== canonicalUsername(username))
    throw new CommandFailed(
      `username: the user with this sub is ${after.username}, and user names never change`,
    )
  if (locked === undefined || locked === (user.lockedAt !== undefined)) return after
  return resultOf(locked ? lockUser(after, context) : unlockUser(after, context))
}

function claimsOf({ claims = {} }: UserEntry): Readonly<Record<string, string>> {
  const texts = Object.entries(omitUndefined(claims)).map(([name, text = '']) => [name, text.trim()] as const)
  for (const [name, text] of texts) {
    // `as`: the schema has no other.
    const fault = claimFault(name as TextClaim, text)
    if (fault !== undefined) throw new CommandFailed(`claims.${name}: ${demands[fault]}`)
  }
  return Object.fromEntries(texts)
}

/** Plans the removal of the users that no entry describes. */
export function pruneUsers(
  { target }: Setting,
  users: readonly User[],
  named: ReadonlySet<string>,
  entries: Wanted,
): readonly Batch[] {
  return users
    .filter(({ id }) => !named.has(id))
    .map((user) => ({
      changes: [{ action: 'delete', kind: 'user', name: user.username, members: [] }],
      write: () => target.deleteUser(user, pruningFile(entries, 'users')),
    }))
}
