import type { Config } from '../../config/schema.ts'
import type { AccessRule } from '../../domain/access.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import { canonicalGroupName, type Group } from '../../domain/group.ts'
import type { Client } from '../../domain/model.ts'
import { isoInstant } from '../../system/system.ts'
import { parseRequirement, type Requirement } from './requirement.ts'
import { byStrictness, policyRule, unmet } from './rules.ts'

/** What the settings of a server and its clients require. */
export interface Requirements {
  /** Whether it depends on the groups of a user. */
  readonly ofGroups: boolean
  /** Returns what every user has to meet at a client, or without one. */
  readonly at: (client: Client | undefined) => readonly Requirement[]
  /** Returns what the members of these groups have to meet in addition. */
  readonly of: (groups: readonly Group[]) => readonly Requirement[]
}

/** Returns what is required by these settings. */
export function requirementsBy({ signInPolicy }: Pick<Config, 'signInPolicy'>): Requirements {
  const always = requirementsIn(signInPolicy.require)
  const byGroup = new Map(
    signInPolicy.groups.map(({ group, require }) => [canonicalGroupName(group), requirementsIn(require)]),
  )
  return {
    ofGroups: byGroup.size > 0,
    at: (client) => [...always, ...requirementsIn(client?.extra?.['required_sign_in'])],
    of: (groups) => groups.flatMap(({ name }) => byGroup.get(canonicalGroupName(name)) ?? []),
  }
}

function requirementsIn(value: unknown): readonly Requirement[] {
  const requirement = typeof value === 'string' ? parseRequirement(value) : undefined
  return requirement === undefined || requirement.kind === 'password' ? [] : [requirement]
}

/** Returns the rule for operators: whether the factors of a user suffice. */
export function policyAccess(config: Config): AccessRule {
  const { at, of } = requirementsBy(config)
  return {
    about: 'policy',
    rule: policyRule,
    ofSettings: true,
    member: { name: 'required_sign_in' },
    judge: ({ client, groups, factors, now }) => {
      const required = [...at(client), ...of(groups)]
      // A passkey is one factor or two, as the device checks its user or not: it can.
      const lacks = unmet(required, methodsOf(factors, true), now)
      if (lacks === undefined) {
        const strictest = required.toSorted(byStrictness)[0]?.kind ?? 'password'
        return { passed: true, why: `the policy requires a ${strictest}, and the user has what that takes` }
      }
      const { kind, from } = lacks
      const day = from === undefined ? '' : ` from ${isoInstant(from).slice(0, 10)} on`
      const why = `the policy requires a ${kind}${day}, which the user has not set up; they do so on the way in`
      return { passed: from !== undefined, why, lacks }
    },
  }
}
