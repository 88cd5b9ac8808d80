import { type Static, Type } from '@sinclair/typebox'
import { textClaims } from '../../domain/claims.ts'
import { accept, andThen, withWrites } from '../../domain/decision.ts'
import { addMember, groupKind } from '../../domain/group.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { senderOf } from '../../outbound/mailer.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import { keepAdministrator } from '../../users/administrators.ts'
import { hashPassword } from '../../users/passwords.ts'
import { editProfile } from '../../users/rules/edit-profile.ts'
import {
  addUser,
  changePassword,
  createUser,
  endSessionsAndGrants,
  lockUser,
  subPattern,
  unlockUser,
} from '../../users/rules/user.ts'
import { findUser, type Operation, responding } from './operation.ts'
import { assertNamed, assertNamesOnly, assertPassword, readClaims } from './profile-rules.ts'
import { assertOther, assertSent, describeFor, requireFound, storedKey, tagOfUser } from './rules.ts'
import { Attributes, InvitedUser, UserResource } from './schema.ts'

const taken = 'the user name or email address is taken'

const NewPassword = Type.String({
  writeOnly: true,
  maxLength: 1024,
  description: 'Exactly as the user types it. 8 to 256 characters, and none of the 3,000 most common ones.',
})
const Claims = Type.Object(
  Object.fromEntries(textClaims.map((name) => [name, Type.Optional(Type.String())])),
  {
    additionalProperties: false,
    description: 'Standard claims that are text; an empty text removes one.',
  },
)
const NewUser = Type.Object(
  {
    email: Type.Optional(Type.String({ description: 'The address that is invited.' })),
    email_verified: Type.Optional(Type.Boolean()),
    username: Type.Optional(Type.String({ description: 'Absent: the email address.' })),
    sub: Type.Optional(
      Type.String({ pattern: subPattern, description: 'The sub the user has elsewhere; absent: a new one.' }),
    ),
    password: Type.Optional(NewPassword),
    locked: Type.Optional(
      Type.Boolean({ description: 'true: the user cannot sign in, and is not invited.' }),
    ),
    claims: Type.Optional(Claims),
    attributes: Type.Optional(Attributes),
    group_id: Type.Optional(
      Type.String({
        description: 'The group to which the user is added; administrators of groups name one.',
      }),
    ),
    send: Type.Optional(
      Type.Boolean({ description: 'false: the response has the link, even if emails can be sent.' }),
    ),
  },
  { title: 'NewUser', additionalProperties: false },
)
const ChangedUser = Type.Object(
  {
    username: Type.Optional(Type.String({ description: 'Another user name; the old one is free at once.' })),
    email: Type.Optional(Type.String({ description: 'An empty text removes the address.' })),
    email_verified: Type.Optional(Type.Boolean()),
    claims: Type.Optional(Claims),
    attributes: Type.Optional(Attributes),
    locked: Type.Optional(
      Type.Boolean({ description: 'Locks or unlocks the user together with the change. Absent: it stays.' }),
    ),
  },
  { title: 'ChangedUser', additionalProperties: false, minProperties: 1 },
)
const ChangedPassword = Type.Object(
  {
    password: NewPassword,
    disconnect: Type.Optional(Type.Boolean({ description: 'true: every grant is revoked, too.' })),
  },
  { title: 'ChangedPassword', additionalProperties: false },
)

/** The user, the membership, the link and the events are one decision. */
export const inviteUser: Operation<Static<typeof NewUser>> = {
  operationId: 'inviteUser',
  area: 'users',
  kind: 'create',
  url: '/users',
  delegates: true,
  summary: 'Add a user, who sets a password by a link unless they are locked or have one',
  response: InvitedUser,
  body: NewUser,
  taken,
  async perform(call, keep) {
    const { deps, context, isDelegate } = call
    const { config, random } = deps
    const {
      email,
      email_verified: emailVerified = false,
      username = email ?? '',
      sub,
      password,
      locked = false,
      claims = {},
      attributes: requested = {},
      group_id: named,
      send = true,
    } = call.body
    if (isDelegate) {
      assertNamesOnly({
        ...claims,
        ...requested,
        ...omitUndefined({ sub, password }),
        ...(emailVerified && { emailVerified }),
      })
      assertNamed(named)
    }
    const groupId = named === undefined ? undefined : storedKey(named)
    const attributes = { declared: config.accounts.attributes, assigned: requested }
    const profile = { username, email, emailVerified, claims: readClaims(claims, 'new'), attributes }
    const added = createUser(profile, sub ?? random(16), context.at)
    if (password !== undefined) assertPassword(password)
    const passwordHash = password && (await hashPassword(password, random))
    const user = { ...added, ...omitUndefined({ passwordHash }), ...(locked && { lockedAt: context.at }) }
    const isInvited = !locked && password === undefined
    if (isInvited && isDelegate) assertSent(send && senderOf(config) !== undefined && email !== undefined)
    const invitation = isInvited ? createInvitation(deps, user, send, context) : undefined
    const headers = { location: `${call.address}/${encodeURIComponent(user.id)}`, etag: tagOfUser(user) }
    const result = { status: 201, body: describeFor(call, user), headers, userId: user.id }
    const writes = [...addUser(user, isInvited, context), ...(invitation?.writes ?? []), ...keep(result)]
    if (groupId === undefined) await call.store.write(...writes)
    else
      await call.store.transact(groupKind, groupId, (found) => {
        const joining = addMember(requireFound(found, 'group'), user.id, undefined, context)
        return accept(undefined, ...call.requireMay({ groupId }), ...writes, ...joining)
      })
    if (invitation === undefined) return result
    const { link, ...delivered } = await invitation.deliver(call.log)
    const shown = { ...delivered, ...(!isDelegate && omitUndefined({ link })) }
    return { ...result, body: { ...result.body, invitation: shown } }
  },
}

export const changeUser: Operation<Static<typeof ChangedUser>> = {
  operationId: 'changeUser',
  area: 'users',
  kind: 'change',
  url: '/users/:sub',
  delegates: true,
  summary: 'Change the profile of a user; what is not named stays',
  response: UserResource,
  body: ChangedUser,
  taken,
  async perform(call) {
    const {
      claims = {},
      attributes: requested = {},
      username,
      email,
      email_verified: emailVerified,
      locked,
    } = call.body
    const { context, administrators } = call
    const others = omitUndefined({ username, email, emailVerified })
    if (call.isDelegate) assertNamesOnly({ ...claims, ...requested, ...others, ...omitUndefined({ locked }) })
    if (locked) assertOther(call.caller, call.param('sub'))
    const attributes = { declared: call.deps.config.accounts.attributes, assigned: requested }
    const change = { claims: readClaims(claims), attributes, ...others }
    const user = await call.store.transact('user', call.param('sub'), (found) => {
      const current = requireFound(found, 'user')
      call.assertSeen(tagOfUser(current), current)
      const edited = editProfile(current, change, context)
      if (locked === undefined || locked === (current.lockedAt !== undefined)) return edited
      if (!locked) return andThen(edited, (user) => unlockUser(user, context))
      const decision = andThen(edited, (user) => lockUser(user, context))
      return keepAdministrator(decision, administrators, context.at)
    })
    return { body: describeFor(call, user), tag: tagOfUser(user) }
  },
}

export const setPassword: Operation<Static<typeof ChangedPassword>> = {
  operationId: 'setPassword',
  area: 'users',
  kind: 'act',
  url: '/users/:sub/password',
  delegates: false,
  personalTokens: 'rejected',
  summary: 'Set a new password, and end every session of a user; grants to clients stay valid',
  response: UserResource,
  body: ChangedPassword,
  async perform(call, keep) {
    const { context, body, deps } = call
    assertPassword(body.password)
    // A hash takes long: none for a user that does not exist.
    const { id: userId } = await findUser(call)
    const passwordHash = await hashPassword(body.password, deps.random)
    const ends = body.disconnect
      ? endSessionsAndGrants(userId, 'rfc9700-4.14.2-revoke-on-event', context.at)
      : []
    const facts = body.disconnect ? { disconnected: 'everything' } : {}
    return call.store.transact('user', userId, (found) => {
      const changed = changePassword(requireFound(found, 'user'), passwordHash, context, facts)
      return responding(
        withWrites(changed, ...ends),
        (user) => ({
          status: 200,
          body: describeFor(call, user),
          headers: { etag: tagOfUser(user) },
          userId,
        }),
        keep,
      )
    })
  },
}
