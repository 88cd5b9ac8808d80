import { channel } from 'node:diagnostics_channel'
import type { ErrorDetail } from './errors.ts'

/** A rule that a request satisfied: the counterpart of an `OAuthError`, in the same terms and without secrets. */
export interface PassedCheck {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: ErrorDetail['stored']
  readonly received?: ErrorDetail['received']
}

/** Receives every passed check. */
export const passedChecks = channel('lychgate:rule')

/** Publishes a passed check. Costs nothing without subscribers. */
export function recordCheck(
  rule: string,
  found: string,
  stored?: ErrorDetail['stored'],
  received?: ErrorDetail['received'],
): void {
  if (passedChecks.hasSubscribers)
    passedChecks.publish({ rule, found, stored, received } satisfies PassedCheck)
}
