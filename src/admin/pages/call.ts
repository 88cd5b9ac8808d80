import type { AppDeps } from '../../feature/deps.ts'
import type { Call } from '../operations/operation.ts'
import type { AdminVisit } from './admin-page.ts'

/**
 * Returns the call of an operation by an administrator at a page, about what `params` name.
 * @param assertSeen Checks that the form showed the record as it is.
 */
export function callOf<Body>(
  deps: AppDeps,
  { user, context, store, request }: AdminVisit,
  params: Readonly<Record<string, string>>,
  body?: Body,
  assertSeen: (record: object) => void = () => undefined,
): Call<Body> {
  return {
    deps,
    caller: { kind: 'user', sub: user.id },
    context,
    body: body as Body, // absent where the operation has none
    isDelegate: false,
    administrators: deps.config.admin.group,
    store,
    param: (name) => params[name] ?? '',
    query: () => undefined,
    address: '',
    assertSeen: (_, record) => assertSeen(record),
    reach: async () => undefined,
    requireMay: () => [],
    log: request.log,
  }
}
