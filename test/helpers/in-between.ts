import type { Test } from 'tap'
import type { Write } from '../../src/domain/decision.ts'
import type { Store } from '../../src/storage/store.ts'

/** Makes a change in the middle of a request: after what is read for it, and before its transaction. */
export async function inBetween<T>(
  t: Test,
  store: Store,
  change: () => Promise<unknown>,
  act: () => Promise<T>,
): Promise<T> {
  const { transact, write } = store
  let isDone = false
  const first = async () => {
    if (isDone) return
    isDone = true
    await change()
  }
  Object.assign(store, {
    transact: async (...[kind, key, decide]: Parameters<typeof transact<'user', unknown>>) => {
      await first()
      return transact(kind, key, decide)
    },
    write: async (...writes: readonly Write[]) => {
      // The records of earlier requests that were rejected are written a moment after them.
      if (!writes.every((it) => it.op === 'insert' && it.kind === 'rejection')) await first()
      return write(...writes)
    },
  })
  t.teardown(() => Object.assign(store, { transact, write }))
  const result = await act()
  Object.assign(store, { transact, write })
  t.ok(isDone, 'the change was made in between')
  return result
}
