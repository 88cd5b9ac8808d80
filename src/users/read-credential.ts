import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isObject } from '../domain/is-object.ts'
import { assertAssertionData, withoutAttestation } from './authenticator-data.ts'

/*
 * What a browser sent as JSON, Web Authentication Level 3 §5.1, narrowed to the members that are verified, each of the
 * right type and a bounded size. Everything else is dropped.
 */

/** Most bytes of each member; those of RSA keys of 4096 bits fit. */
const most = { id: 1023, clientData: 4096, authenticatorData: 4096, attestation: 16_384, signature: 1024 }
/** Web Authentication §5.4.3. */
const longestUserHandle = 64
/** Web Authentication §5.8.4 lists seven. */
const mostTransports = 10

type Members = Readonly<Record<string, unknown>>

/** The response of a browser that made a passkey, as attestation format `none`; undefined for anything else. */
export function readCreation(text: string | undefined): RegistrationResponseJSON | undefined {
  const read = readCredential(text)
  const attestation = read && bytesOf(read.response['attestationObject'], most.attestation)
  if (read === undefined || attestation === undefined) return undefined
  const { id, clientDataJSON, response } = read
  try {
    const attestationObject = withoutAttestation(attestation).toString('base64url')
    // The library copies them only; a transport it does not know is one of a later version.
    const transports = transportsOf(
      response['transports'],
    ) as RegistrationResponseJSON['response']['transports']
    return {
      ...whole(id),
      response: { clientDataJSON, attestationObject, ...(transports !== undefined && { transports }) },
    }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** The response of a browser that signed in with a passkey; undefined for anything else. */
export function readAssertionResponse(text: string | undefined): AuthenticationResponseJSON | undefined {
  const read = readCredential(text)
  if (read === undefined) return undefined
  const { id, clientDataJSON, response } = read
  const data = bytesOf(response['authenticatorData'], most.authenticatorData)
  const signature = bytesOf(response['signature'], most.signature)
  // Web Authentication §5.2.2 makes it nullable; without one the browser leaves it out or sends null.
  const owner = response['userHandle'] ?? undefined
  const userHandle = owner === undefined ? undefined : bytesOf(owner, longestUserHandle)
  if (data === undefined || signature === undefined) return undefined
  if (owner !== undefined && userHandle === undefined) return undefined
  try {
    assertAssertionData(data)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
  return {
    ...whole(id),
    response: {
      clientDataJSON,
      authenticatorData: data.toString('base64url'),
      signature: signature.toString('base64url'),
      ...(userHandle && { userHandle: userHandle.toString('base64url') }),
    },
  }
}

function whole(id: string) {
  return { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {} }
}

/** What both responses have in common. */
function readCredential(text: string | undefined) {
  const credential = objectOf(parse(text))
  const response = objectOf(credential?.['response'])
  if (credential === undefined || response === undefined) return undefined
  const { id, rawId, type } = credential
  const clientData = bytesOf(response['clientDataJSON'], most.clientData)
  if (bytesOf(id, most.id) === undefined || typeof id !== 'string') return undefined
  if (rawId !== id || type !== 'public-key' || !isClientData(clientData)) return undefined
  return { id, response, clientDataJSON: clientData.toString('base64url') }
}

/** Web Authentication §5.8.1: the members that are compared are text. */
function isClientData(bytes: Buffer | undefined): bytes is Buffer {
  const members = objectOf(parse(bytes?.toString()))
  const { type, challenge, origin } = members ?? {}
  return [type, challenge, origin].every((each) => typeof each === 'string')
}

/** The bytes of a base64url text without padding; undefined for anything else, for none, and for too many. */
function bytesOf(value: unknown, mostBytes: number): Buffer | undefined {
  if (typeof value !== 'string' || value.length > Math.ceil((mostBytes * 4) / 3)) return undefined
  return /^[\w-]+$/.test(value) ? Buffer.from(value, 'base64url') : undefined
}

function transportsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const known = value.filter((each) => typeof each === 'string' && /^[a-z-]{1,20}$/.test(each))
  return known.slice(0, mostTransports)
}

function parse(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function objectOf(value: unknown): Members | undefined {
  return isObject(value) ? value : undefined
}
