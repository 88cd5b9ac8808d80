/**
 * URLs of database and mail servers, which may hold a password. One that is not percent-encoded moves the place where
 * parsers cut: what they take for the host may be a part of it.
 */

/** What to do about a password that a URL cannot hold as it is, RFC 3986 §2.1. */
export const howToEncode =
  'in its user name and password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25'

const form =
  /^([a-z]+:\/\/)(?:([^:/?#]*?)(:[^/?#]*)?@)?((?:\[[\da-f:.]+\]|[^:@/?#,\s[\]]*)(?::\d{1,5})?)(\/[^@?#]*)?(\?[^@#]*)?$/i

/** Whether every parser finds the same host in the URL, and no `@` of a password can be meant elsewhere. */
export function isUnambiguousUrl(url: string): boolean {
  return form.test(url)
}

/**
 * Returns the URL of a store or mail server as it may be shown: without password and query, and nothing of it where it
 * is ambiguous.
 */
export function shownUrl(url: string): string {
  if (url.startsWith('sqlite:')) return url
  const [, scheme = '', user, password = '', host = '', path = '', query = ''] = form.exec(url) ?? []
  if (scheme === '') return '***'
  const sender = user === undefined ? '' : `${user}${password && ':***'}@`
  return `${scheme}${sender}${host}${path}${query && '?***'}`
}

/**
 * Returns why a server cannot be reached. Where its URL is ambiguous, the message of the driver may contain a part of
 * the password: only its code remains.
 */
export function connectionFault(url: string, fault: unknown): string {
  const { message, code } = Object(fault) as { readonly message?: string; readonly code?: unknown } // any thrown value
  if (isUnambiguousUrl(url) && !(fault instanceof URIError)) return message || String(code ?? fault)
  return `${code ?? 'the URL cannot be read'}; ${howToEncode}`
}
