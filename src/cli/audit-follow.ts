import type { AuditEvent, Seconds } from '../domain/model.ts'
import type { AuditFilter, Store } from '../storage/store.ts'

const pollMilliseconds = 1000
/** A transaction may commit after a later one, and clocks of several servers differ a little. */
const overlapSeconds = 30
const mostAtOnce = 10_000

/** Tells of the events there are, then of new ones as they come, for ever, or until `until` ends. */
export async function follow(
  store: Pick<Store, 'audit'>,
  filter: AuditFilter,
  clock: () => Seconds,
  tell: (events: readonly AuditEvent[]) => Promise<void>,
  until?: AbortSignal,
): Promise<void> {
  const latest = () =>
    store.audit({ ...filter, since: Math.max(filter.since, clock() - overlapSeconds), limit: mostAtOnce })
  const before = await latest()
  const first = await store.audit(filter)
  await tell(first)
  // What the limit left out is not new either.
  let auditWrite: readonly AuditEvent[] = [...first, ...withoutThose(before, first)]
  while (!until?.aborted) {
    await new Promise((resolve) => setTimeout(resolve, pollMilliseconds))
    const events = await latest()
    const newer = withoutThose(events, auditWrite)
    if (newer.length > 0) await tell(newer)
    auditWrite = events
  }
}

/** Events have no number of their own outside of the store: two that are alike count as two. */
function withoutThose(
  events: readonly AuditEvent[],
  auditWrite: readonly AuditEvent[],
): readonly AuditEvent[] {
  const left = new Map<string, number>()
  for (const event of auditWrite.map((one) => JSON.stringify(one)))
    left.set(event, (left.get(event) ?? 0) + 1)
  return events.filter((event) => {
    const key = JSON.stringify(event)
    const count = left.get(key) ?? 0
    left.set(key, count - 1)
    return count <= 0
  })
}
