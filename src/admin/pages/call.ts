import { OAuthError } from '../../domain/errors.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { type Call, definitionsBy, type Operation, previewBy } from '../operations/operation.ts'
import type { AdminVisit } from './admin-page.ts'

/**
 * Returns the call of an operation by an administrator at a page, about what `params` name.
 * @param assertSeen Checks that the form showed the record as it is.
 */
function callOf<Body>(
  deps: PageDeps,
  { user, context, store, request, requireAdministrator }: AdminVisit,
  params: Readonly<Record<string, string>>,
  body?: Body,
  assertSeen: (record: object) => void = () => undefined,
  query: Readonly<Record<string, string>> = {},
): Call<Body> {
  return {
    deps,
    server: {
      openKeys: async () => deps.keys,
      openDocuments: () => Promise.reject(new Error('no page fetches a document')),
      service: () => deps.service,
      definitions: () => definitionsBy(deps),
      preview: previewBy(request.server),
      settings: deps.settings,
    },
    caller: { kind: 'user', sub: user.id },
    context,
    body: body as Body, // absent where the operation has none
    isDelegate: false,
    administrators: deps.config.admin.group,
    store,
    param: (name) => params[name] ?? '',
    query: (name) => query[name],
    address: '',
    assertSeen: (_, record) => assertSeen(record),
    reach: async () => undefined,
    requireMay: () => [requireAdministrator()],
    log: request.log,
  }
}

/**
 * Performs an operation for an administrator at a page, and returns the body of its response.
 * @param assertSeen As for `callOf`.
 */
export async function performAt<Body>(
  deps: PageDeps,
  visit: AdminVisit,
  operation: Operation<Body>,
  params: Readonly<Record<string, string>>,
  body?: Body,
  assertSeen?: (record: object) => void,
  query?: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, unknown>>> {
  const outcome = await operation.perform(callOf(deps, visit, params, body, assertSeen, query), () => [])
  return { ...outcome?.body }
}

/** Returns whether something was there to do it to. */
export async function wasFound(doing: Promise<unknown>): Promise<boolean> {
  try {
    await doing
    return true
  } catch (error) {
    if (error instanceof OAuthError && error.status === 404) return false
    throw error
  }
}
