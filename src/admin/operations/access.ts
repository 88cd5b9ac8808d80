import { Type } from '@sinclair/typebox'
import type { User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Needs } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { countFactors } from '../../users/factors.ts'
import { groupsOf } from '../../users/groups.ts'
import { explainAccess } from './explain-access.ts'
import type { Call, Operation, Page } from './operation.ts'
import { Access, listQuery, pageOf, UserFactors } from './schema.ts'
import { pageOfWalk } from './walk.ts'

/** What a user can lack, as a list of them is asked for: a factor, or what the policy requires of them. */
export const lacking = ['second-factor', 'passkey', 'policy'] as const

/** What is read for a user takes as long as so many rows. */
const costOfUser = 5

/** What an operator asks about the factors of users, and about who may use a client. */
export function accessOperations({ accessRules }: Needs<'declared'>['declared']) {
  /** Returns the factors of a user, and what they lack: the first finding of the rules, now or soon. */
  const describeFactors = async ({ deps, server }: Call, { id, username }: User) => {
    const { store, config, clock } = deps
    const [{ passkeys, ...others }, groups] = await Promise.all([
      countFactors({ store, service: server.service() }, id),
      groupsOf(store, id),
    ])
    const factors = { ...others, passkey: passkeys > 0 }
    const findings = accessRules.map((ruleOf) => ruleOf(config).judge({ groups, factors, now: clock() }))
    const { kind, from } = findings.find(({ lacks }) => lacks !== undefined)?.lacks ?? {}
    return {
      lacks: {
        'second-factor': !factors.codes && !factors.passkey,
        passkey: !factors.passkey,
        policy: kind !== undefined,
      },
      described: {
        sub: id,
        username,
        ...others,
        passkeys,
        ...omitUndefined({ lacks: kind, required_from: from }),
      },
    }
  }

  const listFactors: Operation = {
    operationId: 'listFactors',
    area: 'users',
    kind: 'list',
    url: '/factors',
    delegates: false,
    summary: 'List the factors of the users who are not locked, and who lacks one that the policy requires',
    response: pageOf(UserFactors, 'Factors'),
    querystring: listQuery({
      lacks: Type.Optional(
        Type.Union(
          lacking.map((name) => Type.Literal(name)),
          { description: 'Only users without a second factor, without a passkey, or short of the policy.' },
        ),
      ),
    }),
    perform: (call) => {
      const lacks = lacking.find((name) => name === call.query('lacks'))
      const read = async ({ size, after }: Page) => {
        const from = after === undefined ? undefined : readCursor(cursorOf(after))
        const rows = await call.deps.store.page('user', { limit: size, after: from, only: 'unlocked' })
        const keyed = rows.map(({ row, seq }) => ({ row, key: `${seq}` }))
        const next = rows.length < size ? undefined : keyed.at(-1)?.key
        return { rows: keyed, next, looked: rows.length * costOfUser }
      }
      return pageOfWalk(call, read, async (user: User) => {
        const found = await describeFactors(call, user)
        return lacks === undefined || found.lacks[lacks] ? found.described : undefined
      })
    },
  }

  const readAccess: Operation = {
    operationId: 'readAccess',
    area: 'audit',
    kind: 'read',
    url: '/users/:sub/access/:client_id',
    delegates: false,
    summary: 'Read which rules let a user use a client, or do not, now or at an earlier time',
    response: Access,
    querystring: Type.Object(
      {
        at: Type.Optional(
          Type.String({
            pattern: '^\\d{1,10}$',
            description: 'The time, in seconds since 1970, as the audit log has it; absent: now.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    perform: async (call) => ({ body: await explainAccess(call, accessRules) }),
  }

  return { listFactors, readAccess }
}
