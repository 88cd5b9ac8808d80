import { allowedGroupsOf } from '../../domain/group.ts'
import type { ClaimsUse } from '../../feature/contributions.ts'
import type { Plugin } from '../../feature/deps.ts'
import { groupsOf } from '../groups.ts'
import { denial, groupClaims, requireMember, wantsGroups } from './rules.ts'
import { applyRules, type ClaimRule, claimRulesOf } from './token-claims.ts'

/**
 * Lets only the members of some groups use a client, if an operator says so: checked before consent, before every
 * code, and in the transaction of every token request for a grant, which it ends. Adds the groups of a user to claims
 * by the scope `groups`, and what the rules of the client say. Memberships are read each time, so that the next
 * refresh and the next call of UserInfo have every change.
 */
export const groups: Plugin<'config' | 'store'> = async (app, { config, store }) => {
  const { contact, mostInClaim } = config.groups

  app.seams.userChecks.add((client, { userId }) => {
    const allowed = client && allowedGroupsOf(client)
    if (client === undefined || allowed === undefined) return undefined
    const named = contact || client.contacts[0]
    const denied = { ...denial, ...(named !== undefined && { contact: named }) }
    return groupsOf(store, userId).then((all) =>
      all.some(({ id }) => allowed.includes(id)) ? undefined : denied,
    )
  })

  app.seams.tokenConditions.add(({ userId }, client) => {
    const allowed = allowedGroupsOf(client)
    if (allowed === undefined || userId === undefined) return undefined
    return [{ op: 'require', condition: requireMember(allowed, userId) }]
  })

  app.seams.grantedClaims.add((use) => {
    const rules = use.client === undefined ? [] : claimRulesOf(use.client, use.target)
    const wantsNames = wantsGroups(use)
    return rules.length === 0 && !wantsNames ? undefined : claimsFor(use, rules, wantsNames)
  })

  async function claimsFor(use: ClaimsUse, rules: readonly ClaimRule[], wantsNames: boolean) {
    const all = await groupsOf(store, use.userId)
    const copies = rules.some(({ copy }) => copy !== undefined)
    const user = copies ? await store.find('user', use.userId) : undefined
    const claims = (user && app.seams.userClaims.collect(user)) ?? {}
    const known = { groups: all, claims, scope: use.scope }
    const namesAs = (claim?: string) => groupClaims(all, mostInClaim, claim)
    return { ...(wantsNames && namesAs()), ...applyRules(rules, use.target, known, namesAs) }
  }
}
