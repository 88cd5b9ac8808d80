import type { Step } from './flow.ts'

/** The first that matches, by the path below the issuer's. */
const steps: readonly (readonly [path: RegExp, step: Step])[] = [
  [/^\/api\/oauth\/jwks$/, 'keys'],
  [/^\/api\/oauth\/register\b/, 'registration'],
  [/^\/oauth\/authorize$/, 'authorization'],
  [/^\/oauth\/logout\b/, 'sign-out'],
  [/^\/login\b/, 'sign-in'],
  [/^\/consent\b/, 'consent'],
  [/^\/account\b/, 'account'],
  [/^\/api\/oauth\/userinfo$/, 'UserInfo'],
  [/^\/api\/oauth\/introspect$/, 'introspection'],
  [/^\/api\/oauth\/revoke$/, 'revocation'],
  [/^\/openapi\.json$/, 'discovery'],
  [/^\/api\//, 'API call'],
]

/** Not part of any flow: what the server is made of, and what watches it. */
const unseen = /^(?:\/|\/assets\/.*|\/_dev(?:\/.*)?|\/livez|\/readyz|\/favicon\.ico)$/

/**
 * What a request is in a flow; undefined for one that is part of none.
 * @param prefix The path of the issuer.
 */
export function stepOf(path: string, prefix: string, grantType: string | undefined): Step | undefined {
  // Those of an issuer within this one are that one's.
  if (path.startsWith('/.well-known/'))
    return path.includes('/_dev/') && !prefix.includes('/_dev/') ? undefined : 'discovery'
  if (!path.startsWith(prefix)) return 'other'
  const below = path.slice(prefix.length) || '/'
  if (unseen.test(below)) return undefined
  if (below.startsWith('/.well-known/')) return 'discovery'
  if (below === '/api/oauth/token') {
    if (grantType === 'authorization_code') return 'code exchange'
    return grantType === 'refresh_token' ? 'refresh' : 'token'
  }
  return steps.find(([pattern]) => pattern.test(below))?.[1] ?? 'other'
}
