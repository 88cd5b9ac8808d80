import type { Reading, RecordReads } from '../domain/decision.ts'
import type { Store } from '../storage/store.ts'

/** Runs a reading outside a transaction, so that a rule of transactions need not be written twice. */
export async function readOutside<T>(
  store: Pick<Store, 'find' | 'listOf' | 'listFrom' | 'listKind'>,
  reading: (read: RecordReads) => Reading<T>,
): Promise<T> {
  const wait = function* (result: Promise<unknown>): Reading<unknown> {
    return yield result
  }
  // `as`: each waits for what the store has of the same kind.
  const read = {
    find: (kind: 'user', key: string) => wait(store.find(kind, key)),
    listOf: (kind: 'session', userId: string) => wait(store.listOf(kind, userId)),
    listFrom: (...page: Parameters<Store['listFrom']>) => wait(store.listFrom(...page)),
    listKind: (...page: Parameters<Store['listKind']>) => wait(store.listKind(...page)),
  } as unknown as RecordReads
  const steps = reading(read)
  let step = steps.next()
  while (step.done !== true) step = steps.next(await step.value)
  return step.value
}
