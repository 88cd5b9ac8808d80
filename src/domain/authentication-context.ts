import { check } from './check.ts'
import type { Client, RequestedAcr } from './model.ts'

/**
 * The authentication context classes a sign-in can have here, OpenID Connect Core §2, strongest first, and the method
 * of RFC 8176 it must have been by: phishing-resistant (OpenID Connect EAP ACR Values §2), more than one factor
 * (REFEDS), and a password over TLS (SAML).
 */
const methodOfClass: ReadonlyMap<string, string> = new Map([
  ['phr', 'pop'],
  ['https://refeds.org/profile/mfa', 'mfa'],
  ['urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport', 'pwd'],
])

/** The class of a sign-in with more than one factor. */
export const multiFactor = 'https://refeds.org/profile/mfa'

/** The class of a sign-in that cannot be phished: with a passkey. */
export const phishingResistant = 'phr'

/** The classes that `acr_values` may name with effect, OpenID Connect Discovery §3. */
export const contextClasses: readonly string[] = [...methodOfClass.keys()]

/** The factors of a sign-in. A passkey with user verification counts as two factors, a code as a second one. */
export interface Factors {
  readonly password: boolean
  readonly codes: boolean
  readonly passkey: boolean
}

/** Returns the authentication method references of a sign-in (RFC 8176, OpenID Connect EAP ACR Values §2). */
export function methodsOf({ password, codes, passkey }: Factors, ownerChecked = false): readonly string[] {
  const isMulti = (passkey && (password || ownerChecked)) || (password && codes)
  const shown = [password && 'pwd', codes && 'otp', passkey && 'pop', passkey && 'user', isMulti && 'mfa']
  return shown.filter((method) => method !== false)
}

/** Every class a sign-in of a user with these factors can have. */
export function availableAcrs(factors: Factors): readonly string[] {
  const methods = methodsOf(factors, true)
  return contextClasses.filter((name) => isOfClass(methods, name))
}

/**
 * Returns the `acr` of a sign-in (OpenID Connect Core §2). If it satisfies several, the first requested one
 * (OpenID Connect Core §3.1.2.1), or else the strongest.
 */
export function contextClassOf(methods: readonly string[], wanted?: RequestedAcr): string | undefined {
  const requested = wanted?.values.find((name) => isOfClass(methods, name))
  return requested ?? contextClasses.find((name) => isOfClass(methods, name))
}

/** Whether a sign-in by these methods satisfies none of the requested classes. */
export function lacksAcr(methods: readonly string[], wanted: RequestedAcr | undefined): boolean {
  return wanted !== undefined && !wanted.values.some((name) => isOfClass(methods, name))
}

/** Returns the classes that a client requests where a request names none (OpenID Connect Registration §2). */
export function defaultAcrValues({ extra }: Pick<Client, 'extra'>): readonly string[] {
  const values = extra?.['default_acr_values']
  return Array.isArray(values) ? values.map(String) : []
}

/**
 * Returns the requested classes that this server supports, or undefined if there are none. An essential `acr` that no
 * sign-in here can satisfy is a failed authentication (OpenID Connect Core §5.5.1.1).
 * @param essential The values of an essential `acr`, any of which would do.
 * @param voluntary The values of `acr_values` or of a voluntary `acr`.
 * @throws {OAuthError} `unmet_authentication_requirements`
 */
export function requestedAcr(
  essential: readonly string[] | undefined,
  voluntary: readonly string[],
): RequestedAcr | undefined {
  const values = (essential ?? voluntary).filter(isOffered)
  if (values.length > 0) return { values, essential: essential !== undefined }
  check(
    essential === undefined,
    'oidc-core-5.5.1.1-acr-essential',
    'unmet_authentication_requirements',
    'claims asks for an acr that no sign-in here can have',
    { stored: contextClasses, received: essential, passed: 'no essential acr that cannot be met' },
  )
  return undefined
}

function isOffered(name: string): boolean {
  return methodOfClass.has(name)
}

function isOfClass(methods: readonly string[], name: string): boolean {
  const method = methodOfClass.get(name)
  return method !== undefined && methods.includes(method)
}
