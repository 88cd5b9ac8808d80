import { type FindKind, type Store, StoreUnavailable } from '../storage/store.ts'
import type { Metrics } from './metrics.ts'

/** The same store, with every call of a request measured. */
export function measuredStore(store: Store, metrics: Metrics): Store {
  const measured = async <T>(operation: string, kind: string, call: Promise<T>): Promise<T> => {
    const start = performance.now()
    try {
      return await call
    } catch (error) {
      if (error instanceof StoreUnavailable) metrics.storeUnavailable.inc()
      throw error
    } finally {
      metrics.storeSeconds.observe({ operation, kind }, (performance.now() - start) / 1000)
    }
  }
  return {
    ...store,
    find: (kind, key) => measured('find', nameOf(kind), store.find(kind, key)),
    transact: (kind, key, decide, ahead) =>
      measured('transact', nameOf(kind), store.transact(kind, key, decide, ahead)),
    write: (...writes) => measured('write', '', store.write(...writes)),
    sweep: (bounds) => measured('sweep', '', store.sweep(bounds)),
  }
}

function nameOf(kind: FindKind): string {
  return typeof kind === 'object' ? kind.name : kind
}
