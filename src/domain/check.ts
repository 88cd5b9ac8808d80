import { channel } from 'node:diagnostics_channel'
import { type ErrorDetail, OAuthError, type OAuthErrorCode } from './errors.ts'

/** A rule that a request satisfied: the counterpart of an `OAuthError`, in the same terms and without secrets. */
export interface PassedCheck {
  /** An id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  /** What was found, in a few words. */
  readonly found: string
  readonly stored?: ErrorDetail['stored']
  readonly received?: ErrorDetail['received']
}

/** Details of a check, in addition to its rule. */
export interface CheckDetail extends Omit<ErrorDetail, 'rule'> {
  /** What a passed check found, in a few words. Absent: the rule's name. */
  readonly passed?: string
}

/** Receives every passed check. */
export const passedChecks = channel('lychgate:rule')

/**
 * Checks one rule of a request. Publishes a passed check, which costs nothing without subscribers.
 * @param rule An id of the requirement ledger, or `lychgate-…` for a rule of this server alone.
 * @param description The `error_description` of a failed check, see `OAuthError`.
 * @throws {OAuthError} of this code unless `ok`.
 */
export function check(
  ok: boolean,
  rule: string,
  code: OAuthErrorCode,
  description: string,
  detail: CheckDetail = {},
): asserts ok {
  if (!ok) {
    const { passed: _, ...rest } = detail
    throw new OAuthError(code, description, { rule, ...rest })
  }
  if (passedChecks.hasSubscribers) recordCheck(rule, detail.passed, detail.stored, detail.received)
}

/** Publishes a check that passed where there is no error to throw: a choice between two valid forms, say. */
export function recordCheck(
  rule: string,
  found: string = nameOf(rule),
  stored?: ErrorDetail['stored'],
  received?: ErrorDetail['received'],
): void {
  if (passedChecks.hasSubscribers)
    passedChecks.publish({ rule, found, stored, received } satisfies PassedCheck)
}

/** `rfc7636-4.5-verifier-required` as `verifier required`. */
function nameOf(rule: string): string {
  return rule.replace(/^(?:oidc-)?[a-z]+(?:\d+[a-z]*)?-(?:[\dA-Z][\d.]*-)?/, '').replaceAll('-', ' ')
}
