import type { FastifyInstance } from 'fastify'
import { declared } from '../../features.ts'
import type { Step } from './flow.ts'

/** Pages and documents that are not protocol endpoints, by their path below the issuer. */
const otherSteps: readonly (readonly [path: RegExp, step: Step])[] = [
  [/^\/login\b/, 'sign-in'],
  [/^\/consent\b/, 'consent'],
  [/^\/account\b/, 'account'],
  [/^\/(?:openapi\.json$|\.well-known\/)/, 'discovery'],
  [/^\/api\//, 'API call'],
]

/** Requests that belong to no flow: assets, health, and the development pages. */
const unseen = /^(?:\/|\/assets\/.*|\/_dev(?:\/.*)?|\/livez|\/readyz|\/favicon\.ico)$/

/**
 * Names the step of a flow to which a request belongs; undefined if it belongs to none.
 * @param prefix The path of the issuer.
 */
export function stepOf(
  path: string,
  prefix: string,
  app: Pick<FastifyInstance, 'endpoints' | 'endpointTitle'>,
  grantType = '',
): Step | undefined {
  // The documents of a mounted issuer belong to its own trace.
  if (path.startsWith('/.well-known/'))
    return path.includes('/_dev/') && !prefix.includes('/_dev/') ? undefined : 'discovery'
  if (!path.startsWith(prefix)) return 'other'
  const below = path.slice(prefix.length) || '/'
  if (unseen.test(below)) return undefined
  const [endpoint] = [...app.endpoints].find(([, own]) => below === own || below.startsWith(`${own}/`)) ?? []
  if (endpoint === 'token') return declared.grantTypes[grantType]?.title ?? 'token'
  if (endpoint !== undefined) return app.endpointTitle(endpoint)
  return otherSteps.find(([pattern]) => pattern.test(below))?.[1] ?? 'other'
}
