import { OAuthError } from './errors.ts'

/**
 * The parameters of one request: names to their value, or to all values where one is repeated. A parameter sent
 * without a value counts as not sent, RFC 6749 §3.1 and §3.2.
 */
export type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>

export interface ParameterLimits {
  readonly parameters: number
  readonly parameterBytes: number
}

/**
 * Reads `application/x-www-form-urlencoded`, RFC 6749 appendix B: UTF-8, `+` is a space. So is a raw space inside a
 * value, as the WHATWG URL Standard §5.1 reads it: oidc-agent sends one.
 * @throws {OAuthError} `invalid_request` for a broken percent-encoding, bytes that are not UTF-8, NUL, or too much.
 */
export function parseParameters(text: string, limits: ParameterLimits): Parameters {
  const parameters: Record<string, string | string[]> = Object.create(null)
  const pairs = text.split('&', limits.parameters + 1)
  if (pairs.length > limits.parameters)
    throw new OAuthError('invalid_request', 'the request has too many parameters (limits.parameters)', {
      rule: 'lychgate-limits-parameters',
      stored: limits.parameters,
    })
  // Encoded text is printable ASCII; bytes that are not UTF-8 have become other characters before they come here.
  if (/[^\x20-\x7e]/.test(text)) throw malformed()
  for (const pair of pairs) {
    const split = pair.indexOf('=')
    const encodedName = split < 0 ? pair : pair.slice(0, split)
    if (encodedName.includes(' ')) throw malformed()
    const name = decode(encodedName)
    const value = decode(split < 0 ? '' : pair.slice(split + 1))
    // A character has three bytes at most: hardly any value has to be counted.
    if (value.length * 3 > limits.parameterBytes && Buffer.byteLength(value) > limits.parameterBytes) {
      throw new OAuthError('invalid_request', 'a parameter value is too long (limits.parameterBytes)', {
        rule: 'lychgate-limits-parameter-bytes',
        stored: limits.parameterBytes,
        received: Buffer.byteLength(value),
      })
    }
    if (value === '') continue
    const earlier = parameters[name]
    if (earlier === undefined) parameters[name] = value
    else if (typeof earlier === 'string') parameters[name] = [earlier, value]
    else earlier.push(value)
  }
  return parameters
}

/**
 * Returns the value of a parameter that must not be repeated.
 * @throws {OAuthError} `invalid_request` when it is repeated, RFC 6749 §3.1.
 */
export function single(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name]
  if (value === undefined || typeof value === 'string') return value
  throw new OAuthError('invalid_request', `${name} must not be repeated`, {
    rule: 'rfc6749-3.1-no-duplicate-request-params',
  })
}

/** Returns all values of a parameter that may be repeated. */
export function every(parameters: Parameters, name: string): readonly string[] {
  const value = parameters[name]
  if (value === undefined) return []
  return typeof value === 'string' ? [value] : value
}

/** The parameters as a query string again. */
export function formatParameters(parameters: Parameters): string {
  const query = new URLSearchParams()
  for (const name of Object.keys(parameters))
    for (const value of every(parameters, name)) query.append(name, value)
  return query.toString()
}

/**
 * Rejects any repeated parameter, RFC 6749 §3.1 and §3.2.
 * @param repeatable What may repeat: `resource` alone, RFC 8707 §2, or the fields of a page.
 * @throws {OAuthError} `invalid_request`
 */
export function assertNoneRepeated(
  parameters: Parameters,
  repeatable: readonly string[] = ['resource'],
): void {
  for (const name in parameters) {
    if (typeof parameters[name] === 'string' || repeatable.includes(name)) continue
    const known = /^[a-z_]{1,40}$/.test(name) ? name : 'a parameter'
    throw new OAuthError('invalid_request', `${known} must not be repeated`, {
      rule: 'rfc6749-3.1-no-duplicate-request-params',
    })
  }
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text
  const spaced = text.replaceAll('+', ' ')
  let decoded: string
  try {
    decoded = decodeURIComponent(spaced)
  } catch {
    throw malformed()
  }
  if (decoded.includes('\0')) throw malformed()
  return decoded
}

function malformed(): OAuthError {
  return new OAuthError('invalid_request', 'the parameters are not form-urlencoded UTF-8', {
    rule: 'rfc6749-B-form-encoding',
  })
}
