import { type Static, Type } from '@sinclair/typebox'
import pLimit from 'p-limit'
import { attributeChange } from '../../domain/attributes.ts'
import { check } from '../../domain/check.ts'
import { accept } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { addMember, groupKind } from '../../domain/group.ts'
import type { Seconds, User } from '../../domain/model.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import { addUser, createUser } from '../../users/rules/user.ts'
import { type LineFault, type ListedUser, readListedUsers } from './listed-users.ts'
import type { Call, Operation } from './operation.ts'
import { readClaims } from './profile-rules.ts'
import { requireFound, storedKey } from './rules.ts'
import { Invitation } from './schema.ts'

/** So many emails are sent by one request, and so many users added by one transaction. */
const mostUsers = 100
/** An error names so many lines, and counts the others. */
const mostFaults = 10
const sentAtOnce = 5
/** What is not sent by then is shown: a mail server that does not respond takes ten seconds for each email. */
const sendingSeconds: Seconds = 60

const UserList = Type.Object(
  {
    list: Type.String({
      minLength: 1,
      description:
        'An email address on each line, or CSV (RFC 4180) whose first line names the columns: email, username, standard claims that are text, and attributes that accounts.attributes declares.',
    }),
    group_id: Type.Optional(Type.String({ description: 'The group to which the users are added.' })),
    send: Type.Optional(
      Type.Boolean({ description: 'false: the response has the links, even if emails can be sent.' }),
    ),
  },
  { title: 'UserList', additionalProperties: false },
)

const Invitations = Type.Object(
  {
    invited: Type.Integer(),
    items: Type.Array(Type.Object({ sub: Type.String(), username: Type.String(), invitation: Invitation }), {
      description: 'Empty in the response to a repeated request.',
    }),
  },
  { title: 'Invitations', additionalProperties: false },
)

/** Either every user of the list is added, or none is. */
export const inviteUsers: Operation<Static<typeof UserList>> = {
  operationId: 'inviteUsers',
  area: 'users',
  kind: 'act',
  url: '/invitations',
  delegates: false,
  summary: 'Invite the users of a list; if a line of it is wrong, none is added',
  response: Invitations,
  body: UserList,
  taken: 'a user name or email address of the list was taken in the meantime; no user was invited',
  async perform(call, keep) {
    const { deps, context, body } = call
    const users = await readUsers(call)
    const invited = users.map((user) => ({
      user,
      invitation: createInvitation(deps, user, body.send ?? true, context),
    }))
    // Without what deleting one of the users would have to delete.
    const kept = { status: 200, body: { invited: users.length, items: [] }, headers: {} }
    const writes = [
      ...invited.flatMap(({ user, invitation }) => [...addUser(user, true, context), ...invitation.writes]),
      ...keep(kept),
    ]
    const groupId = body.group_id === undefined ? undefined : storedKey(body.group_id)
    if (groupId === undefined) await call.store.write(...writes)
    else
      await call.store.transact(groupKind, groupId, (found) => {
        const group = requireFound(found, 'group')
        const joining = users.flatMap(({ id }) => addMember(group, id, undefined, context))
        return accept(undefined, ...call.requireMay({ groupId }), ...writes, ...joining)
      })
    const until = deps.clock() + sendingSeconds
    const inTurn = pLimit(sentAtOnce)
    const items = invited.map(({ user: { id: sub, username }, invitation }) =>
      inTurn(async () => {
        const isInTime = deps.clock() < until
        return { sub, username, invitation: isInTime ? await invitation.deliver(call.log) : invitation.shown }
      }),
    )
    return { ...kept, body: { invited: users.length, items: await Promise.all(items) } }
  },
}

/** @throws {OAuthError} `invalid_request` that names each line with a fault. */
async function readUsers({ deps, body, context }: Call<Static<typeof UserList>>): Promise<readonly User[]> {
  const declared = deps.config.accounts.attributes
  const { users: listed, faults: unread } = readListedUsers(
    body.list,
    declared.map(({ name }) => name),
  )
  assertLines(unread)
  check(
    listed.length > 0 && listed.length <= mostUsers,
    'lychgate-admin-user-list',
    'invalid_request',
    `a list has 1 to ${mostUsers} users, and this one ${listed.length}: split it`,
  )
  const [users, faults] = [[] as User[], [] as LineFault[]]
  const lineOf = new Map<string, number>()
  for (const { line, ...one } of listed) {
    const user = createListed(one, { declared, fresh: deps.random(16), now: context.at })
    if (typeof user === 'string') {
      faults.push({ line, fault: user })
      continue
    }
    const logins = [...new Set([user.username, user.email ?? user.username])]
    const earlier = logins.map((login) => lineOf.get(login)).find((other) => other !== undefined)
    const stored = await Promise.all(logins.map((login) => deps.store.find('userByLogin', login)))
    if (earlier !== undefined) faults.push({ line, fault: `repeats line ${earlier}` })
    else if (stored.some(Boolean)) faults.push({ line, fault: 'the user name or email address is taken' })
    for (const login of logins) lineOf.set(login, lineOf.get(login) ?? line)
    users.push(user)
  }
  assertLines(faults)
  return users
}

/** Returns the user of a line, or what is wrong with it. */
function createListed(
  { email, username = email, claims, attributes }: Omit<ListedUser, 'line'>,
  {
    declared,
    fresh,
    now,
  }: {
    readonly declared: Parameters<typeof attributeChange>[0]
    readonly fresh: Buffer
    readonly now: Seconds
  },
): User | string {
  try {
    const profile = { email, username, claims: readClaims(claims, 'new') }
    return createUser({ ...profile, attributes: attributeChange(declared, attributes) }, fresh, now)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return error.message
  }
}

function assertLines(faults: readonly LineFault[]): void {
  const lines = faults.slice(0, mostFaults).map(({ line, fault }) => `line ${line}: ${fault}`)
  const others = faults.length - lines.length
  check(
    faults.length === 0,
    'lychgate-admin-user-list',
    'invalid_request',
    `no user was invited. ${lines.join('; ')}${others > 0 ? `; and ${others} more lines` : ''}`,
  )
}
