/**
 * Issuers within an issuer. A development server answers some paths by another application, a whole server with a store
 * of its own, on the same port: each is made when it is first asked for, and costs nothing until then.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { onlyOwnPages } from './only-local.ts'
import type { DevDeps } from './plugin.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly mounts: Mounts
  }
}

/** The issuer at `path/name`, or undefined where the development server itself answers. */
export type OpenIssuer = (name: string, rest: string, method: string) => Promise<FastifyInstance | undefined>

/** Which paths are answered by other applications. */
export interface Mounts {
  /**
   * What is asked below `path/{name}` is answered by the application `open` gives, its well-known documents at their
   * inserted place too, RFC 8414 §3.1 and RFC 9728 §3.1. Who opened it closes it.
   */
  add(path: string, open: OpenIssuer): void
  /** The request of this server that a mounted application answers. */
  outer(request: FastifyRequest): FastifyRequest | undefined
}

/** Decorates `app.mounts`. Not encapsulated: well-known documents are asked for at the root. */
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

/** The path below an issuer, whether it stands in front or behind a well-known string. */
function issuerPath(url: string): string {
  const [path = ''] = url.split('?', 1)
  return path.replace(/^\/\.well-known\/[^/]+(?=\/)/, '')
}

/**
 * Makes an application that is not ready yet one that lives at `path` within another: its rejections carry the id of the
 * outer request, which has the log line and is what `lychgate explain` finds, and its cookies belong to its path.
 */
export function settle(app: FastifyInstance, path: string, outer: Mounts['outer']): void {
  app.addHook('onRequest', async (request) => {
    request.id = outer(request)?.id ?? request.id
  })
  app.addHook('onSend', async (request, reply) => {
    const host = outer(request)
    if (host !== undefined) host.rejection = request.rejection
    const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
    if (cookies.length === 0) return
    // A longer path comes first in what a browser sends, RFC 6265 §5.4, and of one name the first counts. `__Host-`
    // cookies have no path of their own.
    const own = cookies.map((cookie) =>
      cookie.startsWith('__Host-') ? cookie : cookie.replace(/; Path=\/(?=;|$)/, `; Path=${path}`),
    )
    reply.removeHeader('set-cookie').header('set-cookie', own)
  })
}
