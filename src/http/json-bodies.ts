import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { OAuthError } from '../domain/errors.ts'
import { isNestedDeeper } from '../domain/strict-json.ts'

/** Accepts JSON bodies, where a scope accepts no other kind of body. */
export const jsonBodies = fp<{ config: Pick<Config, 'limits'> }>(
  async (app, { config }) => {
    app.removeContentTypeParser('application/json')
    addJsonParser(app, config)
  },
  { name: 'json-bodies' },
)

/**
 * Accepts only JSON bodies in this scope: another content type gets 415 and is not read. An empty body is not an error
 * here, as clients send the content type with DELETE too.
 */
export function acceptOnlyJson(
  app: FastifyInstance,
  config: Pick<Config, 'limits'>,
  bodyLimit?: number,
): void {
  app.removeAllContentTypeParsers()
  addJsonParser(app, config, { mayBeEmpty: true, ...(bodyLimit !== undefined && { bodyLimit }) })
}

/**
 * The one parser of JSON bodies. It counts the levels in the text, before a parser or a schema walks the value: what is
 * written with recursion would let the sender choose the depth of our stack.
 */
function addJsonParser(
  app: FastifyInstance,
  { limits }: Pick<Config, 'limits'>,
  { mayBeEmpty = false, bodyLimit }: { mayBeEmpty?: boolean; bodyLimit?: number } = {},
): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  const options = { parseAs: 'buffer', ...(bodyLimit !== undefined && { bodyLimit }) } as const
  app.addContentTypeParser<Buffer>('application/json', options, (request, body, done) => {
    if (body.length === 0 && mayBeEmpty) return done(null, undefined)
    const { unreadableBody } = request.routeOptions.config
    const rule = unreadableBody === undefined ? 'lychgate-request-well-formed' : 'rfc7591-3-post-json'
    const fail = (description: string) =>
      done(new OAuthError(unreadableBody ?? 'invalid_request', description, { rule }))
    const text = decoded(body)
    if (text === undefined) return fail('the body is not UTF-8')
    if (isNestedDeeper(limits.jsonDepth, text))
      return fail(`the body is nested deeper than ${limits.jsonDepth} levels (limits.jsonDepth)`)
    return parse(request, text, done)
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Strict: a decoder that replaces invalid bytes would store another text than the client sent, RFC 8259 §8.1. */
function decoded(body: Buffer): string | undefined {
  try {
    return utf8.decode(body)
  } catch {
    return undefined
  }
}
