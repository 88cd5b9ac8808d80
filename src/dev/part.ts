import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { AppDeps, Deps } from '../deps.ts'
import { OAuthError } from '../domain/errors.ts'
import type { MovableClock } from './clock.ts'

/** The dependencies of the parts of a development server: those of the application, and a clock that can be moved. */
export interface DevDeps extends AppDeps {
  readonly clock: MovableClock
  /** It is mounted below /_dev of another development server, with its own store. */
  readonly isNested: boolean
  /** Builds another development server, to be mounted below this one. Its requests are lines of the outer log. */
  buildNested(deps: Deps): Promise<FastifyInstance>
}

/** A part of the development server. Parts with JSON routes are registered below `/_dev`, pages below the issuer. */
export type DevPart = FastifyPluginAsync<DevDeps>

/** Leaves a route out of the API description. */
export const hidden = { schema: { hide: true } } as const

/** The error of a development route that is asked for something that does not exist. */
export function missing(rule: `lychgate-dev-${string}`, description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule, status: 404 })
}

/** The client that HTTP Basic credentials name, RFC 6749 §2.3.1. */
export function basicClientId(authorization: string): string | undefined {
  const [, credentials] = /^basic +(\S+)/i.exec(authorization) ?? []
  if (credentials === undefined) return undefined
  const [id = ''] = Buffer.from(credentials, 'base64').toString().split(':', 1)
  return new URLSearchParams(`id=${id}`).get('id') ?? id
}
