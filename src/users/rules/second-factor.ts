import { type Factors, lacksAcr, methodsOf } from '../../domain/authentication-context.ts'
import { accept, type Decision, put } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Hash, RequestedAcr, SecondFactor, Seconds } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'
import { hashSecret } from '../../domain/secret.ts'
import { readTypedCode } from './typed-code.ts'

/** One-time codes, by user id. */
export const secondFactorKind = recordKind<SecondFactor>('secondFactor', {
  id: ({ userId }) => userId,
  userId: ({ userId }) => userId,
  madeAt: ({ createdAt }) => createdAt,
  sealed: 'sealedSecret',
})

/*
 * One-time codes and recovery codes. Codes are required once the user has entered one; each code and each recovery code
 * can be used once.
 */

/** How long the second step of a sign-in may take. */
export const pendingSecondFactorSeconds: Seconds = 600

/** How many recovery codes a user gets, and the random bytes of each. */
export const recoveryCodes = { count: 10, bytes: 10 } as const

/** The second factors that may follow the password. */
export type SecondStep = Pick<Factors, 'codes' | 'passkey'>

/**
 * Returns the second factors to ask for after the right password: always for a user with codes, and for one with a
 * passkey if the client requests more than a password. Offers the factors that satisfy the request, or else all.
 * Undefined if the password suffices or the user has no second factor.
 */
export function secondStepOf(
  { codes, passkey }: Factors,
  acr: RequestedAcr | undefined,
): SecondStep | undefined {
  // A password and a passkey are of every class.
  if (!codes) return passkey && lacksAcr(['pwd'], acr) ? { codes, passkey } : undefined
  const isFitting = !lacksAcr(methodsOf({ password: true, codes, passkey: false }), acr)
  return { codes: isFitting || !passkey, passkey }
}

/**
 * Takes a code, once, RFC 6238 §5.2.
 * @param opened The record its secret was read from: a new secret invalidates the code.
 * @param step The time step of the code; undefined if no current step has it.
 */
export function takeCode(
  current: SecondFactor | undefined,
  opened: SecondFactor,
  step: number | undefined,
): Decision<boolean> {
  if (current?.confirmedAt === undefined || current.sealedSecret !== opened.sealedSecret) return accept(false)
  const { usedStep } = current
  if (step === undefined || (usedStep !== undefined && step <= usedStep)) return accept(false)
  return accept(true, put(secondFactorKind, { ...current, usedStep: step }))
}

/** Takes a recovery code, once. */
export function takeRecoveryCode(current: SecondFactor | undefined, typed: string): Decision<boolean> {
  const hash = hashRecoveryCode(typed)
  if (current?.confirmedAt === undefined || !current.recoveryHashes.includes(hash)) return accept(false)
  const recoveryHashes = current.recoveryHashes.filter((other) => other !== hash)
  return accept(true, put(secondFactorKind, { ...current, recoveryHashes }))
}

/**
 * Stores a new secret, which is used once the user has entered a code of it.
 * @throws {OAuthError} `invalid_request` when codes are in use: they are removed first.
 */
export function beginCodes(
  current: SecondFactor | undefined,
  userId: string,
  sealedSecret: string,
  now: Seconds,
): Decision<boolean> {
  if (current?.confirmedAt !== undefined) throw inUse()
  const secondFactor = { userId, sealedSecret, recoveryHashes: [], createdAt: now }
  return accept(true, put(secondFactorKind, secondFactor))
}

/** Turns codes on by the first right one: every sign-in with the password then needs one. False if it is wrong. */
export function confirmCodes(
  current: SecondFactor | undefined,
  opened: SecondFactor,
  step: number | undefined,
  recoveryHashes: readonly Hash[],
  now: Seconds,
): Decision<boolean> {
  if (current === undefined || current.confirmedAt !== undefined) return accept(false)
  if (step === undefined || current.sealedSecret !== opened.sealedSecret) return accept(false)
  const secondFactor = { ...current, confirmedAt: now, usedStep: step, recoveryHashes }
  return accept(true, put(secondFactorKind, secondFactor))
}

/** Replaces the recovery codes. False if no codes are in use. */
export function renewRecoveryCodes(
  current: SecondFactor | undefined,
  recoveryHashes: readonly Hash[],
): Decision<boolean> {
  if (current?.confirmedAt === undefined) return accept(false)
  return accept(true, put(secondFactorKind, { ...current, recoveryHashes }))
}

/** Recovery codes to write down, `7k2m-9xqd-0hjp-c4te`: 80 random bits each, without letters that look like digits. */
export function mintRecoveryCodes(fresh: Buffer): readonly string[] {
  const { count, bytes } = recoveryCodes
  return Array.from({ length: count }, (_, index) => {
    const text = crockford(fresh.subarray(index * bytes, (index + 1) * bytes))
    return text.replace(/(.{4})(?=.)/g, '$1-')
  })
}

/** The form in which a recovery code is stored; separators and capitals of what was typed do not matter. */
export function hashRecoveryCode(typed: string): Hash {
  const plain = readTypedCode(typed).toLowerCase().replaceAll('o', '0').replaceAll(/[il]/g, '1')
  return hashSecret(`recovery ${plain}`)
}

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

function crockford(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return bits.replace(/.{5}/g, (five) => alphabet.charAt(Number.parseInt(five, 2)))
}

function inUse(): OAuthError {
  return new OAuthError('invalid_request', 'one-time codes are in use; remove them first', {
    rule: 'lychgate-second-factor',
  })
}
