import type { Seconds } from '../domain/model.ts'

/** A sweep deletes at most this many rows of each of the eight kinds that go: a flood of one starves no other. */
export const rowsPerKind = 80

/**
 * Revocations of single access tokens stay a day longer than their tokens: swept by a clock that ran ahead, they would
 * let tokens live again once it is set right.
 */
export const revocationGraceSeconds: Seconds = 86_400

/** Grants are walked in the order of their key, so that the hot table needs no index on its end. */
export const grantsPerSlice = 500
/** The most a sweep walks before it lets requests go on. */
export const slicesPerSweep = 8
/** Before the first key. */
export const walkStart: Buffer = Buffer.alloc(0)

/** What to delete of a slice of the grants, at most `room`, and the key after which the walk goes on. */
export function judgeSlice(
  slice: readonly { readonly id: Buffer; readonly expiresAt: Seconds }[],
  now: Seconds,
  room: number,
): { readonly expired: Buffer[]; readonly after: Buffer } {
  const expired = slice.filter((grant) => grant.expiresAt <= now).map((grant) => grant.id)
  const [lastDeleted, last] = [expired[room - 1], slice.at(-1)?.id]
  if (lastDeleted !== undefined) return { expired: expired.slice(0, room), after: lastDeleted }
  return { expired, after: slice.length < grantsPerSlice || last === undefined ? walkStart : last }
}
