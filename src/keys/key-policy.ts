import type { Config } from '../config/schema.ts'
import { offeredAlgorithms } from '../domain/key-term.ts'
import { knownBrowserSeconds } from '../domain/known-browser.ts'
import type { KeyPolicy } from './rules.ts'

/**
 * Returns how long keys live under this configuration: a key verifies until everything it signed or sealed has
 * expired. An ID Token is accepted as a hint as long as its session may last (RP-Initiated Logout §2 accepts it after
 * its `exp`). A used code or refresh token is recognized as long as its grant may live, RFC 9700 §4.14.2.
 */
export function keyPolicy({
  keys,
  lifetimes,
  resources,
}: Pick<Config, 'keys' | 'lifetimes' | 'resources'>): KeyPolicy {
  const accessTokenSeconds = Math.max(
    lifetimes.accessTokenSeconds,
    ...resources.map((resource) => resource.accessTokenSeconds ?? 0),
  )
  const grantSeconds =
    lifetimes.codeSeconds +
    lifetimes.refreshTokenAbsoluteSeconds +
    lifetimes.refreshReuseSeconds +
    accessTokenSeconds
  // A server may learn of the successor that much later, and a client may keep the older keys that much longer.
  const lag = keys.reloadSeconds + lifetimes.metadataCacheSeconds
  return {
    algorithms: [...offeredAlgorithms(keys), 'HS256'],
    rotationSeconds: keys.rotationSeconds,
    publishAheadSeconds: keys.publishAheadSeconds,
    overlapSeconds: {
      signing: Math.max(lifetimes.idTokenSeconds, accessTokenSeconds, lifetimes.sessionAbsoluteSeconds) + lag,
      handle: Math.max(grantSeconds, knownBrowserSeconds) + lag,
    },
  }
}
