import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { endSession } from '../domain/decision.ts'
import { interactionKind } from '../domain/interaction.ts'
import {
  type KnownBrowser,
  type KnownBrowserOwner,
  knownBrowserSeconds,
  openKnownBrowser,
  sealKnownBrowser,
} from '../domain/known-browser.ts'
import type { Seconds, Session, User } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import { hashSecret, mintSecret, secretBytes, secretPrefix } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { parametersOf } from '../http/parameters.ts'
import { passkeyKind } from './rules/passkey.ts'
import { secondFactorKind } from './rules/second-factor.ts'
import { extendedIdleEnd, isSessionLive, mostSessions } from './rules/session.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly browser: Browser
  }
}

/**
 * What the server knows of a browser: its cookies, each a handle and nothing more; none is a bearer token, RFC 6750
 * §5.3.
 */
export interface Browser {
  /** Returns the active session of this browser if it is live; use moves its idle end. */
  session(
    request: FastifyRequest,
    now: Seconds,
    reading?: Promise<Session | undefined>,
  ): Promise<Session | undefined>
  /** Begins to read that session where the database is far. */
  readSessionAhead(request: FastifyRequest): Promise<Session | undefined> | undefined
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
  /**
   * Replaces the cookies of the version before that open something of this store. Cookies of another server of this
   * host have the same names and stay.
   */
  replaceFormerCookies(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** Opens the cookie of a browser in which this user signed in before. */
  knownBrowser(request: FastifyRequest, user: User): Promise<KnownBrowser | undefined>
  /** Renews that cookie, or gives the browser one. */
  keepKnownBrowser(reply: FastifyReply, owner: KnownBrowserOwner): Promise<void>
  /** Reads the credentials of a user, to which that cookie is bound. */
  knownBrowserOwner(user: User): Promise<KnownBrowserOwner>
}

/** Decorates `app.browser`. */
export const browser = fp<Needs<'config' | 'store' | 'keys' | 'random'>>(
  async (app, { config, store, random, keys }) => {
    const { cookies } = app
    const secretIn = (request: FastifyRequest, kind: 'session' | 'browser') =>
      secretOrNone(kind, cookies.read(request, kind))

    /** A page that needs the secret twice gets the same one, in a browser that has none yet. */
    const mintedFor = new WeakMap<FastifyRequest, string>()

    /** The secrets of the browser's other sessions; each costs a look-up, so at most as many as we write. */
    const othersIn = (value = '') => {
      const values = value.split('.', mostSessions - 1)
      return [...new Set(values)].filter((secret) => isSecret('session', secret))
    }
    const othersOf = (request: FastifyRequest) => othersIn(cookies.read(request, 'others'))
    const secretOf = (request: FastifyRequest, { id }: Session) =>
      [secretIn(request, 'session') ?? '', ...othersOf(request)].find((secret) => hashSecret(secret) === id)
    const keepOthers = (reply: FastifyReply, others: readonly Session[]) => {
      const kept = others.flatMap((session) => secretOf(reply.request, session) ?? [])
      if (kept.length > 0) cookies.set(reply, 'others', kept.join('.'))
      else if (cookies.read(reply.request, 'others') !== undefined) cookies.clear(reply, 'others')
    }
    const keepSession: Browser['keepSession'] = (reply, secret, keep) => {
      keepOthers(reply, keep)
      cookies.set(reply, 'session', secret)
    }
    const findSession = async (secret: string | undefined) =>
      secret === undefined ? undefined : await store.find('session', hashSecret(secret))
    const sessionOf = async (secret: string | undefined, now: Seconds, reading = findSession(secret)) => {
      const session = await reading
      return session !== undefined && isSessionLive(session, now) ? session : undefined
    }

    const live: Browser['session'] = async (request, now, reading) => {
      const session = await sessionOf(secretIn(request, 'session'), now, reading)
      if (session === undefined) return undefined
      const ending = app.seams.sessionEnds.collect(session)
      if (ending !== undefined && (await ending)) {
        await store.write(endSession(session.id, now))
        return undefined
      }
      const idleExpiresAt = extendedIdleEnd(session, config.lifetimes, now)
      if (idleExpiresAt !== undefined)
        await store.write({ op: 'extendSession', sessionId: session.id, idleExpiresAt })
      return session
    }

    const ownerOf = async (user: User): Promise<KnownBrowserOwner> => {
      const [passkeys, secondFactor] = await Promise.all([
        store.listOf(passkeyKind, user.id),
        store.find(secondFactorKind, user.id),
      ])
      return { ...user, passkeys, secondFactor }
    }
    const deviceIn = (request: FastifyRequest) =>
      cookies.read(request, 'device') ?? cookies.readFormer(request, 'device')
    const openedFor = (request: FastifyRequest, owner: KnownBrowserOwner) =>
      openKnownBrowser(deviceIn(request), owner, ...keys.handleSecrets)
    const formerSecret = (request: FastifyRequest, kind: 'session' | 'browser') =>
      secretOrNone(kind, cookies.readFormer(request, kind))
    const isFormerDevice = async (request: FastifyRequest) => {
      const value = cookies.readFormer(request, 'device')
      if (value === undefined) return false
      const owner = await store.find('user', value.split('.', 1)[0] ?? '')
      return owner && openKnownBrowser(value, await ownerOf(owner), ...keys.handleSecrets) !== undefined
    }
    const isStored = async (secret: string) => (await store.find('session', hashSecret(secret))) !== undefined

    /** A browser's secret opens the pending request that was bound to it. */
    const opensInteraction = async ({ query, body }: FastifyRequest, secret: string) => {
      const id = single(parametersOf(body ?? query), 'interaction')
      const interaction =
        id === undefined || id.length > 64 ? undefined : await store.find(interactionKind, id)
      return interaction?.browserHash === hashSecret(secret)
    }

    app.decorate('browser', {
      session: live,
      readSessionAhead: (request) => {
        if (!store.isFar) return undefined
        const reading = findSession(secretIn(request, 'session'))
        // The request that awaits it gets the error. For a rejected client none does.
        reading.catch(() => undefined)
        return reading
      },
      sessions: async (request, now) => {
        const others = await Promise.all(othersOf(request).map((secret) => sessionOf(secret, now)))
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
      dropSession: (reply) => cookies.clear(reply, 'session'),
      secret: (request) => secretIn(request, 'browser'),
      ensureSecret: (request, reply) => {
        const known = secretIn(request, 'browser') ?? mintedFor.get(request)
        if (known !== undefined) return known
        const secret = mintSecret('browser', random(secretBytes))
        mintedFor.set(request, secret)
        cookies.set(reply, 'browser', secret)
        return secret
      },
      csrfToken: (secret, ...purpose) => hashSecret([secret, ...purpose].join(' ')),
      replaceFormerCookies: async (request, reply) => {
        if (!request.headers.cookie?.includes('lychgate_')) return
        const replace = (kind: 'session' | 'others' | 'browser', value: string) => {
          cookies.adopt(reply, kind, value)
          cookies.clearFormer(reply, kind)
        }
        const session = formerSecret(request, 'session')
        const isOurs = session !== undefined && (await isStored(session))
        if (isOurs) replace('session', session)
        const others = othersIn(cookies.readFormer(request, 'others'))
        const stored = await Promise.all(others.map(isStored))
        const own = others.filter((_secret, index) => stored[index])
        if (own.length > 0) replace('others', own.join('.'))
        const secret = formerSecret(request, 'browser')
        if (secret === undefined) return
        if (await opensInteraction(request, secret)) replace('browser', secret)
        // Forms of its pages are bound to it, and perhaps those of another server.
        else if (isOurs) cookies.adopt(reply, 'browser', secret)
      },
      knownBrowser: async (request, user) => {
        // Another user's cookie is not worth the look at this one's credentials.
        const isTheirs = deviceIn(request)?.startsWith(`${user.id}.`) ?? false
        return isTheirs ? openedFor(request, await ownerOf(user)) : undefined
      },
      knownBrowserOwner: ownerOf,
      keepKnownBrowser: async (reply, owner) => {
        const known = openedFor(reply.request, owner)
        const nonce = known?.isBound ? known.nonce : random(16).toString('base64url')
        const value = sealKnownBrowser(owner, nonce, keys.handles.current.secret)
        cookies.set(reply, 'device', value, knownBrowserSeconds)
        if (await isFormerDevice(reply.request)) cookies.clearFormer(reply, 'device')
      },
    })
  },
  { name: 'browser', dependencies: ['cookies'] },
)

function secretOrNone(kind: 'session' | 'browser', value: string | undefined): string | undefined {
  return value !== undefined && isSecret(kind, value) ? value : undefined
}

function isSecret(kind: 'session' | 'browser', value: string): boolean {
  return value.startsWith(secretPrefix[kind]) && /^lyc_[a-z]+_[\w-]{43}$/.test(value)
}
