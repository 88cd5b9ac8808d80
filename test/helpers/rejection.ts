import { setTimeout } from 'node:timers/promises'
import { type ErrorDetail, OAuthError } from '../../src/domain/errors.ts'
import type { Rejection } from '../../src/domain/model.ts'
import type { TestServer } from './server.ts'

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

/** Returns the record of a rejected request, which is stored after its response; pages do not say all of it. */
export async function recordOf({ deps }: TestServer, { headers }: { headers: Headers }): Promise<Rejection> {
  const id = headers.get('x-request-id')
  if (id === null) throw new Error('the response has no request id')
  for (;;) {
    const record = await deps.store.find('rejection', id)
    if (record !== undefined) return record
    await setTimeout(10)
  }
}
