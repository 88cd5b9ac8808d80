import { channel } from 'node:diagnostics_channel'
import type { ErrorDetail } from './errors.ts'

/** A rule that was checked and held: the counterpart of a rejection, in the same terms and never with a secret. */
export interface PassedCheck {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: ErrorDetail['stored']
  readonly received?: ErrorDetail['received']
}

/** Hears of every rule that was checked and held. */
export const passedChecks = channel('lychgate:rule')

/** Tells whoever listens that a rule held; nothing is made or said while nobody does. */
export function recordCheck(
  rule: string,
  found: string,
  stored?: ErrorDetail['stored'],
  received?: ErrorDetail['received'],
): void {
  if (passedChecks.hasSubscribers)
    passedChecks.publish({ rule, found, stored, received } satisfies PassedCheck)
}
