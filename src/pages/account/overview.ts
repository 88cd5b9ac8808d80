import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { ownPages } from '../own-pages.ts'
import { sectionPath } from './models.ts'

/** The first page of an account and its ways to sign in: how things stand, and where each is looked after. */
export function ownOverview(app: FastifyInstance, deps: AppDeps): void {
  const { service, store } = deps
  const { visit } = ownPages(app, deps)
  const urlOf = (path: string) => service.prefix + path
  const ifServed = (path: string) =>
    app.hasRoute({ method: 'GET', url: urlOf(path) }) ? { url: urlOf(path) } : {}

  app.get('/account', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'overview' })
    if (here === undefined) return reply
    const { frame, user, session, now } = here
    const { id, email, claims } = user
    const sessions = await store.listOf('session', id)
    const { count } = await store.connections(id, { now, limit: 1, offset: 0 })
    return reply.page('account-overview', {
      frame,
      apps: count,
      sessions: sessions.filter((each) => isSessionLive(each, now)).length,
      signedInAgoSeconds: Math.max(1, now - session.authenticatedAt),
      ...(email !== undefined && { email }),
      emailVerified: claims['email_verified'] === true,
      waysIn: await waysInto(user.id, user.passwordHash !== undefined),
      urls: {
        apps: urlOf(sectionPath('apps')),
        sessions: urlOf(sectionPath('sessions')),
        security: urlOf(sectionPath('security')),
        profile: urlOf(sectionPath('profile')),
      },
    })
  })

  // Switches to another user of this browser, or to a new one.
  app.get('/account/switch', { schema: { hide: true } }, (_request, reply) =>
    reply.startInteraction({ page: sectionPath('overview'), prompt: ['select_account'] }, 'login'),
  )

  app.get('/account/security', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'security' })
    if (here === undefined) return reply
    const { frame, user } = here
    return reply.page('account-security', {
      frame,
      waysIn: await waysInto(user.id, user.passwordHash !== undefined),
      password: { url: urlOf('/account/password') },
      passkeys: ifServed('/account/passkeys'),
      codes: ifServed('/account/one-time-codes'),
    })
  })

  const waysInto = async (userId: string, password: boolean) => {
    const codes = await store.find(secondFactorKind, userId)
    return {
      password,
      passkeys: (await store.listOf(passkeyKind, userId)).length,
      codes: codes?.confirmedAt !== undefined,
      recoveryCodes: codes?.confirmedAt === undefined ? 0 : codes.recoveryHashes.length,
    }
  }
}
