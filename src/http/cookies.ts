import cookie, { type SerializeOptions } from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Seconds } from '../domain/model.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { epoch } from '../system/system.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly cookies: Cookies
  }
}

/** Every cookie that the server sets. */
export type CookieKind = 'session' | 'others' | 'browser' | 'device' | 'language'

/** The cookies of this server in a browser. Only this interface sets and reads cookies. */
export interface Cookies {
  read(request: FastifyRequest, kind: CookieKind): string | undefined
  /** @param maxAge Absent: the cookie lasts until the browser is closed. */
  set(reply: FastifyReply, kind: CookieKind, value: string, maxAge?: Seconds): void
  clear(reply: FastifyReply, kind: CookieKind): void
  /**
   * Returns a cookie under its name of the version before, if there is none under its name of today. Servers of one
   * host shared that name: the value counts only if it opens something of this store.
   */
  readFormer(request: FastifyRequest, kind: CookieKind): string | undefined
  /** Sets a cookie that already counts in this request. */
  adopt(reply: FastifyReply, kind: CookieKind, value: string): void
  clearFormer(reply: FastifyReply, kind: CookieKind): void
}

/**
 * Returns the name of a cookie. Browsers send cookies to every port of a host (RFC 6265 §8.5), and `__Host-` ones to
 * every path: the suffix keeps servers of one host apart.
 */
export function cookieName(issuer: string, kind: CookieKind): string {
  const { host, pathname } = new URL(issuer)
  return `${formerName(issuer, kind)}_${hashSecret(`${host}${pathname}`).slice(0, 10)}`
}

function formerName(issuer: string, kind: CookieKind): string {
  return `${issuer.startsWith('https:') ? '__Host-' : ''}lychgate_${kind}`
}

/** Decorates `app.cookies`. On https the cookies carry the `__Host-` prefix. */
export const cookies = fp<Needs<'service'>>(
  async (app, { service: { issuer, https } }) => {
    // The library would ask at the end of each request whether there are cookies, and most are no browser's.
    let library: Pick<FastifyInstance, 'parseCookie' | 'serializeCookie'> | undefined
    await app.register(async (scope) => {
      await scope.register(cookie, { hook: false })
      library = scope
    })
    if (library === undefined) throw new Error('cookies: the library was not loaded')
    const { parseCookie, serializeCookie } = library
    const options: SerializeOptions = { path: '/', httpOnly: true, sameSite: 'lax', secure: https }
    const names = new Map<CookieKind, string>()
    const nameOf = (kind: CookieKind) => {
      const name = names.get(kind) ?? cookieName(issuer, kind)
      names.set(kind, name)
      return name
    }
    // Parsed where a cookie is read: most requests do not come from a browser.
    const parsed = new WeakMap<FastifyRequest, Record<string, string | undefined>>()
    const sentBy = (request: FastifyRequest) => {
      const sent = parsed.get(request) ?? parseCookie(request.headers.cookie ?? '')
      parsed.set(request, sent)
      return sent
    }
    const fields = new WeakMap<FastifyReply, Map<string, string>>()
    /** The last value of a name counts, RFC 6265 §4.1.1. */
    const setField = (reply: FastifyReply, name: string, value: string, more: SerializeOptions = {}) => {
      const set = fields.get(reply) ?? new Map<string, string>()
      fields.set(reply, set.set(name, serializeCookie(name, value, { ...options, ...more })))
      reply.removeHeader('set-cookie').header('set-cookie', [...set.values()])
    }
    const remove = (reply: FastifyReply, name: string) =>
      setField(reply, name, '', { expires: epoch, maxAge: 0 })
    app.decorate('cookies', {
      read: (request, kind) => sentBy(request)[nameOf(kind)],
      set: (reply, kind, value, maxAge) =>
        setField(reply, nameOf(kind), value, maxAge === undefined ? {} : { maxAge }),
      clear: (reply, kind) => remove(reply, nameOf(kind)),
      readFormer: (request, kind) =>
        sentBy(request)[nameOf(kind)] === undefined ? sentBy(request)[formerName(issuer, kind)] : undefined,
      adopt: (reply, kind, value) => {
        setField(reply, nameOf(kind), value)
        sentBy(reply.request)[nameOf(kind)] = value
      },
      clearFormer: (reply, kind) => remove(reply, formerName(issuer, kind)),
    })
  },
  { name: 'cookies' },
)
