import { type ClientDeclarations, isTextList, type JsonObject, rejection } from '../../clients/members.ts'
import { coreResponseModes } from '../../domain/authorization-request.ts'
import { check } from '../../domain/check.ts'
import { signingAlgorithms } from '../../domain/key-term.ts'
import type { Client, Seconds, SigningAlgorithm } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'

/** The response modes of JARM §2.3 for codes, each with the one that carries it. */
export const responseModes = { 'query.jwt': 'query', 'form_post.jwt': 'form_post', jwt: 'query' } as const

/** The member of client metadata that names the algorithm, JARM §3. */
export const algorithmMember = 'authorization_signed_response_alg'

/** The member of client metadata that lists what the client may ask for, FAPI 2.0 Message Signing §5.4. */
export const modesMember = 'response_modes'

/** How long a response may take through the browser: no longer than JARM §2.1 recommends. */
const lifetimeSeconds: Seconds = 600

/** Returns the algorithm that a client registered, JARM §3. */
export function registeredAlgorithm({ extra }: Client): SigningAlgorithm | undefined {
  return signingAlgorithms.find((name) => name === extra?.[algorithmMember])
}

/**
 * Returns the claims of an authorization response, success and error alike, JARM §2.1: its members, who sends it to
 * which client, and until when it counts.
 */
export function responseClaims(
  members: Readonly<Record<string, string>>,
  issuer: string,
  { id }: Pick<Client, 'id'>,
  now: Seconds,
): Readonly<Record<string, unknown>> {
  return { ...members, iss: issuer, aud: id, exp: now + lifetimeSeconds }
}

/**
 * Reads `response_modes`; undefined: the client may ask for each of them.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readModes(
  members: JsonObject,
  name: string,
  _: unknown,
  { responseModes = {} }: Pick<ClientDeclarations, 'responseModes'> = {},
): readonly string[] | undefined {
  const value = members[name] ?? undefined
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return undefined
  const known: readonly string[] = [...coreResponseModes, ...Object.keys(responseModes)]
  if (isTextList(value) && value.every((mode) => known.includes(mode))) return value
  throw rejection(`${name} must be a list of ${known.join(', ')}`, {
    rule: 'rfc7591-3.2.2-invalid-client-metadata',
  })
}

/**
 * Checks that a client asks for a response that it registered, so that nothing takes the signature away: FAPI 2.0
 * Message Signing §5.4.
 * @throws {OAuthError} `invalid_request`
 */
export function assertMode({ extra }: Client, parameters: Parameters): void {
  // `as`: readModes alone writes this member.
  const registered = extra?.[modesMember] as readonly string[] | undefined
  if (registered === undefined) return
  const mode = single(parameters, 'response_mode') ?? 'query'
  check(
    registered.some((each) => unshortened(each) === unshortened(mode)),
    'fapi2-ms-5.4-response-modes',
    'invalid_request',
    `this client registered for other response modes: ${registered.join(', ')} (response_modes)`,
    { stored: registered, received: mode, passed: 'the client registered for this response mode' },
  )
}

/** JARM §2.3.4: `jwt` is short for that of a code. */
function unshortened(mode: string): string {
  return mode === 'jwt' ? 'query.jwt' : mode
}
