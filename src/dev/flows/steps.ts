import type { Step } from './flow.ts'

/** The first that matches, by the path below the issuer's. */
const steps: readonly (readonly [path: RegExp, step: Step])[] = [
  [/^\/api\/oauth\/register\b/, 'registration'],
  [/^\/oauth\/logout\b/, 'sign-out'],
  [/^\/login\b/, 'sign-in'],
  [/^\/consent\b/, 'consent'],
  [/^\/account\b/, 'account'],
  [/^\/openapi\.json$/, 'discovery'],
  [/^\/api\//, 'API call'],
]

/** Not part of any flow: what the server is made of, and what watches it. */
const unseen = /^(?:\/|\/assets\/.*|\/_dev(?:\/.*)?|\/livez|\/readyz|\/favicon\.ico)$/

/** What endpoints are called in a flow, where that is not their name. */
const endpointSteps: Readonly<Record<string, Step>> = {
  jwks: 'keys',
  userinfo: 'UserInfo',
  end_session: 'sign-out',
}

/** What requests to the token endpoint are called, by their grant type. */
const grantSteps: Readonly<Record<string, Step>> = {
  authorization_code: 'code exchange',
  refresh_token: 'refresh',
}

/**
 * What a request is in a flow; undefined for one that is part of none.
 * @param prefix The path of the issuer.
 * @param endpoint The name of the endpoint that served it, see http/endpoints.ts.
 */
export function stepOf(
  path: string,
  prefix: string,
  endpoint: string | undefined,
  grantType = '',
): Step | undefined {
  // Those of an issuer within this one are that one's.
  if (path.startsWith('/.well-known/'))
    return path.includes('/_dev/') && !prefix.includes('/_dev/') ? undefined : 'discovery'
  if (!path.startsWith(prefix)) return 'other'
  const below = path.slice(prefix.length) || '/'
  if (unseen.test(below)) return undefined
  if (below.startsWith('/.well-known/')) return 'discovery'
  if (endpoint === 'token') return grantSteps[grantType] ?? 'token'
  if (endpoint !== undefined) return endpointSteps[endpoint] ?? endpoint.replaceAll('_', ' ')
  return steps.find(([pattern]) => pattern.test(below))?.[1] ?? 'other'
}
