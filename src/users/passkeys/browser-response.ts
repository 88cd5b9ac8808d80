import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isObject } from '../../domain/is-object.ts'
import { parseJson } from '../../domain/strict-json.ts'
import { assertAssertionData, withoutAttestation } from './authenticator-data.ts'

/*
 * The responses of a browser as JSON, Web Authentication Level 3 §5.1, narrowed to the members that are verified, each
 * of the right type and a bounded size. Everything else is dropped.
 */

/** Most bytes of each member; those of RSA keys of 4096 bits fit. */
const most = { id: 1023, clientData: 4096, authenticatorData: 4096, attestation: 16_384, signature: 1024 }
/** Web Authentication §5.4.3. */
const longestUserHandle = 64
/** Web Authentication §5.8.4 lists seven. */
const mostTransports = 10

/** Reads the response of a browser that made a passkey, as attestation format `none`; undefined for anything else. */
export function readCreation(text: string | undefined): RegistrationResponseJSON | undefined {
  return wellFormed(() => {
    const { credential, clientDataJSON, response } = readCredential(text)
    const attestation = requireBytes(response['attestationObject'], most.attestation)
    const attestationObject = withoutAttestation(attestation).toString('base64url')
    // The library copies them only; a transport it does not know is one of a later version.
    const transports = transportsOf(
      response['transports'],
    ) as RegistrationResponseJSON['response']['transports']
    return {
      ...credential,
      response: { clientDataJSON, attestationObject, ...(transports !== undefined && { transports }) },
    }
  })
}

/** Reads the response of a browser that signed in with a passkey; undefined for anything else. */
export function readAssertion(text: string | undefined): AuthenticationResponseJSON | undefined {
  return wellFormed(() => {
    const { credential, clientDataJSON, response } = readCredential(text)
    const data = requireBytes(response['authenticatorData'], most.authenticatorData)
    assertAssertionData(data)
    const signature = requireBytes(response['signature'], most.signature).toString('base64url')
    // Web Authentication §5.2.2 makes it nullable; without one the browser leaves it out or sends null.
    const owner = response['userHandle'] ?? undefined
    const userHandle = owner === undefined ? undefined : requireBytes(owner, longestUserHandle)
    return {
      ...credential,
      response: {
        clientDataJSON,
        authenticatorData: data.toString('base64url'),
        signature,
        ...(userHandle && { userHandle: userHandle.toString('base64url') }),
      },
    }
  })
}

/** Returns what `read` returns, or undefined if it finds the response malformed. */
function wellFormed<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Reads what both responses have in common. */
function readCredential(text: string | undefined) {
  const { id, rawId, type, response } = requireObject(parseJson(text ?? ''))
  const members = requireObject(response)
  requireBytes(id, most.id)
  if (typeof id !== 'string' || rawId !== id || type !== 'public-key') throw new RangeError('no credential')
  const clientData = requireBytes(members['clientDataJSON'], most.clientData)
  assertClientData(clientData)
  return {
    credential: { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {} },
    clientDataJSON: clientData.toString('base64url'),
    response: members,
  }
}

/** Web Authentication §5.8.1: the members that are compared are text. */
function assertClientData(bytes: Buffer): void {
  const { type, challenge, origin } = requireObject(parseJson(bytes.toString()))
  const isText = [type, challenge, origin].every((each) => typeof each === 'string')
  if (!isText) throw new RangeError('no client data')
}

/** Returns the bytes of base64url text without padding, at least one. */
function requireBytes(value: unknown, mostBytes: number): Buffer {
  const isBytes =
    typeof value === 'string' && value.length <= Math.ceil((mostBytes * 4) / 3) && /^[\w-]+$/.test(value)
  if (!isBytes) throw new RangeError('no base64url')
  return Buffer.from(value, 'base64url')
}

function transportsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const known = value.filter((each) => typeof each === 'string' && /^[a-z-]{1,20}$/.test(each))
  return known.slice(0, mostTransports)
}

function requireObject(value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new RangeError('no object')
  return value
}
