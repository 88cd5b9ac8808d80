import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { type TextClaim, textClaims } from '../../domain/claims.ts'
import { accept, insert } from '../../domain/decision.ts'
import { addMember, groupKind } from '../../domain/group.ts'
import type { User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { cursorOf, readKeyCursor } from '../../http/cursor.ts'
import { senderOf } from '../../outbound/mailer.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import type { Reach } from '../../users/delegation.ts'
import { hashPassword } from '../../users/passwords.ts'
import { editProfile } from '../../users/rules/edit-profile.ts'
import { claimFault } from '../../users/rules/editable-claims.ts'
import { canonicalLogin, createUser, isNamed, subPattern } from '../../users/rules/user.ts'
import { searchUsers } from '../../users/search.ts'
import { pageOfAll } from '../operations/operation.ts'
import { assertSent, describeFor, requireFound, tagOfUser } from '../operations/rules.ts'
import {
  AttributeResource,
  Attributes,
  InvitedUser,
  listQuery,
  pageOf,
  UserResource,
} from '../operations/schema.ts'
import { readSignIn } from '../operations/user-reads.ts'
import { storedKey, writePage } from './administration.ts'
import { pageOfMembers, shownIn } from './member-pages.ts'
import { addOperation, type HttpCall, isSeen, operationsOf } from './operation.ts'
import { assertPassword, NewPassword } from './passwords.ts'

const taken = 'another user has this user name or email address'

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
    email: Type.Optional(Type.String({ description: 'An empty text removes the address.' })),
    email_verified: Type.Optional(Type.Boolean()),
    claims: Type.Optional(Claims),
    attributes: Type.Optional(Attributes),
  },
  { title: 'ChangedUser', additionalProperties: false, minProperties: 1 },
)

/** The claims that an administrator of a group may change: they prove nothing, and give nothing. */
const names: readonly string[] = ['name', 'given_name', 'family_name', 'middle_name', 'nickname']

/** `/users`: list, invite, read, change, lock, unlock and delete; `/attributes`: which attributes users have. */
export const userResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, random } = deps
  const admin = app.administration
  const { list, page, read, create, change } = operationsOf(app, deps, 'users')

  page(
    '/users',
    {
      operationId: 'listUsers',
      delegates: true,
      summary: 'List users, in the order in which they were added',
      response: pageOf(UserResource, 'Users'),
      querystring: listQuery({
        login: Type.Optional(
          Type.String({ description: 'Only the user with this user name or email address.' }),
        ),
        search: Type.Optional(
          Type.String({
            description:
              'Only users whose user name or email address begins with this text, sorted by the one that does.',
          }),
        ),
        state: Type.Optional(Type.Union([Type.Literal('locked'), Type.Literal('unlocked')])),
      }),
    },
    async (call) => {
      const [login, state] = [call.query('login'), call.query('state') as 'locked' | 'unlocked' | undefined] // as the schema says
      const search = call.query('search')
      const isWanted = (user: User) =>
        (state === undefined || (user.lockedAt === undefined ? 'unlocked' : 'locked') === state) &&
        (search === undefined || isNamed(user, search))
      if (login !== undefined) {
        const canonical = canonicalLogin(login)
        const user = canonical === undefined ? undefined : await store.find('userByLogin', canonical)
        const isShown = user !== undefined && isWanted(user) && (await isSeen(call, user.id))
        return { body: { items: isShown ? [describeFor(call, user)] : [] } }
      }
      const reach = await admin.reachFor(call.request)
      if (reach !== undefined) return pageOfReach(call, reach, isWanted)
      if (search !== undefined) {
        const [limit, after] = [Number(call.query('limit') ?? 50), readKeyCursor(call.query('after'))]
        const { users, next } = await searchUsers(store, search, { after, limit })
        const items = users.filter(isWanted).map((user) => describeFor(call, user))
        return { body: { items, ...(next !== undefined && { next: cursorOf(next) }) } }
      }
      const { size, ...rows } = admin.pageOf(call.request)
      return {
        body: writePage(await store.page('user', { ...rows, only: state }), size, (user) =>
          describeFor(call, user),
        ),
      }
    },
  )
  /** Lists the members of the groups that the caller administers, each once: with the first of their groups. */
  const pageOfReach = (call: HttpCall, reach: Reach, isWanted: (user: User) => boolean) => {
    const isShown = shownIn(store, reach)
    return pageOfMembers(call, store, reach.groups, async (membership) => {
      const user = await store.find('user', membership.userId)
      if (user === undefined || !isWanted(user)) return undefined
      return (await isShown(membership)) ? describeFor(call, user) : undefined
    })
  }

  list(
    '/attributes',
    {
      operationId: 'listAttributes',
      summary: 'List the attributes that the configuration declares, in the order of their names',
      response: pageOf(AttributeResource, 'DeclaredAttributes'),
      querystring: listQuery({}),
    },
    async (rows) => pageOfAll(config.accounts.attributes, ({ name }) => name, rows),
    ({ name }) => name,
    ({ name, type, values, visible, editable }) => ({
      name,
      type,
      ...omitUndefined({ values }),
      visible,
      editable,
    }),
  )
  create(
    '/users',
    {
      operationId: 'inviteUser',
      delegates: true,
      summary: 'Add a user, who sets a password by a link unless they are locked or have one',
      response: InvitedUser,
      body: NewUser,
      taken,
    },
    async (call, keep) => {
      const { request, context, isDelegate } = call
      const {
        email,
        email_verified: emailVerified = false,
        username = email ?? '',
        sub,
        password,
        locked = false,
        claims = {},
        attributes: given = {},
        group_id: named,
        send = true,
      } = call.body
      if (isDelegate) {
        assertNamesOnly({
          ...claims,
          ...given,
          ...omitUndefined({ sub, password }),
          ...(emailVerified && { emailVerified }),
        })
        assertNamed(named)
      }
      const groupId = named === undefined ? undefined : storedKey(named)
      const attributes = { declared: config.accounts.attributes, given }
      const profile = { username, email, emailVerified, claims: readClaims(claims, 'new'), attributes }
      const added = createUser(profile, sub ?? random(16), context.at)
      if (password !== undefined) assertPassword(password)
      const passwordHash = password && (await hashPassword(password, random))
      const user = { ...added, ...omitUndefined({ passwordHash }), ...(locked && { lockedAt: context.at }) }
      const isInvited = !locked && password === undefined
      if (isInvited && isDelegate) assertSent(send && senderOf(config) !== undefined && email !== undefined)
      const invitation = isInvited ? createInvitation(deps, user, send, context) : undefined
      const event = auditEvent(isInvited ? 'user-invited' : 'user-added', context, { userId: user.id })
      const headers = { location: `${request.url}/${encodeURIComponent(user.id)}`, etag: tagOfUser(user) }
      const kept = { status: 201, body: describeFor(call, user), headers, userId: user.id }
      const writes = [insert('user', user), event, ...(invitation?.writes ?? []), ...keep(kept)]
      if (groupId === undefined) await call.store.write(...writes)
      else
        await call.store.transact(groupKind, groupId, (found) => {
          const joining = addMember(requireFound(found, 'group'), user.id, undefined, context)
          return accept(undefined, call.requireMay({ groupId }), ...writes, ...joining)
        })
      if (invitation === undefined) return kept
      const { link, ...delivered } = await invitation.deliver(request.log)
      const shown = { ...delivered, ...(!isDelegate && omitUndefined({ link })) }
      return { ...kept, body: { ...kept.body, invitation: shown } }
    },
  )

  read(
    '/users/:sub',
    { operationId: 'readUser', delegates: true, summary: 'Read a user', response: UserResource },
    async (call) => {
      const user = requireFound(await store.find('user', call.param('sub')), 'user')
      return { body: describeFor(call, user), tag: tagOfUser(user) }
    },
  )
  addOperation(app, deps, readSignIn)
  change(
    '/users/:sub',
    {
      operationId: 'changeUser',
      delegates: true,
      summary: 'Change the profile of a user; what is not named stays',
      response: UserResource,
      body: ChangedUser,
      taken,
    },
    async (call) => {
      const { context } = call
      const sub = call.param('sub')
      const { claims = {}, attributes: given = {}, email, email_verified: emailVerified } = call.body
      const others = omitUndefined({ email, emailVerified })
      if (call.isDelegate) assertNamesOnly({ ...claims, ...given, ...others })
      const attributes = { declared: config.accounts.attributes, given }
      const change = { claims: readClaims(claims), attributes, ...others }
      const user = await call.store.transact('user', sub, (found) => {
        const known = requireFound(found, 'user')
        call.assertSeen(tagOfUser(known), known)
        return editProfile(known, change, context)
      })
      return { body: describeFor(call, user), tag: tagOfUser(user) }
    },
  )
}

/** Checks that an administrator of a group sets nothing of a profile but names. */
function assertNamesOnly(members: object): void {
  const others = Object.keys(members).filter((name) => !names.includes(name))
  check(
    others.length === 0,
    'lychgate-admin-delegate-names',
    'access_denied',
    'an administrator of a group sets the names of a user, and no other claim',
    { received: others },
  )
}

/** Checks that an administrator of a group invites into it. */
function assertNamed(groupId: string | undefined): asserts groupId is string {
  check(
    groupId !== undefined,
    'lychgate-admin-delegate-invites',
    'access_denied',
    'an administrator of a group invites into it: name it in group_id',
  )
}

/** @throws {OAuthError} `invalid_request` for a text that the claim cannot have. */
function readClaims(
  claims: Readonly<Record<string, string | undefined>>,
  of: 'new' | 'known' = 'known',
): Readonly<Record<string, string>> {
  const texts = Object.entries(omitUndefined(claims)).map(([name, text = '']) => [name, text.trim()] as const)
  for (const [name, text] of texts) {
    check(
      // `as`: the schema has no other.
      claimFault(name as TextClaim, text) === undefined,
      'oidc-core-5.1-claim-types',
      'invalid_request',
      `${name} cannot have this value`,
    )
  }
  // OpenID Connect Core §5.3.2: a claim without a value is left out.
  return Object.fromEntries(texts.filter(([, text]) => of === 'known' || text !== ''))
}
