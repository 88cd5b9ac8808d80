import { type ErrorDetail, OAuthError } from '../../src/domain/errors.ts'

/** Returns the code, the description and the detail of the `OAuthError` that `work` throws. */
export function rejectionOf(
  work: () => unknown,
): { readonly code: string; readonly description: string } & ErrorDetail {
  try {
    work()
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return { code: error.code, description: error.message, ...error.detail }
  }
  throw new Error('nothing was rejected')
}
