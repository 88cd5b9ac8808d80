import {
  availableAcrs,
  type Factors,
  lacksAcr,
  multiFactor,
  phishingResistant,
} from '../../domain/authentication-context.ts'
import type { Remedy, UserDenial } from '../../domain/interaction.ts'
import type { Seconds } from '../../domain/model.ts'
import { kinds, type Requirement } from './requirement.ts'

/** The rule that a sign-in violates which is not of the required kind. */
export const policyRule = 'lychgate-sign-in-policy'

/**
 * Returns why a user may not go on with a sign-in by these methods, and what they have to do: the strictest requirement
 * in force counts, and then the next one that will be, for a user who cannot meet it yet.
 */
export function denialOf(
  requirements: readonly Requirement[],
  methods: readonly string[],
  factors: Factors,
  now: Seconds,
): UserDenial | undefined {
  const found = unmet(requirements, methods, now)
  if (found === undefined) return undefined
  const { kind, from } = found
  const acr = acrOf(kind)
  const isAble = availableAcrs(factors).some((name) => acr.values.includes(name))
  const step = isAble ? 'login' : 'enrol'
  if (from !== undefined && step === 'login') return undefined
  const why = `the policy requires a sign-in with a ${kind} (signInPolicy, lychgate client set --required-sign-in)`
  return { rule: policyRule, why, remedy: { step, acr, kind, ...(from !== undefined && { from }) } }
}

/** Returns the strictest requirement in force that a sign-in does not meet, or else the first that it will not. */
export function unmet(
  requirements: readonly Requirement[],
  methods: readonly string[],
  now: Seconds,
): { readonly kind: Remedy['kind']; readonly from?: Seconds } | undefined {
  const lacking = requirements.flatMap(({ kind, from = 0 }) =>
    kind !== 'password' && lacksAcr(methods, acrOf(kind)) ? [{ kind, from }] : [],
  )
  const due = lacking.filter(({ from }) => from <= now).toSorted(byStrictness)
  if (due[0] !== undefined) return { kind: due[0].kind }
  return lacking.toSorted((one, other) => one.from - other.from || byStrictness(one, other))[0]
}

/** The strictest first. */
export function byStrictness(one: Requirement, other: Requirement): number {
  return kinds.indexOf(other.kind) - kinds.indexOf(one.kind)
}

/** Returns the class of a sign-in of this kind. */
function acrOf(kind: Remedy['kind']): Remedy['acr'] {
  return { values: [kind === 'passkey' ? phishingResistant : multiFactor], essential: true }
}
