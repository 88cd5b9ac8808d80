import { OAuthError } from './errors.ts'

/** What a sign-in by each method of RFC 8176 is worth as an authentication context class, OpenID Connect Core §2. */
const classOfMethod: ReadonlyMap<string, string> = new Map([
  ['pwd', 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'],
])

/** The classes that `acr_values` may name with effect, OpenID Connect Discovery §3. */
export const contextClasses: readonly string[] = [...classOfMethod.values()]

/** The `acr` of a sign-in, OpenID Connect Core §2: what it was, whatever was asked for. */
export function contextClassOf(methods: readonly string[]): string | undefined {
  return methods.map((method) => classOfMethod.get(method)).find((name) => name !== undefined)
}

/**
 * An essential `acr` that no sign-in here can have is a failed authentication, OpenID Connect Core §5.5.1.1.
 * @param wanted The values asked for, any of which would do; absent when none is essential.
 * @throws {OAuthError} `unmet_authentication_requirements`
 */
export function requireContextClass(wanted: readonly string[] | undefined): void {
  if (wanted === undefined || wanted.some((name) => contextClasses.includes(name))) return
  throw new OAuthError(
    'unmet_authentication_requirements',
    'claims asks for an acr that no sign-in here can have',
    { rule: 'oidc-core-5.5.1.1-acr-essential', stored: contextClasses, received: wanted },
  )
}
