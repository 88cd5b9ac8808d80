import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Seconds } from './model.ts'

/*
 * How `lychgate doctor` learns what the running server saw of a request behind its proxies: it sends a probe sealed
 * with a handle key of the store, and the response contains a sighting sealed with the same key. Without access to the store
 * neither can be made. A probe that is overheard reveals, for some minutes, how the listener's own requests arrive.
 */

/** The request header. */
export const probeHeader = 'lychgate-probe'
/** The header of the response. */
export const sightingHeader = 'lychgate-sighting'

/** How far apart the clocks of the two may be. */
const probeSeconds: Seconds = 300

/** One probe; the nonce distinguishes its sighting from an older one that a cache kept. */
export interface Probe {
  readonly at: Seconds
  /** 16 random bytes, base64url. */
  readonly nonce: string
}

/** What the server saw of the request. */
export interface Sighting {
  /** The other end of the connection: the last proxy, if there is one. */
  readonly peer: string
  /** The address rate limits count. */
  readonly countedAs: string
  /** X-Forwarded-For as it arrived. */
  readonly forwardedFor?: string
  /** Whether the peer is one of those whose X-Forwarded-For is believed. */
  readonly isPeerTrusted: boolean
  /** The names of the headers that arrived. */
  readonly headers: readonly string[]
}

/** The value of the request header. */
export function sealProbe({ at, nonce }: Probe, secret: string): string {
  return `${at}.${nonce}.${tag(`probe ${at} ${nonce}`, secret).toString('base64url')}`
}

/** The probe of a header and the secret that sealed it; undefined when none of these did, or it is old. */
export function openProbe(
  value: unknown,
  now: Seconds,
  secrets: readonly string[],
): { readonly probe: Probe; readonly secret: string } | undefined {
  const [, instant, nonce, mac] = /^(\d{1,12})\.([\w-]{22})\.([\w-]{43})$/.exec(String(value)) ?? []
  if (instant === undefined || nonce === undefined || mac === undefined) return undefined
  const probe = { at: Number(instant), nonce }
  if (Math.abs(now - probe.at) > probeSeconds) return undefined
  const secret = secrets.find((one) => matches(`probe ${probe.at} ${nonce}`, mac, one))
  return secret === undefined ? undefined : { probe, secret }
}

/** The value of the response's header. */
export function sealSighting(sighting: Sighting, { nonce }: Probe, secret: string): string {
  const payload = Buffer.from(JSON.stringify(sighting)).toString('base64url')
  return `${payload}.${tag(`sighting ${nonce} ${payload}`, secret).toString('base64url')}`
}

/** Returns what the server saw; undefined if this is not the sighting of this probe. */
export function openSighting(value: unknown, { nonce }: Probe, secret: string): Sighting | undefined {
  const [, payload, mac] = /^([\w-]+)\.([\w-]{43})$/.exec(String(value)) ?? []
  if (payload === undefined || mac === undefined) return undefined
  if (!matches(`sighting ${nonce} ${payload}`, mac, secret)) return undefined
  // `as`: the tag shows that sealSighting wrote it.
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Sighting
}

function matches(text: string, mac: string, secret: string): boolean {
  return timingSafeEqual(tag(text, secret), Buffer.from(mac, 'base64url'))
}

function tag(text: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(text).digest()
}
