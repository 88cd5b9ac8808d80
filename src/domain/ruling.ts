import { channel } from 'node:diagnostics_channel'
import type { RefusalDetail } from './errors.ts'

/** A rule that was checked and held: the counterpart of a refusal, in the same terms and never with a secret. */
export interface Ruling {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: RefusalDetail['stored']
  readonly received?: RefusalDetail['received']
}

/** Hears of every rule that was checked and held. */
export const rulingChannel = channel('lychgate:rule')

/** Tells whoever listens that a rule held; nothing is made or said while nobody does. */
export function held(
  rule: string,
  found: string,
  stored?: RefusalDetail['stored'],
  received?: RefusalDetail['received'],
): void {
  if (rulingChannel.hasSubscribers) rulingChannel.publish({ rule, found, stored, received } satisfies Ruling)
}
