import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { withWrites } from '../../domain/decision.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { hashPassword, passwordFault } from '../../users/passwords.ts'
import { changePassword, endAccess } from '../../users/rules/user.ts'
import { responding } from '../operations/operation.ts'
import { describeFor, requireFound, tagOfUser } from '../operations/rules.ts'
import { UserResource } from '../operations/schema.ts'
import { operationsOf } from './operation.ts'

/** A password in a body. */
export const NewPassword = Type.String({
  writeOnly: true,
  maxLength: 1024,
  description: 'Exactly as the user types it. 8 to 256 characters, and none of the 3,000 most common ones.',
})

const ChangedPassword = Type.Object(
  {
    password: NewPassword,
    disconnect: Type.Optional(Type.Boolean({ description: 'true: every grant is revoked, too.' })),
  },
  { title: 'ChangedPassword', additionalProperties: false },
)

/** @throws {OAuthError} `invalid_request` for a password that users cannot choose themselves. */
export function assertPassword(password: string): void {
  const fault = passwordFault(password)
  check(
    fault === undefined,
    'lychgate-password-policy',
    'invalid_request',
    fault === 'length'
      ? 'password must have 8 to 256 characters'
      : 'password is one of the 3,000 most common ones; choose another',
  )
}

/** `/users/…/password`: set a password that the operator knows. */
export const passwordResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { store, random } = deps

  operationsOf(app, deps, 'users').act(
    '/users/:sub/password',
    {
      operationId: 'setPassword',
      summary: 'Set a new password, and end every session of a user; grants to clients stay valid',
      response: UserResource,
      body: ChangedPassword,
    },
    async (call, keep) => {
      const { context, body } = call
      const userId = call.param('sub')
      assertPassword(body.password)
      // A hash takes long: none for a user that does not exist.
      requireFound(await store.find('user', userId), 'user')
      const passwordHash = await hashPassword(body.password, random)
      const ends = body.disconnect ? endAccess(userId, 'rfc9700-4.14.2-revoke-on-event', context.at) : []
      const facts = { userId, ...(body.disconnect && { disconnected: 'everything' }) }
      return call.store.transact('user', userId, (found) => {
        const changed = changePassword(requireFound(found, 'user'), passwordHash, context.at)
        return responding(
          withWrites(changed, ...ends, auditEvent('user-password-changed', context, facts)),
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
  )
}
