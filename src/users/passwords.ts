import { timingSafeEqual } from 'node:crypto'
import pLimit from 'p-limit'
import type { PasswordCheck } from '../feature/deps.ts'
import { readTextAsset } from '../system/assets.ts'
import type { RandomSource } from '../system/system.ts'
import { derive, threadCount } from './password-threads.ts'

/** More password checks are waiting than the server can run in time: 503 with `Retry-After`. */
export class PasswordQueueFull extends Error {
  constructor() {
    super('too many password checks are waiting')
    this.name = 'PasswordQueueFull'
  }
}

/** RFC 9106 §4 in the size OWASP gives for a busy server: 19 MiB, two passes, one lane. */
const cost = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const
const saltBytes = 16

const phcForm =
  /^\$argon2id\$v=19\$m=(?<memory>[1-9]\d{0,6}),t=(?<passes>[1-9]\d?),p=(?<lanes>[1-9]\d?)\$(?<salt>[\w+/]{11,86})\$(?<tag>[\w+/]{16,86})$/

/** A hash of today's cost that no known password has: what an unknown user is checked against. */
export const decoyHash = formatPhc(Buffer.alloc(saltBytes), Buffer.alloc(cost.tagLength))

/** Why a new password is not taken: it has not 8 to 256 characters, or it is among the first that attackers try. */
export type PasswordFault = 'length' | 'common'

/**
 * What is wrong with a new password, if anything is. Letters and signs of all kinds may be in it, and none has to.
 * The 3,000 commonest passwords of that length are rejected, however they are capitalised.
 */
export function passwordFault(password: string): PasswordFault | undefined {
  const prepared = preparePassword(password)
  const { length } = [...prepared]
  if (length < 8 || length > 256) return 'length'
  return commonPasswords().has(prepared.toLowerCase()) ? 'common' : undefined
}

let common: ReadonlySet<string> | undefined

/** Read when the first password is chosen: a server that starts has no use for it. */
function commonPasswords(): ReadonlySet<string> {
  common ??= new Set(readTextAsset('src/users/common-passwords.txt').trim().split('\n'))
  return common
}

/**
 * The one form of a password, RFC 8265 §4.2 (OpaqueString): NFC, and every space as that of ASCII. One keyboard types
 * `é` as one character, another as two.
 */
export function preparePassword(password: string): string {
  return password.replaceAll(/\p{Zs}/gu, ' ').normalize('NFC')
}

/** The argon2id hash of a prepared password, as a PHC string with its salt and cost. */
export async function hashPassword(password: string, random: RandomSource): Promise<string> {
  const salt = random(saltBytes)
  const message = Buffer.from(preparePassword(password))
  return formatPhc(salt, await derive({ ...cost, message, nonce: salt }))
}

/**
 * Whether this is the password of the hash: prepared, or where that differs as received or decomposed, because earlier
 * versions hashed what a keyboard sent. How many forms are tried follows from the text alone, also for an unknown user.
 */
export async function verifyPassword(password: string, phc: string): Promise<boolean> {
  const forms = new Set([preparePassword(password), password, password.normalize('NFD')])
  for (const form of forms) if (await hasHash(form, phc)) return true
  return false
}

/** Compares at the cost that the hash names. False for text that is no such hash. */
async function hasHash(password: string, phc: string): Promise<boolean> {
  const { memory, passes, lanes, salt = '', tag = '' } = phcForm.exec(phc)?.groups ?? {}
  // RFC 9106 §3.1 bounds memory below by the lanes; above one GiB it is a mistake, not a cost.
  if (memory === undefined || Number(memory) < 8 * Number(lanes) || Number(memory) > 1_048_576) return false
  const expected = Buffer.from(tag, 'base64')
  const derived = await derive({
    message: Buffer.from(password),
    nonce: Buffer.from(salt, 'base64'),
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(lanes),
    tagLength: expected.length,
  })
  return timingSafeEqual(derived, expected)
}

/** A check that would begin later than this is rejected at once. */
const deadlineMilliseconds = 10_000

/**
 * Creates the password check of a server, in a bounded queue: one core is left for everything else, and a flood of
 * sign-ins is rejected instead of served too late.
 * @param waiting How many checks may wait.
 * @param atOnce How many run at the same time.
 * @param now In milliseconds.
 */
export function createPasswordQueue(
  waiting: number,
  atOnce: number = threadCount,
  now: () => number = () => performance.now(),
): PasswordCheck {
  const limit = pLimit(atOnce)
  // How long the last check took: where other work has the cores, it takes longer.
  let milliseconds = 0
  const verify = async (password: string, phc: string) => {
    const began = now()
    const isRight = await verifyPassword(password, phc)
    milliseconds = now() - began
    return isRight
  }
  return async (password, phc) => {
    const ahead = limit.activeCount + limit.pendingCount
    const isLate = (ahead / atOnce) * milliseconds > deadlineMilliseconds
    if (ahead >= atOnce + waiting || isLate) throw new PasswordQueueFull()
    const isRight = await limit(verify, password, phc ?? decoyHash)
    return isRight && phc !== undefined
  }
}

function formatPhc(salt: Buffer, tag: Buffer): string {
  const { memory, passes, parallelism } = cost
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
