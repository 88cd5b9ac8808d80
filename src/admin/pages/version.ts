import { hash } from 'node:crypto'
import { check } from '../../domain/check.ts'
import { type Parameters, single } from '../../domain/parameters.ts'

/** The rule that a form violates when another change was made after it was opened. */
export const outdatedForm = 'lychgate-admin-form-version'

/** The hidden field by which a form says what it showed. One that comes back for a correction keeps its version. */
export function versionField(form: Parameters, shown: object): { readonly version: string } {
  return { version: single(form, 'version') ?? versionOf(shown) }
}

/**
 * Checks that a form showed the current values. Call it in the transaction of the change.
 * @throws {OAuthError} `conflict`; the page then shows the current values.
 */
export function assertVersion(form: Parameters, current: object): void {
  check(
    single(form, 'version') === versionOf(current),
    outdatedForm,
    'conflict',
    'another change was made after the form was opened; nothing was saved',
    { status: 409 },
  )
}

function versionOf(shown: object): string {
  return hash('sha256', JSON.stringify(shown), 'base64url')
}
