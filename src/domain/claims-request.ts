import { OAuthError } from './errors.ts'
import { isObject } from './is-object.ts'
import type { ClaimsRequest } from './model.ts'
import { parseJson } from './strict-json.ts'

/** What the `claims` parameter asked for, OpenID Connect Core §5.5. */
export interface ParsedClaims {
  readonly claims: ClaimsRequest
  /** The user the ID Token or UserInfo must be about. */
  readonly sub?: string
  /** The authentication context classes one of which the sign-in must have. */
  readonly essentialAcr?: readonly string[]
  /** The voluntary ones. */
  readonly requestedAcrValues: readonly string[]
}

/** How many claims a request may name in one place. */
const mostClaims = 100

/**
 * Reads the `claims` parameter, OpenID Connect Core §5.5. Unknown claims are kept here and ignored
 * where they would be returned.
 * @throws {OAuthError} `invalid_request` when it is not a JSON object of objects.
 */
export function parseClaims(text: string | undefined): ParsedClaims {
  if (text === undefined) return { claims: { userinfo: [], idToken: [] }, requestedAcrValues: [] }
  const request = parseObject(text)
  const userinfo = section(request['userinfo'])
  const idToken = section(request['id_token'])
  const sub = requiredValue(idToken['sub']) ?? requiredValue(userinfo['sub'])
  const acr = acrValues(idToken['acr'])
  return {
    claims: { userinfo: Object.keys(userinfo), idToken: Object.keys(idToken) },
    ...(sub !== undefined && { sub }),
    requestedAcrValues: [],
    ...acr,
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let parsed: unknown
  try {
    parsed = parseJson(text)
  } catch {
    throw malformed()
  }
  if (!isObject(parsed)) throw malformed()
  return parsed
}

function section(value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return {}
  if (!isObject(value) || Object.keys(value).length > mostClaims) throw malformed()
  for (const member of Object.values(value)) {
    if (member !== null && !isObject(member)) throw malformed()
  }
  return value
}

function requiredValue(member: unknown): string | undefined {
  if (!isObject(member)) return undefined
  return typeof member['value'] === 'string' ? member['value'] : undefined
}

/** One `value` or several `values`, OpenID Connect Core §5.5.1; without any only the claim is asked for. */
function acrValues(
  member: unknown,
): Pick<ParsedClaims, 'essentialAcr'> | Pick<ParsedClaims, 'requestedAcrValues'> {
  if (!isObject(member)) return {}
  const { value, values, essential } = member
  if (value === undefined && values === undefined) return {}
  const names = [value, values].flat().filter((each) => typeof each === 'string')
  return essential === true ? { essentialAcr: names } : { requestedAcrValues: names }
}

function malformed(): OAuthError {
  return new OAuthError('invalid_request', 'claims must be a JSON object as OpenID Connect Core 5.5 has it', {
    rule: 'oidc-core-5.5-claims-malformed',
  })
}
