import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { connectionsOf } from '../domain/connections.ts'
import { isSessionLive } from '../domain/session.ts'
import { roomPath } from '../http/account-models.ts'
import { ownPages } from '../http/own-pages.ts'

/** The first page of an account and its ways to sign in: how things stand, and where each is looked after. */
export function ownOverview(app: FastifyInstance, deps: AppDeps): void {
  const { service, store } = deps
  const { visit } = ownPages(app, deps)
  const urlOf = (path: string) => service.prefix + path
  const ifServed = (path: string) =>
    app.hasRoute({ method: 'GET', url: urlOf(path) }) ? { url: urlOf(path) } : {}

  app.get('/account', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { room: 'overview' })
    if (here === undefined) return reply
    const { frame, account, session, now } = here
    const { id, email, claims } = account
    const sessions = await store.listOf('session', id)
    const connections = connectionsOf(await store.listOf('grant', id), await store.listOf('consent', id), now)
    return reply.page('account-overview', {
      frame,
      apps: connections.length,
      sessions: sessions.filter((each) => isSessionLive(each, now)).length,
      signedInAgoSeconds: Math.max(1, now - session.authenticatedAt),
      ...(email !== undefined && { email }),
      emailVerified: claims['email_verified'] === true,
      waysIn: await waysInto(account.id, account.passwordHash !== undefined),
      urls: {
        apps: urlOf(roomPath('apps')),
        sessions: urlOf(roomPath('sessions')),
        security: urlOf(roomPath('security')),
        profile: urlOf(roomPath('profile')),
      },
    })
  })

  // Whoever else is signed in in this browser is a click away, and so is somebody new.
  app.get('/account/switch', { schema: { hide: true } }, (_request, reply) =>
    reply.waitForPerson({ page: roomPath('overview'), prompt: ['select_account'] }, 'login'),
  )

  app.get('/account/security', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { room: 'security' })
    if (here === undefined) return reply
    const { frame, account } = here
    return reply.page('account-security', {
      frame,
      waysIn: await waysInto(account.id, account.passwordHash !== undefined),
      password: { url: urlOf('/account/password') },
      passkeys: ifServed('/account/passkeys'),
      codes: ifServed('/account/one-time-codes'),
    })
  })

  const waysInto = async (accountId: string, password: boolean) => {
    const codes = await store.find('secondFactor', accountId)
    return {
      password,
      passkeys: (await store.listOf('passkey', accountId)).length,
      codes: codes?.confirmedAt !== undefined,
      recoveryCodes: codes?.confirmedAt === undefined ? 0 : codes.recoveryHashes.length,
    }
  }
}
