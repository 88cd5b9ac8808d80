import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { OAuthError } from '../domain/errors.ts'
import type { AppDeps, Deps } from '../feature/deps.ts'
import type { MovableClock } from './clock.ts'

/** The dependencies of the parts of a development server. */
export interface DevDeps extends AppDeps {
  readonly clock: MovableClock
  /** Whether it is mounted below /_dev of another development server. */
  readonly isNested: boolean
  /** Builds another development server, to be mounted below this one, which logs its requests. */
  buildNested(deps: Deps): Promise<FastifyInstance>
}

/** A part of the development server. JSON routes are registered below `/_dev`, pages below the issuer. */
export type DevPart = FastifyPluginAsync<DevDeps>

/** Leaves a route out of the API description. */
export const hidden = { schema: { hide: true } } as const

/** Makes the error for something that does not exist. */
export function missing(rule: `lychgate-dev-${string}`, description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule, status: 404 })
}

/** Reads the client_id of HTTP Basic credentials, RFC 6749 §2.3.1. */
export function basicClientId(authorization: string): string | undefined {
  const [, credentials] = /^basic +(\S+)/i.exec(authorization) ?? []
  if (credentials === undefined) return undefined
  const [id = ''] = Buffer.from(credentials, 'base64').toString().split(':', 1)
  return new URLSearchParams(`id=${id}`).get('id') ?? id
}
