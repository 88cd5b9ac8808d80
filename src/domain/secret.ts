import { hash, timingSafeEqual } from 'node:crypto'
import type { Hash } from './model.ts'

/** Random secrets by kind; their prefix makes a leak scannable. */
export const secretPrefix = {
  clientSecret: 'lyc_secret_',
  registration: 'lyc_registration_',
  initialToken: 'lyc_initial_',
  personalToken: 'lyc_personal_',
  session: 'lyc_session_',
  browser: 'lyc_browser_',
  link: 'lyc_link_',
  held: 'lyc_held_',
  sealing: 'lyc_sealing_',
} as const

/** Entropy of every secret: 256 bits, RFC 6749 §10.10. */
export const secretBytes = 32

/** The text of a secret of this kind from `secretBytes` fresh random bytes. */
export function mintSecret(kind: keyof typeof secretPrefix, fresh: Buffer): string {
  return secretPrefix[kind] + fresh.toString('base64url')
}

/**
 * The form in which a secret is stored, RFC 6749 §10.3. Fast on purpose: these secrets are random, not chosen by
 * users.
 */
export function hashSecret(secret: string): Hash {
  return hash('sha256', secret, 'base64url')
}

/** Whether two texts are equal, where one of them is secret. Constant time. */
export function isSameText(text: string | undefined, expected: string): boolean {
  return text !== undefined && secretMatches(text, hashSecret(expected))
}

/** Whether `secret` is the one that was hashed. Constant time. */
export function secretMatches(secret: string, stored: Hash | undefined): boolean {
  const given = Buffer.from(hashSecret(secret))
  const expected = Buffer.from(stored ?? hashSecret(''))
  return given.length === expected.length && timingSafeEqual(given, expected) && stored !== undefined
}
