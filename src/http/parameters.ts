import formbody from '@fastify/formbody'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import type { OAuthError } from '../domain/errors.ts'
import {
  assertNoneRepeated,
  type ParameterLimits,
  type Parameters,
  parseParameters,
} from '../domain/parameters.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The parameters that may repeat, such as the check boxes of one name. Absent: `resource`. */
    repeats?: readonly string[]
  }
}

/** Parameters that could not be read: a parser must not throw, so the error is kept for the handler. */
class Unreadable {
  readonly rejection: OAuthError
  constructor(rejection: OAuthError) {
    this.rejection = rejection
  }
}

/** Our parser of query strings and form bodies, for Fastify's parser options. */
export function parameterParser(limits: ParameterLimits): (text: string) => Record<string, unknown> {
  return (text) => {
    try {
      return parseParameters(text, limits) as Record<string, unknown> // readonly falls away at Fastify's border
    } catch (rejection) {
      return new Unreadable(rejection as OAuthError) as unknown as Record<string, unknown> // parseParameters throws only this
    }
  }
}

/**
 * The parameters of a parsed query or form body.
 * @throws {OAuthError} `invalid_request` when they could not be read.
 */
export function parametersOf(parsed: unknown): Parameters {
  if (parsed instanceof Unreadable) throw parsed.rejection
  return (parsed ?? {}) as Parameters // the only other thing the parser returns
}

/** Whether a form body could be decoded, RFC 6749 appendix B; limits and repeated parameters are not looked at. */
export function isFormEncoded(parsed: unknown): boolean {
  return !(parsed instanceof Unreadable) || parsed.rejection.detail.rule !== 'rfc6749-B-form-encoding'
}

/** The longest URL to redirect a browser to: Node rejects request heads over 16 KiB, and cookies need room too. */
export const longestUrl = 8000

/**
 * Rejects a form that could not be read, or repeats a parameter that its route does not declare, RFC 6749 §3.2; before
 * any schema sees it.
 */
export function assertForm(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  assertNoneRepeated(parametersOf(request.body), request.routeOptions.config?.repeats)
  done()
}

/** Accepts form bodies only: JSON, multipart and plain text are rejected with 415. */
export const formBodies = fp<{ config: Pick<Config, 'limits'> }>(
  async (app, { config }) => {
    app.removeAllContentTypeParsers()
    await app.register(formbody, {
      parser: parameterParser(config.limits),
      bodyLimit: config.limits.tokenBodyBytes,
    })
  },
  { name: 'form-bodies' },
)
