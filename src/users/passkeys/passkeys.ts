import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import type { Passkey, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Service } from '../../feature/service.ts'
import { readCreation } from './browser-response.ts'
import { makerOf } from './makers.ts'

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
 * Returns the options of a sign-in in the browser, Web Authentication §5.5.
 * @param allowed The passkeys of a known user; absent: any passkey of this server.
 */
export function assertionOptions({ id }: RelyingParty, challenge: string, allowed?: readonly Passkey[]) {
  return {
    challenge,
    timeout,
    rpId: id,
    // Without a password the passkey is both factors: the device, and its check of the user.
    userVerification: allowed === undefined ? 'required' : 'preferred',
    ...(allowed && { allowCredentials: allowed.map(descriptor) }),
  }
}

/** Returns the options of a new passkey in the browser, Web Authentication §5.4. */
export function creationOptions(
  { id }: RelyingParty,
  serviceName: string,
  user: Pick<User, 'id' | 'username' | 'claims'>,
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

/** The result of a sign-in with a passkey. */
export interface Assertion {
  readonly counter: number
  readonly backedUp: boolean
  /** Whether the device verified its user. */
  readonly ownerChecked: boolean
}

/**
 * Verifies that this passkey signed this challenge for this server, Web Authentication §7.2. Leaves its counter to the
 * caller.
 * @param mode With `alone` there is no other factor: the device must have verified its user.
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
  const verification = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: id,
    credential: { id: passkey.id, publicKey: Buffer.from(passkey.publicKey, 'base64url'), counter: 0 },
    requireUserVerification: mode === 'alone',
  }).catch(malformed)
  if (!verification?.verified) return undefined
  const { newCounter, credentialBackedUp, userVerified } = verification.authenticationInfo
  return { counter: newCounter, backedUp: credentialBackedUp, ownerChecked: userVerified }
}

/** A passkey a browser made, before it has a name. */
export type NewPasskey = Omit<Passkey, 'userId' | 'name' | 'createdAt' | 'usedAt'>

/** The same, and what made it, if that is known. */
interface CreatedPasskey {
  readonly created: NewPasskey
  readonly maker?: string
}

/**
 * Returns the passkey a browser made for this challenge, Web Authentication §7.1; undefined for one that cannot be
 * used.
 */
export async function verifyCreation(
  { id, origin }: RelyingParty,
  text: string | undefined,
  challenge: string,
): Promise<CreatedPasskey | undefined> {
  const response = readCreation(text)
  if (response === undefined) return undefined
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const verification = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: id,
    supportedAlgorithmIDs: algorithms,
    requireUserVerification: true,
  }).catch(malformed)
  if (!verification?.verified) return undefined
  const { credential, credentialBackedUp: backedUp, aaguid } = verification.registrationInfo
  const { counter, transports = [] } = credential
  const publicKey = Buffer.from(credential.publicKey).toString('base64url')
  const created = { id: credential.id, publicKey, counter, transports, backedUp }
  return { created, ...omitUndefined({ maker: makerOf(aaguid) }) }
}

/** The library throws whatever is wrong with a response; here that is a result. */
function malformed(): undefined {}

function descriptor({ id, transports }: Passkey) {
  return { type: 'public-key', id, ...(transports.length > 0 && { transports }) }
}

function isSame(handle: string, userId: string): boolean {
  return Buffer.from(handle, 'base64url').toString() === userId
}
