import { StoreUnavailable } from '../store.ts'

/** Runs work about one key after the other, and about different keys at once. */
export type KeyQueue = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * A queue for the decisions of this process: those about one key would wait for each other in the database, each with
 * a connection in its hands, until none is left. Here they wait without one.
 * @param mostMilliseconds Work whose turn comes later than this is rejected with StoreUnavailable instead of run.
 */
export function createKeyQueue(mostMilliseconds: number): KeyQueue {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const before = last.get(key)
    const own = before === undefined ? work() : after(before, work, mostMilliseconds)
    // The next one waits for the end, whatever the outcome.
    const settled = own.then(nothing, nothing)
    last.set(key, settled)
    void settled.then(() => last.get(key) === settled && last.delete(key))
    return own
  }
}

async function after<T>(
  before: Promise<unknown>,
  work: () => Promise<T>,
  mostMilliseconds: number,
): Promise<T> {
  const since = performance.now()
  await before
  if (performance.now() - since < mostMilliseconds) return work()
  throw new StoreUnavailable(new Error('too many decisions about this key were waiting'))
}

function nothing(): void {}
