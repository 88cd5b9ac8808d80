import cookie, { type CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Seconds } from '../domain/model.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'

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
    // Cookies are parsed lazily: most requests do not come from a browser.
    await app.register(cookie, { hook: false })
    const options: CookieSerializeOptions = { path: '/', httpOnly: true, sameSite: 'lax', secure: https }
    const names = new Map<CookieKind, string>()
    const nameOf = (kind: CookieKind) => {
      const name = names.get(kind) ?? cookieName(issuer, kind)
      names.set(kind, name)
      return name
    }
    const sentBy = (request: FastifyRequest) => {
      request.cookies ??= app.parseCookie(request.headers.cookie ?? '')
      return request.cookies
    }
    app.decorate('cookies', {
      read: (request, kind) => sentBy(request)[nameOf(kind)],
      set: (reply, kind, value, maxAge) =>
        void reply.setCookie(nameOf(kind), value, { ...options, ...(maxAge !== undefined && { maxAge }) }),
      clear: (reply, kind) => void reply.clearCookie(nameOf(kind), options),
      readFormer: (request, kind) =>
        sentBy(request)[nameOf(kind)] === undefined ? sentBy(request)[formerName(issuer, kind)] : undefined,
      adopt: (reply, kind, value) => {
        reply.setCookie(nameOf(kind), value, options)
        // Only now: setCookie parses the cookies of the request again.
        sentBy(reply.request)[nameOf(kind)] = value
      },
      clearFormer: (reply, kind) => void reply.clearCookie(formerName(issuer, kind), options),
    })
  },
  { name: 'cookies' },
)
