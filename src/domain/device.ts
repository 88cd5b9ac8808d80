import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Device cookies: a browser that once signed in to an account can prove it, so that throttling others does not lock
 * it out. The cookie authenticates nobody.
 */
export interface Device {
  readonly accountId: string
  /** Names this one cookie, so that a stolen one has its own count. */
  readonly nonce: string
}

/** The cookie's value. `nonce` is 16 fresh random bytes, base64url. */
export function sealDevice(device: Device, secret: string): string {
  return `${device.accountId}.${device.nonce}.${tag(device, secret).toString('base64url')}`
}

/** The device of a cookie value, if it is genuine. */
export function openDevice(value: string | undefined, secret: string): Device | undefined {
  const [, accountId, nonce, mac] = /^([\w-]{1,64})\.([\w-]{22})\.([\w-]{43})$/.exec(value ?? '') ?? []
  if (accountId === undefined || nonce === undefined || mac === undefined) return undefined
  const device = { accountId, nonce }
  return timingSafeEqual(tag(device, secret), Buffer.from(mac, 'base64url')) ? device : undefined
}

function tag({ accountId, nonce }: Device, secret: string): Buffer {
  return createHmac('sha256', secret).update(`device ${accountId} ${nonce}`).digest()
}
