import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { endConnections } from '../../domain/connections.ts'
import { accept, type Decision, withWrites } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { hashPassword, passwordFault } from '../../users/passwords.ts'
import { changePassword } from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import { ownPages, type Submission, type Visit } from '../own-pages.ts'
import { currentPassword } from './current-password.ts'

/**
 * A user sets another password, or their first. It ends every other session and every link to a new one; the user
 * says whether it ends what they allowed apps, too, RFC 9700 §4.14.2.
 */
export function ownPassword(app: FastifyInstance, deps: AppDeps): void {
  const { service, store, random } = deps
  const { visit, submission, back } = ownPages(app, deps)
  const passwordProblem = currentPassword(app, deps)
  const action = `${service.prefix}/account/password`
  const entry = { section: 'security', recent: true } as const

  app.get('/account/password', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, entry)
    return here === undefined ? reply : show(here, reply)
  })

  app.post('/account/password', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, entry)
    if (here === undefined) return reply
    const problem = chosenBadly(here) ?? (await passwordProblem(here, request, reply))
    if (problem !== undefined) return show(here, reply, problem)
    const disconnects = single(here.form, 'disconnect') !== undefined
    const changed = await change(here, request, disconnects)
    if (changed === undefined) return show(here, reply, msg('password.overtaken'))
    // The cookie of before was bound to the old password.
    await app.browser.keepKnownBrowser(reply, changed)
    return back(reply, disconnects ? 'password-changed-disconnected' : 'password-changed', 'security')
  })

  const show = ({ frame, hidden, user }: Visit, reply: FastifyReply, problem?: Text) => {
    const { username, passwordHash } = user
    const model = { frame, action, hidden, username, hasPassword: passwordHash !== undefined }
    const status = problem === undefined || reply.statusCode >= 400 ? reply.statusCode : 400
    return reply.page('account-password', { ...model, ...(problem && { problem }) }, { status })
  }

  /** Undefined if the password was changed in the meantime: then what was typed proves nothing. */
  const change = async (
    { user, session, form, now }: Submission,
    request: FastifyRequest,
    disconnects: boolean,
  ): Promise<User | undefined> => {
    const { id: userId } = user
    const passwordHash = await hashPassword(single(form, 'password') ?? '', random)
    const context = userContext(request, now)
    const { page: connections } = await store.connections(userId, { now, limit: everyApp, offset: 0 })
    return store.transact('user', userId, (current): Decision<User | undefined> => {
      if (current === undefined || current.passwordHash !== user.passwordHash) return accept(undefined)
      return withWrites(
        changePassword(current, passwordHash, now, session.id),
        auditEvent('person-password-changed', context, { userId }),
        ...(disconnects ? endConnections(connections, { userId, ...context }, revokedWith) : []),
      )
    })
  }
}

/** More apps than anybody has: each of them is named in the audit log. */
const everyApp = 100_000

/** The rule by which a new password takes the apps along. */
const revokedWith = 'rfc9700-4.14.2-revoke-on-event'

/** Why a new password is not taken. */
function chosenBadly({ form }: Submission): Text | undefined {
  const password = single(form, 'password') ?? ''
  const fault = passwordFault(password)
  if (fault !== undefined) return msg(`password.${fault}`)
  return single(form, 'repeated') === password ? undefined : msg('password.differs')
}
