import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { groupsOf } from '../users/groups.ts'
import { groupClaims, wantsGroups } from './rules.ts'

/**
 * Tells clients about the groups of a user, by the scope `groups`. Memberships are read for each response, so that the
 * next refresh and the next call of UserInfo have every change.
 */
export const groups = fp<AppDeps>(
  async (app, { config, store }) => {
    app.addGrantedClaims((use) =>
      wantsGroups(use)
        ? groupsOf(store, use.userId).then((all) => groupClaims(all, config.groups.mostInClaim))
        : undefined,
    )
  },
  { name: 'groups', dependencies: ['user-claims'] },
)
