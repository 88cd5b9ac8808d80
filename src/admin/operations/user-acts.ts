import type { TSchema } from '@sinclair/typebox'
import type { Decision } from '../../domain/decision.ts'
import type { User, UserCredentials } from '../../domain/model.ts'
import { keepAdministrator } from '../../users/administrators.ts'
import { countFailures, userCredentials } from '../../users/factors.ts'
import {
  endSessions,
  endSessionsAndConnections,
  everyConnection,
  removeCodes,
  removePasskeys,
} from '../../users/rules/operator-acts.ts'
import { deleteUser, lockUser, unlockUser } from '../../users/rules/user.ts'
import {
  type Call,
  type Described,
  type DoneWord,
  type Operation,
  type Outcome,
  responding,
} from './operation.ts'
import { assertOther, describeFor, requireFound, tagOfUser } from './rules.ts'
import { nothing, UnlockedUser, UserResource } from './schema.ts'

/** Something that is done to one user. Its route and its page are below the user. */
export interface UserAct extends Operation {
  /** The last part of its address, and of the keys of its texts. */
  readonly verb: string
  /** Whether it cannot be undone: a page has the name of the user typed, and a command asks. */
  readonly isFinal: boolean
  readonly done: DoneWord
}

/** What is decided about a user, under the lock of their credentials. */
interface Definition<Prepared, Result> extends Omit<Described, 'response' | 'body' | 'querystring'> {
  readonly verb: string
  readonly isFinal: boolean
  readonly done: DoneWord
  /** Administrators do not do it to themselves. */
  readonly isOfOthers?: true
  /** It can end the last administrator. */
  readonly keepsAdministrator?: true
  readonly response?: TSchema
  /** Absent: `act`. */
  readonly kind?: 'delete'
  /** Reads what the decision needs in addition to the credentials. */
  prepare?(call: Call, userId: string): Promise<Prepared>
  decide(current: UserCredentials, call: Call, prepared: Prepared): Decision<Result>
  /** The changed user, if it changed, and further members of the response. */
  describe?(result: Result, before: User, prepared: Prepared): { readonly user: User; readonly more?: object }
}

function userAct<Prepared, Result>(definition: Definition<Prepared, Result>): UserAct {
  const { prepare, decide, describe, isOfOthers, keepsAdministrator, ...described } = definition
  const { kind = 'act', response = UserResource } = described
  return {
    ...described,
    kind,
    response,
    area: 'users',
    url: kind === 'delete' ? '/users/:sub' : `/users/:sub/${described.verb}`,
    async perform(call, keep): Promise<Outcome> {
      const userId = call.param('sub')
      if (isOfOthers) assertOther(call.caller, userId)
      const prepared = (await prepare?.(call, userId)) as Prepared // what `prepare` is declared to return
      return call.store.transact(userCredentials, userId, (found) => {
        const current = requireFound(found, 'user')
        if (kind === 'delete') call.assertSeen(tagOfUser(current.user), current.user)
        const respond = (result: Result) => {
          const after = describe?.(result, current.user, prepared)
          return responseOf(call, after?.user ?? current.user, after?.more)
        }
        const decision = responding(decide(current, call, prepared), respond, keep)
        if (!keepsAdministrator) return decision
        return keepAdministrator(decision, call.administrators, call.context.at)
      })
    },
  }
}

/** The response of what changes a user. */
function responseOf(call: Pick<Call, 'isDelegate'>, user: User, more: object = {}) {
  const headers = { etag: tagOfUser(user) }
  return { status: 200, body: { ...describeFor(call, user), ...more }, headers, userId: user.id }
}

/** All of them, in the order of the page of a user. */
export const userActs = {
  lock: userAct({
    operationId: 'lockUser',
    verb: 'lock',
    delegates: true,
    summary: 'Lock a user, and end their sessions, links and grants',
    isFinal: true,
    done: 'user-locked',
    isOfOthers: true,
    keepsAdministrator: true,
    decide: ({ user }, { context }) => lockUser(user, context),
    describe: (user) => ({ user }),
  }),
  unlock: userAct({
    operationId: 'unlockUser',
    verb: 'unlock',
    delegates: true,
    summary: 'Let a user sign in again: end a lock, and forget failed sign-ins',
    response: UnlockedUser,
    isFinal: false,
    done: 'user-unlocked',
    prepare: ({ deps, context }, userId) => countFailures(deps.store, userId, context.at),
    decide: ({ user }, { context }) => unlockUser(user, context),
    describe: (user, before, forgotten_failures) => ({
      user,
      more: { was_locked: before.lockedAt !== undefined, forgotten_failures },
    }),
  }),
  signOut: userAct({
    operationId: 'signOutUser',
    verb: 'sign-out',
    delegates: true,
    summary: 'End every session of a user; grants to clients stay valid',
    isFinal: false,
    done: 'user-signed-out',
    decide: ({ user, sessions }, { context }) => endSessions(user, sessions, context),
  }),
  revoke: userAct({
    operationId: 'revokeUser',
    verb: 'revoke',
    delegates: true,
    summary: 'End every session of a user, and revoke everything they granted',
    isFinal: true,
    done: 'user-revoked',
    prepare: async ({ deps, context: { at } }, userId) => {
      const { page } = await deps.store.connections(userId, { now: at, limit: everyConnection, offset: 0 })
      return page
    },
    decide: ({ user, sessions }, { context }, connections) =>
      endSessionsAndConnections(user, sessions, connections, context),
  }),
  removeCodes: userAct({
    operationId: 'removeCodes',
    verb: 'remove-codes',
    delegates: false,
    personalTokens: 'rejected',
    summary: 'Remove the one-time codes of a user, and end every session',
    isFinal: true,
    done: 'factor-removed',
    decide: ({ user }, { context }) => removeCodes(user, context),
  }),
  removePasskeys: userAct({
    operationId: 'removePasskeys',
    verb: 'remove-passkeys',
    delegates: false,
    personalTokens: 'rejected',
    summary: 'Remove every passkey of a user, and end every session',
    isFinal: true,
    done: 'factor-removed',
    keepsAdministrator: true,
    decide: (current, { context }) => removePasskeys(current, context),
  }),
  remove: userAct({
    operationId: 'deleteUser',
    verb: 'remove',
    kind: 'delete',
    delegates: false,
    summary: 'Delete a user with their sessions and tokens',
    response: nothing,
    isFinal: true,
    done: 'user-removed',
    isOfOthers: true,
    keepsAdministrator: true,
    decide: ({ user }, { context }) => deleteUser(user, context),
  }),
} as const
