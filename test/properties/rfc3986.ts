/*
 * Parses redirect URIs strictly by the grammar of RFC 3986 appendix A, one character at a time: a second
 * implementation that shares neither patterns nor a URL parser with the server.
 */

/** The parts of an http or https URI with an authority. */
export interface TakenApart {
  readonly scheme: string
  readonly userinfo: string | undefined
  readonly host: string
  readonly port: string | undefined
  readonly path: string
  readonly query: string | undefined
  readonly fragment: string | undefined
}

const unreserved = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'
const subDelims = "!$&'()*+,;="
const hexDigits = '0123456789ABCDEFabcdef'
const digits = '0123456789'

/** `scheme "://" authority path-abempty [ "?" query ] [ "#" fragment ]`; undefined when it is not one. */
export function takeApart(uri: string): TakenApart | undefined {
  let rest = uri
  const until = (stops: string) => {
    let length = 0
    while (length < rest.length && !stops.includes(rest.charAt(length))) length += 1
    const part = rest.slice(0, length)
    rest = rest.slice(length)
    return part
  }
  const scheme = until(':/?#')
  if (!rest.startsWith('://')) return undefined
  rest = rest.slice(3)
  const authority = until('/?#')
  const path = until('?#')
  const query = rest.startsWith('?') ? until('#').slice(1) : undefined
  const fragment = rest.startsWith('#') ? rest.slice(1) : undefined
  const at = authority.indexOf('@')
  const userinfo = at < 0 ? undefined : authority.slice(0, at)
  const hostAndPort = authority.slice(at + 1)
  const bracket = hostAndPort.indexOf(']')
  const colon = hostAndPort.indexOf(':', bracket < 0 ? 0 : bracket)
  const host = colon < 0 ? hostAndPort : hostAndPort.slice(0, colon)
  const port = colon < 0 ? undefined : hostAndPort.slice(colon + 1)
  const isValid =
    consistsOf(path, `${unreserved}${subDelims}:@/`) &&
    consistsOf(query ?? '', `${unreserved}${subDelims}:@/?`) &&
    consistsOf(fragment ?? '', `${unreserved}${subDelims}:@/?`)
  return isValid ? { scheme, userinfo, host, port, path, query, fragment } : undefined
}

/** Every character is allowed, or part of a percent-encoding. */
function consistsOf(text: string, allowed: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if (text.charAt(at) !== '%') {
      if (!allowed.includes(text.charAt(at))) return false
      continue
    }
    const [high, low] = [text.charAt(at + 1), text.charAt(at + 2)]
    if (high === '' || low === '' || !hexDigits.includes(high) || !hexDigits.includes(low)) return false
    at += 2
  }
  return true
}

/** A port a server can listen on, written without sign or leading zero. */
export function isPort(port: string): boolean {
  if (port === '' || port.startsWith('0') || port.length > 5) return false
  return [...port].every((digit) => digits.includes(digit)) && Number(port) <= 65_535
}

/** RFC 8252 §7.3: `http://127.0.0.1[:port]/path` or `http://[::1][:port]/path`, literally. */
export function isLoopback(
  uri: string,
  hosts: readonly string[] = ['127.0.0.1', '[::1]'],
  mayLackPath = false,
): boolean {
  const parts = takeApart(uri)
  if (parts === undefined || uri.length > 2048) return false
  const { scheme, userinfo, host, port, path, fragment } = parts
  return (
    scheme === 'http' &&
    userinfo === undefined &&
    hosts.includes(host) &&
    (port === undefined || isPort(port)) &&
    (path.startsWith('/') || (mayLackPath && path === '')) &&
    fragment === undefined
  )
}

/** RFC 6749 §3.1.2.3 by simple comparison, and the port of RFC 8252 §7.3. */
export function matches(registered: string, requested: string, anyPort: boolean): boolean {
  if (registered === requested) return true
  const hosts = ['127.0.0.1', '[::1]', 'localhost']
  if (!anyPort || ![registered, requested].every((uri) => isLoopback(uri, hosts, true))) return false
  const [one, other] = [takeApart(registered), takeApart(requested)]
  return one?.host === other?.host && one?.path === other?.path && one?.query === other?.query
}
