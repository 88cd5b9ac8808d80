import type { Config } from '../config/schema.ts'
import { knownBrowserSeconds } from '../users/rules/known-browser.ts'
import type { KeyPolicy } from './rules.ts'

/**
 * The lives of keys under this configuration: a key verifies until the last thing it signed or sealed is worth
 * nothing. An ID Token stays a hint for as long as the login it tells of may last (RP-Initiated Logout §2 has it
 * accepted after its `exp`). A code or refresh token that was used stays evidence, RFC 9700 §4.14.2, for as long as
 * anything of its grant lives.
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
  // A server may learn of the successor that much later, and a client may hold on to the older keys that much longer.
  const lag = keys.reloadSeconds + lifetimes.metadataCacheSeconds
  return {
    rotationSeconds: keys.rotationSeconds,
    publishAheadSeconds: keys.publishAheadSeconds,
    overlapSeconds: {
      signing: Math.max(lifetimes.idTokenSeconds, accessTokenSeconds, lifetimes.sessionAbsoluteSeconds) + lag,
      handle: Math.max(grantSeconds, knownBrowserSeconds) + lag,
    },
  }
}
