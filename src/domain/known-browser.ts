import { timingSafeEqual } from 'node:crypto'
import { hmac } from './hmac.ts'
import type { Passkey, SecondFactor, Seconds, User } from './model.ts'
import { hashSecret } from './secret.ts'

/**
 * Known-browser cookies: a browser in which a user has signed in can prove it, so that throttling other browsers does
 * not lock it out. The cookie authenticates no user.
 */
export interface KnownBrowser {
  readonly userId: string
  /** Names this one cookie, so that a stolen one has its own count. */
  readonly nonce: string
  /** It was made for the current credentials; one without is of an earlier version. */
  readonly isBound: boolean
}

/** How long a browser keeps the cookie after its last sign-in. */
export const knownBrowserSeconds: Seconds = 180 * 86_400

/** The user of a cookie, and the credentials it is bound to. */
export interface KnownBrowserOwner extends Pick<User, 'id' | 'passwordHash'> {
  readonly passkeys?: readonly Pick<Passkey, 'id'>[]
  readonly secondFactor?: Pick<SecondFactor, 'sealedSecret' | 'confirmedAt'> | undefined
}

/**
 * Seals the value of the cookie, valid until the owner's password, passkeys or one-time codes change. `nonce` is 16
 * fresh random bytes, base64url.
 */
export function sealKnownBrowser(owner: KnownBrowserOwner, nonce: string, secret: string): string {
  return `${owner.id}.${nonce}.${tag(boundText(owner, nonce), secret).toString('base64url')}`
}

/** The owner's device of a cookie value, if it was sealed with one of these secrets. */
export function openKnownBrowser(
  value: string | undefined,
  owner: KnownBrowserOwner,
  ...secrets: readonly string[]
): KnownBrowser | undefined {
  const [, userId, nonce, mac] = /^([\w-]{1,64})\.([\w-]{22})\.([\w-]{43})$/.exec(value ?? '') ?? []
  if (userId !== owner.id || nonce === undefined || mac === undefined) return undefined
  const given = Buffer.from(mac, 'base64url')
  const isSealed = (text: string) => secrets.some((secret) => timingSafeEqual(tag(text, secret), given))
  if (isSealed(boundText(owner, nonce))) return { userId, nonce, isBound: true }
  return isSealed(`device ${userId} ${nonce}`) ? { userId, nonce, isBound: false } : undefined
}

function boundText(owner: KnownBrowserOwner, nonce: string): string {
  const { id, passwordHash = '', passkeys = [], secondFactor } = owner
  const factors = passkeys.map((passkey) => passkey.id).sort()
  if (secondFactor?.confirmedAt !== undefined) factors.push(secondFactor.sealedSecret)
  // Without factors the text is that of the version before, whose cookies stay valid.
  return [`device ${id} ${nonce} ${hashSecret(passwordHash)}`, ...factors].join(' ')
}

function tag(text: string, secret: string): Buffer {
  return Buffer.from(hmac(secret, text), 'latin1')
}
