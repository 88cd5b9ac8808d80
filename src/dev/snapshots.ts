import type { Seconds } from '../domain/model.ts'
import type { StoreContents } from '../storage/store.ts'
import type { ClockChange } from './clock.ts'
import type { DevDeps } from './plugin.ts'

/** All a development server knew at one instant. */
export interface Snapshot {
  readonly takenAt: Seconds
  readonly contents: StoreContents
  /** Makes the clock what it was: as far from the machine's, or where it stood. */
  readonly time: ClockChange
}

/** Takes a snapshot of a server, of what it has stored and of its time. */
export async function takeSnapshot({ store, clock }: Pick<DevDeps, 'store' | 'clock'>): Promise<Snapshot> {
  const contents = await store.contents()
  const takenAt = clock()
  const time = clock.isFrozen ? { set: takenAt, freeze: true } : { reset: true, advance: clock.offsetSeconds }
  return { takenAt, contents, time }
}

/**
 * Makes a server what it was. The time goes first: keys must not be found too old or too young in the meantime.
 * @param keepTime The clock stays where it is.
 */
export async function restoreSnapshot(
  { contents, time }: Snapshot,
  { store, clock, keys }: Pick<DevDeps, 'store' | 'clock' | 'keys'>,
  keepTime: boolean,
): Promise<void> {
  if (!keepTime) await clock.move(time)
  await store.replace(contents)
  await keys.reload()
}

/** What there is in it, as a user would count. */
export function countsOf({ contents }: Snapshot) {
  const count = (table: string) => contents[table]?.length ?? 0
  return {
    people: count('users'),
    clients: count('clients'),
    sessions: count('sessions'),
    approvals: count('grants'),
  }
}

/** Where the issuer's own URL stands as the name of its API. */
const columnsOfResources: readonly (readonly [table: string, column: string])[] = [
  ['grants', 'resource'],
  ['records', 'body'],
  ['clients', 'metadata'],
]

/** The same contents for another issuer: what was agreed for the API of the one is agreed for that of the other. */
export function withIssuer(contents: StoreContents, from: string, to: string): StoreContents {
  const name = new RegExp(`(?<![^\\s"])${from.replaceAll(/[.*+?^$()[\]{}|\\/]/g, '\\$&')}(?![^\\s"])`, 'g')
  const changed: Record<string, StoreContents[string]> = { ...contents }
  for (const [table, column] of columnsOfResources) {
    changed[table] = (contents[table] ?? []).map((row) => {
      const text = row[column]
      return typeof text === 'string' ? { ...row, [column]: text.replaceAll(name, () => to) } : row
    })
  }
  return changed
}
