import type { Seconds } from '../../domain/model.ts'
import { instantOf, isoInstant } from '../../system/system.ts'

/** The kinds of sign-in that can be required, the weakest first. */
export const kinds = ['password', 'second factor', 'passkey'] as const

/** The kind of sign-in that is required, and from when on; absent: it always was. */
export interface Requirement {
  readonly kind: (typeof kinds)[number]
  readonly from?: Seconds
}

/** How a requirement is written. */
export const requirementForm = `${kinds.join(', ')}, or one with a day: passkey from 2027-01-31`

const syntax = /^(?<kind>[a-z]+(?: factor)?)(?: from (?<day>\d{4}-\d\d-\d\d))?$/

/** Parses a requirement, such as `passkey from 2027-01-31`: the day begins at midnight, UTC. */
export function parseRequirement(text: string): Requirement | undefined {
  const { kind: name, day } = syntax.exec(text)?.groups ?? {}
  const kind = kinds.find((one) => one === name)
  if (kind === undefined || day === undefined) return kind && { kind }
  const from = instantOf(`${day}T00:00:00Z`)
  // The 31st of June would be read as the 1st of July.
  return from !== undefined && isoInstant(from).startsWith(day) ? { kind, from } : undefined
}
