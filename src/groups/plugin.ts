import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { allowedGroupsOf } from '../domain/group.ts'
import { groupsOf } from '../users/groups.ts'
import { denial, groupClaims, requireMember, wantsGroups } from './rules.ts'

/**
 * Lets only the members of some groups use a client, if an operator says so: checked before consent, before every code,
 * and in the transaction of every token request for a grant, which it ends. Tells clients about the groups of a user, by
 * the scope `groups`. Memberships are read each time, so that the next refresh and the next call of UserInfo have every
 * change.
 */
export const groups = fp<AppDeps>(
  async (app, { config, store }) => {
    const { contact, mostInClaim } = config.groups

    app.onUserKnown((client, userId) => {
      const allowed = allowedGroupsOf(client)
      if (allowed === undefined) return undefined
      const named = contact || client.contacts[0]
      const denied = { ...denial, ...(named !== undefined && { contact: named }) }
      return groupsOf(store, userId).then((all) =>
        all.some(({ id }) => allowed.includes(id)) ? undefined : denied,
      )
    })

    app.addTokenConditions(({ userId }, client) => {
      const allowed = allowedGroupsOf(client)
      if (allowed === undefined || userId === undefined) return []
      return [{ op: 'require', condition: requireMember(allowed, userId) }]
    })

    app.addGrantedClaims((use) =>
      wantsGroups(use) ? groupsOf(store, use.userId).then((all) => groupClaims(all, mostInClaim)) : undefined,
    )
  },
  { name: 'groups', dependencies: ['user-claims', 'authorization-requests', 'grant-types'] },
)
