import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import AjvCompiler, { type ValidatorFactory } from '@fastify/ajv-compiler'
import {
  type Serializer,
  type SerializerFactory,
  SerializerSelector,
} from '@fastify/fast-json-stringify-compiler'
import type { FastifyHttpOptions } from 'fastify'
import type { Config } from '../config/schema.ts'
import { sendError, toOAuthError } from './errors.ts'
import { frameworkLog, type Lines } from './log.ts'
import { earlyHeaders, rejectMalformedHttp } from './malformed-http.ts'
import { assertDefaultsAreSent, Response } from './response.ts'
import { strictSchemas, type Validate } from './strict-schema.ts'

/** How Fastify is set up: strict parsing, strict schemas, slow clients cut off, and logs that keep secrets out. */
export function serverOptions(
  config: Config,
  parseParameters: (text: string) => Record<string, unknown>,
  lines: Lines,
): FastifyHttpOptions<Server> {
  assertDefaultsAreSent()
  return {
    logger: { level: config.logLevel, stream: lines },
    logController: frameworkLog(),
    genReqId: () => randomUUID(),
    // RFC 9700 §4.13: forwarded headers count only from the proxies that are configured.
    trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false,
    bodyLimit: config.limits.tokenBodyBytes,
    // A slow client holds a connection for these times at most, give or take the interval of the check.
    // A missing Host gets an error of ours: well-formed-http.ts.
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 1000,
      requireHostHeader: false,
      ServerResponse: Response,
    },
    requestTimeout: 30_000,
    connectionTimeout: 60_000,
    keepAliveTimeout: 65_000,
    // Requests on kept-alive connections still get their response; drain.ts then closes them.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    // A client_id may be a URL, of which each character may be encoded.
    routerOptions: { querystringParser: parseParameters, maxParamLength: 3 * 2048 },
    ajv: { customOptions: strictSchemas },
    schemaController: {
      compilersFactory: { buildSerializer: serializersOnDemand, buildValidator: validatorsOnDemand },
    },
    frameworkErrors: (error, request, reply) =>
      void sendError(toOAuthError(error, request), reply.headers(earlyHeaders)),
    clientErrorHandler: rejectMalformedHttp,
  }
}

/**
 * Compiles a response schema when the first such response is sent, not at start: most of them describe rejections
 * that hardly ever happen, and all of them together took half of the time until the server was ready.
 */
export const serializersOnDemand: SerializerFactory = (schemas, options) => {
  let compile: ReturnType<SerializerFactory> | undefined
  return (route) => {
    let serialize: Serializer | undefined
    return (value) => {
      compile ??= SerializerSelector()(schemas, options)
      serialize ??= compile(route)
      return serialize(value)
    }
  }
}

/** The same for the schema of a request: a server has a hundred routes, most of which get no request for long. */
export const validatorsOnDemand = ((...sources: Parameters<ReturnType<typeof AjvCompiler>>) => {
  let compile: ((route: unknown) => Validate) | undefined
  return (route: unknown): Validate => {
    let compiled: Validate | undefined
    const validate: Validate = (value) => {
      compile ??= AjvCompiler()(...sources) as (route: unknown) => Validate // one of two kinds, alike in this
      compiled ??= compile(route)
      const verdict = compiled(value)
      validate.errors = compiled.errors
      return verdict
    }
    return validate
  }
}) as unknown as ValidatorFactory // its type promises members of Ajv's functions that Fastify does not read
