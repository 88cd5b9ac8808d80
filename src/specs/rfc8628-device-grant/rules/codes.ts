import type { Hash } from '../../../domain/model.ts'
import type { Bucket } from '../../../users/rules/throttle.ts'
import { readTypedCode } from '../../../users/rules/typed-code.ts'

/** RFC 8628 §3.4. */
export const grantType = 'urn:ietf:params:oauth:grant-type:device_code'

/** No vowels, so that no code is a word, and none that is mistaken for a digit, RFC 8628 §6.1. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const codeLength = 8
export const deviceCodePrefix = 'lyc_device_'

/** Returns a code of 20^8 from at least 16 random bytes: 34 bits, RFC 8628 §6.1. */
export function mintUserCode(fresh: Buffer): string {
  let rest = BigInt(`0x${fresh.toString('hex')}`)
  return Array.from({ length: codeLength }, () => {
    const letter = letters.charAt(Number(rest % BigInt(letters.length)))
    rest /= BigInt(letters.length)
    return letter
  }).join('')
}

/** `WDJB-MJHT`: how a code is shown. */
export function formatUserCode(userCode: string): string {
  return `${userCode.slice(0, 4)}-${userCode.slice(4)}`
}

/** Reads a code as users type it: in any case, with or without the dash, also full width. Undefined if it is none. */
export function parseUserCode(text: string): string | undefined {
  const code = readTypedCode(text).toUpperCase()
  return code.length === codeLength && [...code].every((letter) => letters.includes(letter))
    ? code
    : undefined
}

/** Returns the user code that a device code begins with. Nothing is verified. */
export function userCodeOf(deviceCode: string): string | undefined {
  const [, userCode] = /^lyc_device_([A-Z]{8})[\w-]{43}$/.exec(deviceCode) ?? []
  return userCode
}

/** A browser may type as many wrong codes in a window, RFC 8628 §5.1. */
const wrongCodesPerBrowser = 5

/** Returns what a wrong code counts against. A browser is easily a new one; its network is not. */
export function wrongCodeBuckets(
  browser: Hash,
  network: string,
  { wrongCodesPerPrefix }: { readonly wrongCodesPerPrefix: number },
): readonly Bucket[] {
  const rule = 'rfc8628-5.1-user-code-limits'
  return [
    {
      key: `device code ${browser}`,
      limit: wrongCodesPerBrowser,
      error: [rule, 'too many wrong device codes in this browser; try again later'],
    },
    {
      key: `device code ${network}`,
      limit: wrongCodesPerPrefix,
      error: [
        rule,
        'too many wrong device codes from this network (deviceGrant.wrongCodesPerPrefix); try again later',
      ],
    },
  ]
}
