import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { canonicalUsername } from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import { ownPages, type Visit } from '../own-pages.ts'
import { exportUserData } from './user-export.ts'

/** A user takes a copy of everything that is kept of them, or takes all of it away. */
export function ownPrivacy(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store } = deps
  const { visit, submission } = ownPages(app, deps)
  const action = `${service.prefix}/account/privacy`
  const mayLeave = config.accounts.deletion === 'on'
  const deleteUrl = `${service.prefix}/account/delete`
  const leaving = { section: 'privacy', recent: true } as const

  app.get('/account/privacy', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'privacy' })
    if (here === undefined) return reply
    const { frame, hidden } = here
    return reply.page('account-privacy', { frame, action, hidden, ...(mayLeave && { deleteUrl }) })
  })

  app.post('/account/privacy', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, { section: 'privacy', recent: true })
    if (here === undefined) return reply
    const { user, now } = here
    const context = userContext(request, now)
    await store.write(auditEvent('person-exported', context, { userId: user.id }))
    const everything = await exportUserData(store, user, now)
    return reply
      .header('content-disposition', 'attachment; filename="account.json"')
      .type('application/json; charset=utf-8')
      .send(`${JSON.stringify(everything, undefined, 2)}\n`)
  })

  if (!mayLeave) return

  app.get('/account/delete', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, leaving)
    return here === undefined ? reply : showLeaving(here, reply)
  })

  app.post('/account/delete', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, leaving)
    if (here === undefined) return reply
    const { form, user, now } = here
    const { id: userId, username } = user
    if (canonicalUsername(single(form, 'username') ?? '') !== username)
      return showLeaving(here, reply, msg('delete.other'))
    const event = auditEvent('person-removed', userContext(request, now), { userId })
    await store.transact('user', userId, (current) =>
      current === undefined ? accept(undefined) : accept(undefined, remove('user', userId), event),
    )
    app.browser.dropSession(reply)
    return reply.page('account-deleted', {})
  })

  const showLeaving = ({ frame, hidden, user }: Visit, reply: FastifyReply, problem?: Text) => {
    const model = { frame, action: deleteUrl, hidden, username: user.username, keepUrl: action }
    const status = problem === undefined ? 200 : 400
    return reply.page('account-delete', { ...model, ...(problem && { problem }) }, { status })
  }
}
