import { OAuthError } from '../domain/errors.ts'

/** A token cannot be verified now: the request is rejected, and not served as anonymous either. */
export function cannotVerify(cause: unknown): OAuthError {
  return new OAuthError(
    'temporarily_unavailable',
    'the access token cannot be verified now; try again shortly',
    { rule: 'lychgate-token-verifiable', headers: { 'retry-after': '1' }, cause },
  )
}
