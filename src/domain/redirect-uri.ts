/** Longest redirect URI that is looked at, in characters. */
const longestUri = 2048

// Literally RFC 3986 §3.3 and §3.4: no space, control character, backslash, fragment or non-ASCII, and
// every percent sign followed by two hexadecimal digits. The path may be empty, RFC 3986 §4.3.
const path = String.raw`(?:/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?`
const query = String.raw`(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?`

const loopbackForm = new RegExp(
  String.raw`^http://(?<host>127\.0\.0\.1|\[::1\]|localhost)(?::(?<port>[1-9]\d{0,4}))?(?<rest>${path}${query})$`,
)
const httpsForm = new RegExp(
  String.raw`^https://(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(?<port>[1-9]\d{0,4}))?${path}${query}$`,
)

// In lower case, as browsers send it. `scheme:/path`, `scheme:///path` or `scheme://host/path`, RFC 8252 §7.1.
const privateUseForm = new RegExp(
  String.raw`^(?<scheme>[a-z][a-z0-9+.-]*):(?:(?=/(?!/))|//(?=/)|//[\w.-]+)${path}${query}$`,
)

/** Schemes that run something, read something or open a program of the system; no app has them as its own. */
const reservedSchemes =
  /^(?:http.*|ws|wss|ftps?|file|filesystem|data|blob|about|javascript|vbscript|jscript|livescript|intent|content|android-app|ms-.*|search-ms|view-source|chrome.*|resource|jar|mhtml|res|shell|mailto|tel|sms|urn)$/i

/** The literals of RFC 8252 §7.3. */
const loopbackLiterals: readonly string[] = ['127.0.0.1', '[::1]']

/**
 * Whether the text is `http://127.0.0.1[:port]/path` or `http://[::1][:port]/path`, RFC 8252 §7.3. It is a whole URI
 * with its path, RFC 8252 §8.4, and nothing else is for native clients, OpenID Connect Registration §2. The text
 * itself decides, as OpenID Connect Core §14 compares texts: a URL parser would turn `127.1`, `0x7f.1` and
 * `2130706433` into the same host.
 * @param extraHosts Host names accepted in addition to the literals (RFC 8252 §8.3); only `localhost` is supported.
 */
export function isLoopbackRedirect(uri: string, extraHosts: readonly string[] = []): boolean {
  const redirect = splitLoopback(uri)
  if (!redirect?.rest.startsWith('/')) return false
  return [...loopbackLiterals, ...extraHosts].includes(redirect.host)
}

/** Whether the text leads to this computer, with or without a path: what an operator may register as loopback. */
export function isLoopbackUri(uri: string): boolean {
  return splitLoopback(uri) !== undefined
}

/** What a text that means a loopback redirect lacks of one, and the form with both. */
export function missingOfLoopback(
  text: string,
): { readonly missing: readonly ('scheme' | 'path')[]; readonly form: string } | undefined {
  const written = splitLoopback(text)
  const meant = written ?? splitLoopback(`http://${text}`)
  if (meant === undefined) return undefined
  const missing = [
    ...(written === undefined ? (['scheme'] as const) : []),
    ...(meant.rest.startsWith('/') ? [] : (['path'] as const)),
  ]
  return missing.length === 0 ? undefined : { missing, form: `http://${meant.host}${meant.port}/path` }
}

/**
 * Whether the text is an absolute https URI without userinfo and fragment, RFC 6749 §3.1.2. Its path may be empty,
 * RFC 3986 §4.3: express-openid-connect and Spring Security send `https://app.example.com` after a logout.
 */
export function isHttpsRedirect(uri: string): boolean {
  const match = uri.length <= longestUri ? httpsForm.exec(uri) : null
  // A host such as 999.0.0.1 has the form of an IP address but is none.
  return match !== null && isPort(match.groups?.['port']) && URL.canParse(uri)
}

/**
 * Returns the scheme of a redirect to an app of the device, RFC 8252 §7.1; undefined for any other text, and for
 * schemes that are not an app's own.
 */
export function privateUseScheme(uri: string): string | undefined {
  const scheme = uri.length <= longestUri ? privateUseForm.exec(uri)?.groups?.['scheme'] : undefined
  return scheme === undefined || reservedSchemes.test(scheme) ? undefined : scheme
}

/**
 * Returns why an operator cannot add a redirect URI, as the end of a sentence about it; undefined if it can be added:
 * https, loopback, and what an app of the device has as its own.
 * @param anyScheme Accepts schemes without a dot, which any other app may have, too: RFC 8252 §7.1 discourages them.
 */
export function redirectFault(
  uri: string,
  { anyScheme }: { readonly anyScheme: boolean },
): string | undefined {
  if (isHttpsRedirect(uri) || isLoopbackUri(uri)) return undefined
  const scheme = privateUseScheme(uri)
  if (scheme !== undefined) {
    if (anyScheme || scheme.includes('.')) return undefined
    return 'has a scheme without a dot, which any other app may take; use com.example.app:/path, or set any-redirect-scheme to true'
  }
  const written = /^([a-z][a-z0-9+.-]*):/i.exec(uri)?.[1] ?? ''
  if (/^http$/i.test(written))
    return 'must be an https or http loopback URI: http sends the code in the clear; docs/home-network.md shows https at home'
  if (reservedSchemes.test(written) && !/^https$/i.test(written))
    return `must be an https or http loopback URI, or one of an app: the scheme ${written.toLowerCase().slice(0, 30)} is not an app's own`
  return 'must be an https or http loopback URI, or one of an app such as com.example.app:/path, without a fragment'
}

/**
 * Whether a requested redirect URI is the registered one: by simple string comparison, RFC 6749 §3.1.2.3.
 * @param anyPort For native clients: the port of a loopback redirect, and nothing else of it, may differ or be
 * missing on either side, RFC 8252 §7.3. `localhost` is included, RFC 9700 §2.1: whether such a redirect is
 * accepted at all was decided at registration.
 */
export function redirectUriMatches(
  registered: string,
  requested: string,
  { anyPort }: { readonly anyPort: boolean },
): boolean {
  if (registered === requested) return true
  if (!anyPort) return false
  const [expected, given] = [splitLoopback(registered), splitLoopback(requested)]
  if (expected === undefined || given === undefined) return false
  return expected.host === given.host && expected.rest === given.rest
}

/**
 * Whether the query of a redirect URI already has a parameter of the response, which would then be repeated against
 * RFC 6749 §3.1.
 */
export function hasResponseParameter(uri: string): boolean {
  const query = uri.split('?').slice(1).join('?')
  return [...new URLSearchParams(query).keys()].some((name) => responseParameters.includes(name))
}

const responseParameters: readonly string[] = [
  'code',
  'state',
  'iss',
  'error',
  'error_description',
  'error_uri',
]

function splitLoopback(
  uri: string,
): { readonly host: string; readonly port: string; readonly rest: string } | undefined {
  const { host, port, rest } = (uri.length <= longestUri && loopbackForm.exec(uri)?.groups) || {}
  if (host === undefined || rest === undefined || !isPort(port)) return undefined
  return { host, port: port === undefined ? '' : `:${port}`, rest }
}

function isPort(text: string | undefined): boolean {
  return text === undefined || Number(text) <= 65535
}
