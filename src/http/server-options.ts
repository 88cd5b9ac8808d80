import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type FastifyHttpOptions, LogController } from 'fastify'
import type { Config } from '../config/schema.ts'
import { sendError, toOAuthError } from './errors.ts'
import { logLines } from './log-lines.ts'
import { serializersOnDemand, validatorsOnDemand } from './route-compilers.ts'

/** How Fastify is set up: strict parsing, strict schemas, slow clients cut off, and logs that keep secrets out. */
export function serverOptions(
  config: Config,
  parseParameters: (text: string) => Record<string, unknown>,
  logTo: { write(line: string): void } | undefined,
): FastifyHttpOptions<Server> {
  return {
    logger: {
      level: config.logLevel,
      stream: logTo ?? logLines(),
    },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    // RFC 9700 §4.13: forwarded headers count only from the proxies that are configured.
    trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false,
    bodyLimit: config.limits.tokenBodyBytes,
    // A slow client holds a connection for as long as these say, give or take the interval they are looked at.
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 1000 },
    requestTimeout: 30_000,
    connectionTimeout: 60_000,
    keepAliveTimeout: 65_000,
    // Requests on kept-alive connections are answered to the end; drain.ts tells them to leave.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    routerOptions: { querystringParser: parseParameters, maxParamLength: 200 },
    // Coercion would turn "x" into ["x"] and 5 into "5", and accept what RFC 7591 wants refused. And the
    // schemas are TypeBox's: compiling the schema of schemas to check them is a tenth of a start.
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        validateSchema: false,
      },
    },
    schemaController: {
      compilersFactory: { buildSerializer: serializersOnDemand, buildValidator: validatorsOnDemand },
    },
    frameworkErrors: (error, request, reply) =>
      void sendError(toOAuthError(error, request), reply.headers(earlyHeaders)),
    clientErrorHandler: refuseMalformedHttp,
  }
}

/** What refusals carry that come too early for the hooks of headers.ts. */
const earlyHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
} as const

/** HTTP that Node cannot parse gets the OAuth form too. */
function refuseMalformedHttp(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, description } = malformedHttp[error.code ?? ''] ?? {
    status: '400 Bad Request',
    description: 'the request is not valid HTTP',
  }
  const body = JSON.stringify({ error: 'invalid_request', error_description: description })
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...earlyHeaders,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`)
}

const malformedHttp: Readonly<Record<string, { readonly status: string; readonly description: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    description: 'the request line and headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    description: 'the request took too long to arrive',
  },
}
