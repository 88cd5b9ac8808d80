import type { SecondFactor, Seconds } from '../domain/model.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { RandomSource } from '../system/system.ts'
import { readTypedCode } from './rules/typed-code.ts'

/** What programs that show codes take without asking: six digits of SHA-1, a new code every 30 seconds, RFC 6238 §4. */
const form = { algorithm: 'SHA1', digits: 6, period: 30 } as const
/** RFC 4226 §4 recommends 160 bits. */
const secretBytes = 20
/** Clocks differ: the code before and the one after count, RFC 6238 §5.2. */
const window = 1

/** A new secret to make one-time codes from, RFC 4226 §4. */
export function mintCodeSecret(random: RandomSource): Buffer {
  return random(secretBytes)
}

/** How the secret gets into the program that shows the codes. */
export interface CodeSecret {
  /** `otpauth://totp/…`, for the picture. */
  readonly uri: string
  /** Base32, to type in. */
  readonly text: string
}

/** The secret in both its forms. The library is loaded here: most servers never need it at a start. */
export async function showCodeSecret(secret: Buffer, issuer: string, label: string): Promise<CodeSecret> {
  const { Secret, TOTP } = await import('otpauth')
  const own = new Secret({ buffer: bufferOf(secret) })
  return { uri: new TOTP({ ...form, issuer, label, secret: own }).toString(), text: own.base32 }
}

/** A picture of the address that a telephone reads, SVG. */
export async function drawCode(uri: string): Promise<string> {
  const { default: codes } = await import('qrcode')
  return codes.toString(uri, { type: 'svg', errorCorrectionLevel: 'M', margin: 4 })
}

/** The time step whose code this is, RFC 6238 §4.2, or undefined. */
export async function stepOfCode(
  keys: Pick<KeyRing, 'unseal'>,
  { userId, sealedSecret }: SecondFactor,
  typed: string,
  now: Seconds,
): Promise<number | undefined> {
  const token = readTypedCode(typed)
  if (!/^[0-9]{6}$/.test(token)) return undefined
  const { Secret, TOTP } = await import('otpauth')
  const secret = new Secret({ buffer: bufferOf(keys.unseal(sealedSecret, userId)) })
  const timestamp = now * 1000
  const delta = TOTP.validate({ ...form, token, secret, timestamp, window })
  return delta === null ? undefined : Math.floor(now / form.period) + delta
}

/** A copy: a small Buffer is a view of a pool that is not its own. */
function bufferOf(bytes: Buffer): ArrayBuffer {
  return Uint8Array.from(bytes).buffer
}
