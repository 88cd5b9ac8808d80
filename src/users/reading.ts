import type { FindableKind, Reading, RecordReads } from '../domain/decision.ts'
import type { RecordKind } from '../domain/record.ts'
import type { Store } from '../storage/store.ts'

/** Runs a reading outside a transaction, so that a rule of transactions need not be written twice. */
export async function readOutside<T>(
  store: Pick<Store, 'find' | 'listOf' | 'listFrom' | 'listKind'>,
  reading: (read: RecordReads) => Reading<T>,
): Promise<T> {
  const wait = function* (result: Promise<unknown>): Reading<never> {
    return (yield result) as never // what the store has of the kind
  }
  const read: RecordReads = {
    find: (kind: FindableKind | RecordKind<unknown>, key: string) => wait(store.find(kind, key)),
    listOf: (kind, userId) => wait(store.listOf(kind, userId)),
    listFrom: (kind, page) => wait(store.listFrom(kind, page)),
    listKind: (kind, page) => wait(store.listKind(kind, page)),
  }
  const steps = reading(read)
  let step = steps.next()
  while (step.done !== true) step = steps.next(await step.value)
  return step.value
}
