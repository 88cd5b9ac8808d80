import type { Condition, Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { canonicalGroupName, type Group } from '../../domain/group.ts'
import type { Client, Session } from '../../domain/model.ts'
import type { Plugin } from '../../feature/deps.ts'
import { readGroupsOf } from '../delegation.ts'
import { factorsOf } from '../factors.ts'
import { groupsOf } from '../groups.ts'
import { parseRequirement, type Requirement } from './requirement.ts'
import { denialOf, policyRule, unmet } from './rules.ts'

/**
 * Requires a kind of sign-in: of every user, of the members of groups, and at clients. It is checked wherever a session
 * leads on: before consent, before every code, at the pages for administrators, and where tokens are exchanged. The
 * groups are read again in the transaction that inserts a grant.
 */
export const signInPolicy: Plugin<'config' | 'store' | 'service' | 'clock'> = async (app, deps) => {
  const { config, store, clock } = deps
  const { require: ofAll, groups } = config.signInPolicy
  const always = requirementsIn(ofAll)
  const ofGroups = new Map(
    groups.map(({ group, require }) => [canonicalGroupName(group), requirementsIn(require)]),
  )
  const requiredOf = (all: readonly Group[]) =>
    all.flatMap(({ name }) => ofGroups.get(canonicalGroupName(name)) ?? [])
  const withoutGroups = (client: Client | undefined) => [
    ...always,
    ...requirementsIn(client?.extra?.['required_sign_in']),
  ]

  app.seams.userChecks.add((client, signIn) => {
    const known = withoutGroups(client)
    return known.length === 0 && ofGroups.size === 0 ? undefined : check(known, signIn)
  })

  const check = async (
    known: readonly Requirement[],
    { userId, methods }: Pick<Session, 'userId' | 'methods'>,
  ) => {
    const all = ofGroups.size === 0 ? known : [...known, ...requiredOf(await groupsOf(store, userId))]
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
        const ofUser = ofGroups.size === 0 ? [] : requiredOf(yield* readGroupsOf(read, userId))
        const found = unmet([...withoutGroups(client), ...ofUser], methods, clock())
        return found === undefined || found.from !== undefined
      },
      ...(error && { error }),
    },
  })

  app.seams.approvals.add(({ client, session }) =>
    ofGroups.size === 0 ? undefined : { writes: [requireSignIn(client, session)] },
  )

  // The subject token is of a sign-in for another client. Grants that a user approved stay as they are.
  app.seams.exchanges.add((grant, client) =>
    withoutGroups(client).length === 0 && ofGroups.size === 0
      ? undefined
      : [requireSignIn(client, grant, unacceptable)],
  )
}

function requirementsIn(value: unknown): readonly Requirement[] {
  const requirement = typeof value === 'string' ? parseRequirement(value) : undefined
  return requirement === undefined || requirement.kind === 'password' ? [] : [requirement]
}

function unacceptable(): OAuthError {
  return new OAuthError('invalid_request', 'the user of subject_token has to sign in with another factor', {
    rule: policyRule,
  })
}
