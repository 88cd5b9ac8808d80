import type { FastifyInstance } from 'fastify'
import type { Step } from './flow.ts'

/** The pages and documents that are no protocol endpoints, by the path below the issuer's. */
const otherSteps: readonly (readonly [path: RegExp, step: Step])[] = [
  [/^\/login\b/, 'sign-in'],
  [/^\/consent\b/, 'consent'],
  [/^\/account\b/, 'account'],
  [/^\/(?:openapi\.json$|\.well-known\/)/, 'discovery'],
  [/^\/api\//, 'API call'],
]

/** Parts of no flow: assets, health, and the pages that show flows. */
const unseen = /^(?:\/|\/assets\/.*|\/_dev(?:\/.*)?|\/livez|\/readyz|\/favicon\.ico)$/

/** What requests to the token endpoint are called, by their grant type. */
const grantSteps: Readonly<Record<string, Step>> = {
  authorization_code: 'code exchange',
  refresh_token: 'refresh',
}

/**
 * The step of a flow that a request is; undefined if it is part of none.
 * @param prefix The path of the issuer.
 */
export function stepOf(
  path: string,
  prefix: string,
  app: Pick<FastifyInstance, 'endpoints' | 'endpointTitle'>,
  grantType = '',
): Step | undefined {
  // The documents of an issuer within this one belong to its own trace.
  if (path.startsWith('/.well-known/'))
    return path.includes('/_dev/') && !prefix.includes('/_dev/') ? undefined : 'discovery'
  if (!path.startsWith(prefix)) return 'other'
  const below = path.slice(prefix.length) || '/'
  if (unseen.test(below)) return undefined
  const [endpoint] = [...app.endpoints].find(([, own]) => below === own || below.startsWith(`${own}/`)) ?? []
  if (endpoint === 'token') return grantSteps[grantType] ?? 'token'
  if (endpoint !== undefined) return app.endpointTitle(endpoint)
  return otherSteps.find(([pattern]) => pattern.test(below))?.[1] ?? 'other'
}
