/**
 * A breaker for each client: one that does not respond is left alone for a while, so that it takes no places that
 * deliveries to others need. It is stored, so all nodes know it, also after a restart.
 */
import { accept, type Decision, put, remove } from '../../domain/decision.ts'
import type { Seconds } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'

/** How often in succession a client did not respond, and until when nothing more is sent to it. */
export interface LogoutPause {
  readonly clientId: string
  readonly failures: number
  readonly until: Seconds
}

/** After so many failures in succession. */
export const failuresBeforePause = 3
const firstPauseSeconds: Seconds = 10
const longestPauseSeconds: Seconds = 300
/** Longer than a try takes. */
const probeSeconds: Seconds = 15
/** A pause of a client that was sent nothing since is forgotten. */
const keepSeconds: Seconds = 3600
/** A delivery to a client that does not respond has failed when its session ended so long ago. */
export const longestWaitSeconds: Seconds = 3600

export const logoutPauseKind = recordKind<LogoutPause>('logoutPause', {
  id: ({ clientId }) => clientId,
  clientId: ({ clientId }) => clientId,
  madeAt: ({ until }) => until,
  expiresAt: ({ until }) => until + keepSeconds,
})

/** Whether the client did not respond lately, so that one delivery at a time is tried. */
export function isSilent(pause: LogoutPause | undefined): pause is LogoutPause {
  return pause !== undefined && pause.failures >= failuresBeforePause
}

/** Returns whether a node may send something to the client. After a pause one node sends one delivery. */
export function takeTurn(pause: LogoutPause | undefined, now: Seconds): Decision<boolean> {
  if (!isSilent(pause)) return accept(true)
  if (now < pause.until) return accept(false)
  return accept(true, put(logoutPauseKind, { ...pause, until: now + probeSeconds }))
}

/** Notes whether the client responded, whatever it responded. Returns what is stored then. */
export function noteResponse(
  pause: LogoutPause | undefined,
  clientId: string,
  responded: boolean,
  now: Seconds,
): Decision<LogoutPause | undefined> {
  if (responded) {
    if (pause === undefined) return accept(undefined)
    return accept(undefined, remove(logoutPauseKind, clientId))
  }
  const failures = (pause?.failures ?? 0) + 1
  const growth = 2 ** Math.min(failures - failuresBeforePause, 10)
  const length =
    failures < failuresBeforePause ? 0 : Math.min(firstPauseSeconds * growth, longestPauseSeconds)
  const noted = { clientId, failures, until: now + length }
  return accept(noted, put(logoutPauseKind, noted))
}
