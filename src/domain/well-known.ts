/** A well-known URL with its string inserted between host and path, RFC 8414 §3.1 and RFC 9728 §3.1. */
export function wellKnownUrl(identifier: string, name: string): string {
  const { origin, pathname, search } = new URL(identifier)
  return `${origin}/.well-known/${name}${pathname === '/' ? '' : pathname}${search}`
}
