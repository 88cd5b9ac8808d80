import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Account, Seconds } from './model.ts'
import { hashSecret } from './secret.ts'

/**
 * Device cookies: a browser that once signed in to an account can prove it, so that throttling others does not lock
 * it out. The cookie authenticates nobody.
 */
export interface Device {
  readonly accountId: string
  /** Names this one cookie, so that a stolen one has its own count. */
  readonly nonce: string
  /** It was made for the current password; one without is of an earlier version. */
  readonly isBound: boolean
}

/** How long a browser keeps the cookie after its last sign-in. */
export const deviceSeconds: Seconds = 180 * 86_400

/** Of whom a cookie is good, and until which password. */
export type DeviceOwner = Pick<Account, 'id' | 'passwordHash'>

/** The cookie's value, good until the owner's password changes. `nonce` is 16 fresh random bytes, base64url. */
export function sealDevice(owner: DeviceOwner, nonce: string, secret: string): string {
  return `${owner.id}.${nonce}.${tag(boundText(owner, nonce), secret).toString('base64url')}`
}

/** The owner's device of a cookie value, if it was sealed with one of these secrets. */
export function openDevice(
  value: string | undefined,
  owner: DeviceOwner,
  ...secrets: readonly string[]
): Device | undefined {
  const [, accountId, nonce, mac] = /^([\w-]{1,64})\.([\w-]{22})\.([\w-]{43})$/.exec(value ?? '') ?? []
  if (accountId !== owner.id || nonce === undefined || mac === undefined) return undefined
  const given = Buffer.from(mac, 'base64url')
  const isSealed = (text: string) => secrets.some((secret) => timingSafeEqual(tag(text, secret), given))
  if (isSealed(boundText(owner, nonce))) return { accountId, nonce, isBound: true }
  return isSealed(`device ${accountId} ${nonce}`) ? { accountId, nonce, isBound: false } : undefined
}

function boundText({ id, passwordHash = '' }: DeviceOwner, nonce: string): string {
  return `device ${id} ${nonce} ${hashSecret(passwordHash)}`
}

function tag(text: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(text).digest()
}
