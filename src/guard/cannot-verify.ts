import { OAuthError } from '../domain/errors.ts'

/** Nobody can say now what a token is worth: nobody is let in, and nobody becomes anonymous. */
export function cannotVerify(cause: unknown): OAuthError {
  return new OAuthError(
    'temporarily_unavailable',
    'the access token cannot be verified now; try again shortly',
    { rule: 'lychgate-token-verifiable', headers: { 'retry-after': '1' }, cause },
  )
}
