/**
 * Mounted issuers: whole servers with their own stores, below paths of a development server and on its port.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { cookieName } from '../http/cookies.ts'
import type { Store } from '../storage/store.ts'
import { onlyOwnPages } from './only-local.ts'
import type { DevDeps } from './part.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly mounts: Mounts
  }
}

/** The paths at which other applications are mounted. */
export interface Mounts {
  /**
   * Passes requests below `path/{name}`, and those for its well-known documents (RFC 8414 §3.1 and RFC 9728 §3.1), to
   * the application that `open` returns; if it returns undefined, the development server handles the request itself.
   */
  add(path: string, open: OpenIssuer): void
  /** The request of this server that was passed to a mounted application. */
  outer(request: FastifyRequest): FastifyRequest | undefined
}

type OpenIssuer = (name: string, rest: string, method: string) => Promise<FastifyInstance | undefined>

/** Decorates `app.mounts`. Its hook is not encapsulated, because well-known documents are at the root. */
export const mounts = fp<DevDeps>(
  async (app, { config }) => {
    const assertOwnPage = onlyOwnPages(config)
    const families = new Map<string, OpenIssuer>()
    const outer = new WeakMap<IncomingMessage, FastifyRequest>()
    app.decorate('mounts', {
      add: (path, open) => void families.set(path, open),
      outer: (request) => outer.get(request.raw),
    })
    app.addHook('onRequest', async (request, reply) => {
      const path = issuerPath(request.url)
      for (const [family, open] of families) {
        if (!path.startsWith(`${family}/`)) continue
        await assertOwnPage(request)
        const [, name = '', rest = ''] = /^([^/]*)(.*)$/.exec(path.slice(family.length + 1)) ?? []
        const inner = await open(name, rest, request.method)
        if (inner === undefined) return
        outer.set(request.raw, request)
        reply.hijack()
        inner.routing(request.raw, reply.raw)
        return
      }
    })
  },
  { name: 'mounts' },
)

/** The path of a URL without a well-known string in front of it. */
function issuerPath(url: string): string {
  const [path = ''] = url.split('?', 1)
  return path.replace(/^\/\.well-known\/[^/]+(?=\/)/, '')
}

/** A server that is mounted below another one. */
export interface NestedIssuer {
  readonly issuer: string
  readonly app: FastifyInstance
  close(): Promise<void>
}

/**
 * Builds another server for mounting, with the keys and the clock of the outer one. Its rejections have the id of the
 * outer request, whose log line `lychgate explain` finds, and its cookies have its path.
 * @param config Its configuration; its issuer is below that of the outer server.
 * @param store Its store, closed with it.
 * @param prepare Adds hooks before it is ready.
 */
export async function openNested(
  { keys, clock, random, buildNested, config: { issuer: above } }: DevDeps,
  outer: Mounts['outer'],
  { config, store, prepare }: { config: Config; store: Store; prepare?: (app: FastifyInstance) => void },
): Promise<NestedIssuer> {
  const { issuer } = config
  const app = await buildNested({ config, store, keys, clock, random })
  const { pathname: path } = new URL(issuer)
  app.addHook('onRequest', async (request) => {
    request.id = outer(request)?.id ?? request.id
    // A fork continues with the sessions of the server that it was made from.
    request.headers.cookie = withCookiesOf(above, issuer, request.headers.cookie)
  })
  app.addHook('onSend', async (request, reply) => {
    const host = outer(request)
    if (host !== undefined) host.rejection = request.rejection
    const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
    if (cookies.length === 0) return
    // So that requests do not carry the cookies of all mounted issuers. `__Host-` cookies must have the path /.
    const own = cookies.map((cookie) =>
      cookie.startsWith('__Host-') ? cookie : cookie.replace(/; Path=\/(?=;|$)/, `; Path=${path}`),
    )
    reply.removeHeader('set-cookie').header('set-cookie', own)
  })
  prepare?.(app)
  await app.ready()
  const close = async () => {
    await app.close()
    await store.close()
  }
  return { issuer, app, close }
}

/** Adds the cookies of one issuer under the names of another, where the browser has none of those. */
function withCookiesOf(from: string, to: string, header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const [fromEnd, toEnd] = [from, to].map((issuer) => cookieName(issuer, 'session').split('session')[1] ?? '')
  const sent = header.split(/; */)
  const nameOf = (pair: string) => pair.split('=', 1)[0] ?? ''
  const names = new Set(sent.map(nameOf))
  const twins = sent.flatMap((pair) => {
    const name = nameOf(pair)
    const twin = name.slice(0, name.length - (fromEnd ?? '').length) + toEnd
    return name.endsWith(fromEnd ?? '') && !names.has(twin) ? [twin + pair.slice(name.length)] : []
  })
  return [...sent, ...twins].join('; ')
}
