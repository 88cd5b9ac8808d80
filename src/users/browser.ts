import cookie, { type CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { Seconds, Session, User } from '../domain/model.ts'
import { hashSecret, mintSecret, secretBytes, secretPrefix } from '../domain/secret.ts'
import {
  type KnownBrowser,
  type KnownBrowserOwner,
  knownBrowserSeconds,
  openKnownBrowser,
  sealKnownBrowser,
} from './rules/known-browser.ts'
import { passkeyKind } from './rules/passkey.ts'
import { secondFactorKind } from './rules/second-factor.ts'
import { extendedIdleEnd, isSessionLive, mostSessions } from './rules/session.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly browser: Browser
  }
}

/**
 * What the server knows of a browser: three cookies, each a handle and nothing more; none is a bearer token,
 * RFC 6750 §5.3.
 */
export interface Browser {
  /** Returns the active session of this browser if it is live; use moves its idle end. */
  session(request: FastifyRequest, now: Seconds): Promise<Session | undefined>
  hasSessionCookie(request: FastifyRequest): boolean
  /** Returns the id of the session that the browser names, whether it is live or not. */
  namedSession(request: FastifyRequest): string | undefined
  /** Returns the sessions of this browser: the active one first, then the others, newest first. */
  sessions(request: FastifyRequest, now: Seconds): Promise<readonly Session[]>
  /** Makes a session secret and the id it is stored under; `keepSession` puts it into the browser. */
  mintSession(): { readonly secret: string; readonly id: string }
  /** Sets the active session. `keep` lists the other sessions that stay signed in. */
  keepSession(reply: FastifyReply, secret: string, keep: readonly Session[]): void
  /** Makes one of the browser's sessions the active one; the others stay signed in. */
  switchSession(reply: FastifyReply, to: Session, all: readonly Session[]): void
  /** Ends the active session of this browser; its other sessions stay. */
  dropSession(reply: FastifyReply): void
  /** Returns the secret that interactions and CSRF tokens of this browser are bound to. */
  secret(request: FastifyRequest): string | undefined
  /** Returns that secret; makes it if there is none. */
  ensureSecret(request: FastifyRequest, reply: FastifyReply): string
  /** Returns the token that only a page of this server in this browser knows for this purpose. */
  csrfToken(secret: string, ...purpose: readonly string[]): string
  /** Opens the cookie of a browser in which this user signed in before. */
  knownBrowser(request: FastifyRequest, user: User): Promise<KnownBrowser | undefined>
  /** Renews that cookie, or gives the browser one. */
  keepKnownBrowser(reply: FastifyReply, user: User): Promise<void>
}

/** Decorates `app.browser`. On https the cookies carry the `__Host-` prefix. */
export const browser = fp<AppDeps>(
  async (app, { config, service, store, random, keys }) => {
    // Cookies are parsed lazily: most requests do not come from a browser.
    await app.register(cookie, { hook: false })
    const cookiesOf = (request: FastifyRequest) => {
      request.cookies ??= app.parseCookie(request.headers.cookie ?? '')
      return request.cookies
    }
    const name = (kind: string) => `${service.https ? '__Host-' : ''}lychgate_${kind}`
    const options: CookieSerializeOptions = {
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
      secure: service.https,
    }
    const secretIn = (request: FastifyRequest, kind: 'session' | 'browser') => {
      const value = cookiesOf(request)[name(kind)]
      return value !== undefined && isSecret(kind, value) ? value : undefined
    }

    /** The secrets of the browser's other sessions; each costs a look-up, so at most as many as we write. */
    const othersIn = (request: FastifyRequest) => {
      const values = (cookiesOf(request)[name('others')] ?? '').split('.', mostSessions - 1)
      return [...new Set(values)].filter((value) => isSecret('session', value))
    }
    const secretOf = (request: FastifyRequest, { id }: Session) =>
      [secretIn(request, 'session') ?? '', ...othersIn(request)].find((secret) => hashSecret(secret) === id)
    const keepOthers = (reply: FastifyReply, others: readonly Session[]) => {
      const kept = others.flatMap((session) => secretOf(reply.request, session) ?? [])
      if (kept.length > 0) reply.setCookie(name('others'), kept.join('.'), options)
      else if (cookiesOf(reply.request)[name('others')] !== undefined)
        reply.clearCookie(name('others'), options)
    }
    const keepSession: Browser['keepSession'] = (reply, secret, keep) => {
      keepOthers(reply, keep)
      reply.setCookie(name('session'), secret, options)
    }
    const sessionOf = async (secret: string | undefined, now: Seconds) => {
      const session = secret === undefined ? undefined : await store.find('session', hashSecret(secret))
      return session !== undefined && isSessionLive(session, now) ? session : undefined
    }

    const live = async (request: FastifyRequest, now: Seconds) => {
      const session = await sessionOf(secretIn(request, 'session'), now)
      if (session === undefined) return undefined
      const idleExpiresAt = extendedIdleEnd(session, config.lifetimes, now)
      if (idleExpiresAt !== undefined)
        await store.write({ op: 'extendSession', sessionId: session.id, idleExpiresAt })
      return session
    }

    const ownerOf = async (user: User): Promise<KnownBrowserOwner> => ({
      ...user,
      passkeys: await store.listOf(passkeyKind, user.id),
      secondFactor: await store.find(secondFactorKind, user.id),
    })
    const openedFor = (request: FastifyRequest, owner: KnownBrowserOwner) =>
      openKnownBrowser(cookiesOf(request)[name('device')], owner, ...keys.handleSecrets)

    app.decorate('browser', {
      session: live,
      sessions: async (request, now) => {
        const others = await Promise.all(othersIn(request).map((secret) => sessionOf(secret, now)))
        return [await live(request, now), ...others].filter((session) => session !== undefined)
      },
      hasSessionCookie: (request) => secretIn(request, 'session') !== undefined,
      namedSession: (request) => {
        const secret = secretIn(request, 'session')
        return secret === undefined ? undefined : hashSecret(secret)
      },
      mintSession: () => {
        const secret = mintSecret('session', random(secretBytes))
        return { secret, id: hashSecret(secret) }
      },
      keepSession,
      switchSession: (reply, to, all) => {
        const secret = secretOf(reply.request, to)
        const others = all.filter(({ id }) => id !== to.id)
        if (secret !== undefined) keepSession(reply, secret, others)
      },
      dropSession: (reply) => void reply.clearCookie(name('session'), options),
      secret: (request) => secretIn(request, 'browser'),
      ensureSecret: (request, reply) => {
        const known = secretIn(request, 'browser')
        if (known !== undefined) return known
        const secret = mintSecret('browser', random(secretBytes))
        reply.setCookie(name('browser'), secret, options)
        return secret
      },
      csrfToken: (secret, ...purpose) => hashSecret([secret, ...purpose].join(' ')),
      knownBrowser: async (request, user) => {
        // Another user's cookie is not worth the look at this one's credentials.
        const isTheirs = cookiesOf(request)[name('device')]?.startsWith(`${user.id}.`) ?? false
        return isTheirs ? openedFor(request, await ownerOf(user)) : undefined
      },
      keepKnownBrowser: async (reply, user) => {
        const owner = await ownerOf(user)
        const known = openedFor(reply.request, owner)
        const nonce = known?.isBound ? known.nonce : random(16).toString('base64url')
        const value = sealKnownBrowser(owner, nonce, keys.handles.current.secret)
        reply.setCookie(name('device'), value, { ...options, maxAge: knownBrowserSeconds })
      },
    })
  },
  { name: 'browser' },
)

function isSecret(kind: 'session' | 'browser', value: string): boolean {
  return value.startsWith(secretPrefix[kind]) && /^lyc_[a-z]+_[\w-]{43}$/.test(value)
}
