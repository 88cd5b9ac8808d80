import type { Condition, Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client, Session } from '../../domain/model.ts'
import type { Plugin } from '../../feature/deps.ts'
import { readGroupsOf } from '../delegation.ts'
import { factorsOf } from '../factors.ts'
import { groupsOf } from '../groups.ts'
import type { Requirement } from './requirement.ts'
import { requirementsBy } from './requirements.ts'
import { denialOf, policyRule, unmet } from './rules.ts'

/**
 * Requires a kind of sign-in: of every user, of the members of groups, and at clients. It is checked wherever a session
 * leads on: before consent, before every code, at the pages for administrators, and where tokens are exchanged. The
 * groups are read again in the transaction that inserts a grant.
 */
export const signInPolicy: Plugin<'config' | 'store' | 'service' | 'clock'> = async (app, deps) => {
  const { config, store, clock } = deps
  const required = requirementsBy(config)

  app.seams.userChecks.add((client, signIn) => {
    const atClient = required.at(client)
    return atClient.length === 0 && !required.ofGroups ? undefined : check(atClient, signIn)
  })

  const check = async (
    atClient: readonly Requirement[],
    { userId, methods }: Pick<Session, 'userId' | 'methods'>,
  ) => {
    const all = required.ofGroups ? [...atClient, ...required.of(await groupsOf(store, userId))] : atClient
    if (unmet(all, methods, clock()) === undefined) return undefined
    return denialOf(all, methods, await factorsOf(deps, userId), clock())
  }

  /** Requires in a transaction that the sign-in suffices, with the groups that the user is in then. */
  const requireSignIn = (
    client: Client,
    { userId = '', methods }: { readonly userId?: string; readonly methods: readonly string[] },
    error?: Condition['error'],
  ): Write => ({
    op: 'require',
    condition: {
      rule: policyRule,
      why: 'the policy of sign-ins requires another one',
      *holds(read) {
        const ofUser = required.ofGroups ? required.of(yield* readGroupsOf(read, userId)) : []
        const found = unmet([...required.at(client), ...ofUser], methods, clock())
        return found === undefined || found.from !== undefined
      },
      ...(error && { error }),
    },
  })

  app.seams.approvals.add(({ client, session }) =>
    required.ofGroups ? { writes: [requireSignIn(client, session)] } : undefined,
  )

  // The subject token is of a sign-in for another client. Grants that a user approved stay as they are.
  app.seams.exchanges.add((grant, client) =>
    required.at(client).length === 0 && !required.ofGroups
      ? undefined
      : [requireSignIn(client, grant, unacceptable)],
  )
}

function unacceptable(): OAuthError {
  return new OAuthError('invalid_request', 'the user of subject_token has to sign in with another factor', {
    rule: policyRule,
  })
}
