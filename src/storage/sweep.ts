import type { Seconds } from '../domain/model.ts'

/** A sweep deletes at most this many rows of each kind: a flood of one starves no other. */
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

/** A grant as the walk meets it. */
export interface WalkedGrant {
  readonly id: Buffer
  readonly expiresAt: Seconds
  readonly revokedAt: Seconds | null
}

/**
 * What to delete of a slice of the grants, at most `room`, how many of those passed are alive, and the key after which
 * the walk goes on.
 */
export function judgeSlice(
  slice: readonly WalkedGrant[],
  now: Seconds,
  room: number,
): { readonly expired: Buffer[]; readonly living: number; readonly after: Buffer } {
  const isExpired = (grant: WalkedGrant) => grant.expiresAt <= now
  const expired = slice.filter(isExpired).map((grant) => grant.id)
  const [lastDeleted, last] = [expired[room - 1], slice.at(-1)?.id]
  const passed =
    lastDeleted === undefined
      ? slice
      : slice.slice(
          0,
          slice.findIndex(({ id }) => id === lastDeleted),
        )
  const living = passed.filter((grant) => !isExpired(grant) && grant.revokedAt === null).length
  if (lastDeleted !== undefined) return { expired: expired.slice(0, room), living, after: lastDeleted }
  return { expired, living, after: slice.length < grantsPerSlice || last === undefined ? walkStart : last }
}

/** How far the walk through the grants has come, and how many living ones it met. */
export interface Walk {
  readonly after: Buffer
  /** Add what a slice was judged to be. */
  pass(verdict: { readonly living: number; readonly after: Buffer }): void
  /** Met by the last walk that came to the end. */
  readonly living: number | undefined
}

/** A walk that begins, and begins again whenever it has come to the end. */
export function beginWalk(): Walk {
  let [after, met] = [walkStart, 0]
  let living: number | undefined
  return {
    get after() {
      return after
    },
    get living() {
      return living
    },
    pass: (verdict) => {
      after = verdict.after
      met += verdict.living
      if (after !== walkStart) return
      living = met
      met = 0
    },
  }
}
