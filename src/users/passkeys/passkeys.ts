import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import type { Passkey, User } from '../../domain/model.ts'
import type { Service } from '../../service.ts'
import { readCreation } from './browser-response.ts'

/*
 * Web Authentication Level 3 over @simplewebauthn/server, which is loaded for the first response of a browser.
 * It sees only what browser-response.ts lets through: to verify some attestations it would fetch URLs of the sender.
 * A passkey is found by the browser itself, so that no name has to be typed.
 */

type RelyingParty = NonNullable<Service['relyingParty']>

/** How long the browser may wait for its user, milliseconds. */
const timeout = 300_000
/** EdDSA, ES256 and RS256: what authenticators are made with, RFC 9053 §2 and RFC 8812 §2. */
const algorithms = [-8, -7, -257]

/**
 * What the browser is asked to sign in with, Web Authentication §5.5.
 * @param allowed The passkeys of a user who is known already; absent: any passkey of this server.
 */
export function assertionOptions({ id }: RelyingParty, challenge: string, allowed?: readonly Passkey[]) {
  return {
    challenge,
    timeout,
    rpId: id,
    // Without a password the passkey is both factors: what one has, and the check of who it is.
    userVerification: allowed === undefined ? 'required' : 'preferred',
    ...(allowed && { allowCredentials: allowed.map(descriptor) }),
  }
}

/** What the browser is asked to make a passkey with, Web Authentication §5.4. */
export function creationOptions(
  { id }: RelyingParty,
  serviceName: string,
  user: User,
  existing: readonly Passkey[],
  challenge: string,
) {
  const { name = user.username } = user.claims
  return {
    challenge,
    timeout,
    rp: { id, name: serviceName },
    user: {
      id: Buffer.from(user.id).toString('base64url'),
      name: user.username,
      displayName: String(name),
    },
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: existing.map(descriptor),
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    attestation: 'none',
  }
}

/** What a passkey proved. */
export interface Assertion {
  readonly counter: number
  readonly backedUp: boolean
  /** The device made sure who holds it. */
  readonly ownerChecked: boolean
}

/**
 * Whether this passkey signed this challenge for this server, Web Authentication §7.2; its counter is the caller's to
 * judge.
 * @param mode With `alone` there is no other factor: the device must have made sure who holds it.
 */
export async function verifyAssertion(
  { id, origin }: RelyingParty,
  response: AuthenticationResponseJSON,
  passkey: Passkey,
  challenge: string,
  mode: 'alone' | 'second',
): Promise<Assertion | undefined> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const owner = response.response.userHandle
  const isOwners = owner === undefined ? mode === 'second' : isSame(owner, passkey.userId)
  if (!isOwners) return undefined
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: id,
      credential: { id: passkey.id, publicKey: Buffer.from(passkey.publicKey, 'base64url'), counter: 0 },
      requireUserVerification: mode === 'alone',
    })
    if (!verified) return undefined
    const { newCounter, credentialBackedUp, userVerified } = authenticationInfo
    return { counter: newCounter, backedUp: credentialBackedUp, ownerChecked: userVerified }
  } catch {
    // Whatever is wrong with what strangers send is thrown by the library; here that is a response.
    return undefined
  }
}

/** A passkey a browser made, before it has a name. */
export type NewPasskey = Omit<Passkey, 'userId' | 'name' | 'createdAt' | 'usedAt'>

/** The passkey a browser made for this challenge, Web Authentication §7.1; undefined when it is not one we can use. */
export async function verifyCreation(
  { id, origin }: RelyingParty,
  text: string | undefined,
  challenge: string,
): Promise<NewPasskey | undefined> {
  const response = readCreation(text)
  if (response === undefined) return undefined
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: id,
      supportedAlgorithmIDs: algorithms,
      requireUserVerification: true,
    })
    if (!verified) return undefined
    const { credential, credentialBackedUp } = registrationInfo
    return {
      id: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      counter: credential.counter,
      transports: credential.transports ?? [],
      backedUp: credentialBackedUp,
    }
  } catch {
    // As above.
    return undefined
  }
}

function descriptor({ id, transports }: Passkey) {
  return { type: 'public-key', id, ...(transports.length > 0 && { transports }) }
}

function isSame(handle: string, userId: string): boolean {
  return Buffer.from(handle, 'base64url').toString() === userId
}
