import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Seconds } from './model.ts'

/**
 * Device cookies: a browser that once signed in to an account can prove it, so that throttling others does not lock
 * it out. The cookie authenticates nobody.
 */
export interface Device {
  readonly accountId: string
  /** Names this one cookie, so that a stolen one has its own count. */
  readonly nonce: string
}

/** How long a browser keeps the cookie after its last sign-in. */
export const deviceSeconds: Seconds = 180 * 86_400

/** The cookie's value. `nonce` is 16 fresh random bytes, base64url. */
export function sealDevice(device: Device, secret: string): string {
  return `${device.accountId}.${device.nonce}.${tag(device, secret).toString('base64url')}`
}

/** The device of a cookie value, if it was sealed with one of these secrets. */
export function openDevice(value: string | undefined, ...secrets: readonly string[]): Device | undefined {
  const [, accountId, nonce, mac] = /^([\w-]{1,64})\.([\w-]{22})\.([\w-]{43})$/.exec(value ?? '') ?? []
  if (accountId === undefined || nonce === undefined || mac === undefined) return undefined
  const device = { accountId, nonce }
  const given = Buffer.from(mac, 'base64url')
  return secrets.some((secret) => timingSafeEqual(tag(device, secret), given)) ? device : undefined
}

function tag({ accountId, nonce }: Device, secret: string): Buffer {
  return createHmac('sha256', secret).update(`device ${accountId} ${nonce}`).digest()
}
