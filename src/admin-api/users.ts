import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import type { AppDeps } from '../deps.ts'
import { auditEvent } from '../domain/audit.ts'
import { check } from '../domain/check.ts'
import { type TextClaim, textClaims } from '../domain/claims.ts'
import { accept, type Decision, insert, removeUser, withWrites } from '../domain/decision.ts'
import type { User } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { createInvitation } from '../mail/invitation.ts'
import { RecordExists } from '../storage/store.ts'
import { keepAdministrator } from '../users/administrators.ts'
import { claimFault } from '../users/rules/editable-claims.ts'
import { deleteLinksOf } from '../users/rules/one-time-link.ts'
import {
  canonicalLogin,
  changeProfile,
  createUser,
  describeUser,
  lockUser,
  unlockUser,
} from '../users/rules/user.ts'
import { storedKey, writePage } from './administration.ts'
import { once } from './idempotency.ts'
import { assertMatches, assertOther, conflict, requireFound, tagOfUser } from './rules.ts'
import { InvitedUser, listQuery, operationSchema, pageOf, UserResource } from './schema.ts'

const scope = { read: 'admin:users:read', write: 'admin:users:write' } as const
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
    email: Type.String({ description: 'The address that is invited.' }),
    username: Type.Optional(Type.String({ description: 'Absent: the email address.' })),
    claims: Type.Optional(Claims),
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
  },
  { title: 'ChangedUser', additionalProperties: false, minProperties: 1 },
)

/** `/users`: list, invite, read, change, lock, unlock and delete. */
export const userResource: FastifyPluginAsyncTypebox<AppDeps> = async (app, deps) => {
  const { config, store, clock, random } = deps
  const admin = app.administration

  app.get(
    '/users',
    {
      ...admin.allow(scope.read),
      schema: operationSchema({
        operationId: 'listUsers',
        summary: 'List users, in the order in which they were added',
        scope: scope.read,
        kind: 'list',
        response: pageOf(UserResource, 'Users'),
        querystring: listQuery({
          login: Type.Optional(
            Type.String({ description: 'Only the user with this user name or email address.' }),
          ),
          state: Type.Optional(Type.Union([Type.Literal('locked'), Type.Literal('unlocked')])),
        }),
      }),
    },
    async (request) => {
      const { login, state } = request.query as { login?: string; state?: 'locked' | 'unlocked' } // as the schema says
      const { size, ...page } = admin.pageOf(request)
      if (login === undefined)
        return writePage(await store.page('user', { ...page, only: state }), size, describeUser)
      const canonical = canonicalLogin(login)
      const user = canonical === undefined ? undefined : await store.find('userByLogin', canonical)
      const isWanted =
        user !== undefined && (state === undefined || (user.lockedAt !== undefined) === (state === 'locked'))
      return { items: isWanted ? [describeUser(user)] : [] }
    },
  )

  app.post(
    '/users',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'inviteUser',
        summary: 'Add a user, who sets a password by a link',
        scope: scope.write,
        kind: 'create',
        response: InvitedUser,
        body: NewUser,
      }),
    },
    async (request, reply) => {
      const { email, username = email, claims = {}, send = true } = request.body as Static<typeof NewUser> // as the schema says
      const context = admin.contextOf(request)
      return once(request, reply, deps, taken, async (keep) => {
        const profile = { username, email, claims: readClaims(claims, 'new') }
        const user = createUser(profile, random(16), context.at)
        const invitation = createInvitation(deps, user, send, context)
        const event = auditEvent('user-invited', context, { userId: user.id })
        const headers = { location: `${request.url}/${encodeURIComponent(user.id)}`, etag: tagOfUser(user) }
        const kept = { status: 201, body: describeUser(user), headers, userId: user.id }
        await store.write(insert('user', user), event, ...invitation.writes, ...keep(kept))
        return { ...kept, body: { ...kept.body, invitation: await invitation.deliver(request.log) } }
      })
    },
  )

  app.get(
    '/users/:sub',
    {
      ...admin.allow(scope.read),
      schema: operationSchema({
        operationId: 'readUser',
        summary: 'Read a user',
        scope: scope.read,
        kind: 'read',
        response: UserResource,
        id: 'sub',
      }),
    },
    async ({ params }, reply) => {
      const user = requireFound(await store.find('user', storedKey(subOf(params))), 'user')
      reply.header('etag', tagOfUser(user))
      return describeUser(user)
    },
  )

  app.patch(
    '/users/:sub',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'changeUser',
        summary: 'Change the profile of a user; what is not named stays',
        scope: scope.write,
        kind: 'change',
        response: UserResource,
        id: 'sub',
        body: ChangedUser,
      }),
    },
    async (request, reply) => {
      const sub = storedKey(subOf(request.params))
      const { email, email_verified: emailVerified, claims = {} } = request.body as Static<typeof ChangedUser> // as the schema says
      const change = { claims: readClaims(claims), ...omitUndefined({ email, emailVerified }) }
      const changed = [...Object.keys(claims), ...Object.keys(omitUndefined({ email, emailVerified }))].join(
        ' ',
      )
      await admin.assertMayChange(request, sub)
      const context = admin.contextOf(request)
      const user = await store
        .transact('user', sub, (found) => {
          const known = requireFound(found, 'user')
          assertMatches(request.headers['if-match'], tagOfUser(known))
          // Links that were sent to the old address must stop working.
          const links = email === undefined ? [] : deleteLinksOf(sub)
          const event = auditEvent('user-changed', context, { userId: sub, changed })
          return withWrites(changeProfile(known, change, context.at), ...links, event)
        })
        .catch((error: unknown) => {
          throw error instanceof RecordExists ? conflict(taken) : error
        })
      reply.header('etag', tagOfUser(user))
      return describeUser(user)
    },
  )

  app.delete(
    '/users/:sub',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'deleteUser',
        summary: 'Delete a user with their sessions and tokens',
        scope: scope.write,
        kind: 'delete',
        response: Type.Null(),
        id: 'sub',
      }),
    },
    async (request, reply) => {
      const sub = storedKey(subOf(request.params))
      assertOther(admin.callerOf(request), sub)
      await admin.assertMayChange(request, sub)
      const context = admin.contextOf(request)
      await store.transact('user', sub, (found) => {
        assertMatches(request.headers['if-match'], tagOfUser(requireFound(found, 'user')))
        const event = auditEvent('user-removed', context, { userId: sub })
        const removal = accept(undefined, removeUser(sub, context.at), event)
        return keepAdministrator(removal, config.admin.group, context.at)
      })
      return reply.code(204).send()
    },
  )

  const acts = {
    lock: {
      name: 'user-locked',
      decide: lockUser,
      summary: 'Lock a user, and end their sessions, links and grants',
    },
    unlock: { name: 'user-unlocked', decide: unlockUser, summary: 'Let a locked user sign in again' },
  } as const satisfies Record<
    string,
    { decide: (user: User, now: number) => Decision<User>; name: string; summary: string }
  >
  for (const [act, { name, decide, summary }] of Object.entries(acts)) {
    app.post(
      `/users/:sub/${act}`,
      {
        ...admin.allow(scope.write),
        schema: operationSchema({
          operationId: `${act}User`,
          summary,
          scope: scope.write,
          kind: 'act',
          response: UserResource,
          id: 'sub',
        }),
      },
      async (request, reply) => {
        const sub = storedKey(subOf(request.params))
        if (act === 'lock') assertOther(admin.callerOf(request), sub)
        await admin.assertMayChange(request, sub)
        const context = admin.contextOf(request)
        return once(request, reply, deps, taken, async (keep) => {
          return store.transact('user', sub, (found) => {
            const decision = decide(requireFound(found, 'user'), clock())
            const user = 'result' in decision ? decision.result : requireFound(found, 'user')
            const kept = {
              status: 200,
              body: describeUser(user),
              headers: { etag: tagOfUser(user) },
              userId: sub,
            }
            const event = auditEvent(name, context, { userId: sub })
            const whole = accept(kept, ...decision.writes, event, ...keep(kept))
            return act === 'lock' ? keepAdministrator(whole, config.admin.group, context.at) : whole
          })
        })
      },
    )
  }
}

function subOf(params: unknown): string {
  return (params as { readonly sub: string }).sub // as the path says
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
