import type { FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, insert, remove, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { RecordExists } from '../../storage/store.ts'
import { userCredentials } from '../../users/factors.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { hashPassword, passwordFault } from '../../users/passwords.ts'
import { linkKinds, requireLink, unusableLink } from '../../users/rules/one-time-link.ts'
import {
  changePassword,
  changeProfile,
  createUser,
  endAccess,
  undoEmailChange,
  verifyEmail,
} from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import { assertNoUsers, type OpenedLink } from './open-link.ts'
import { doneUrl } from './show-done.ts'

/** What the user typed. */
interface Said {
  readonly username: string
  readonly email: string
  readonly name: string
  readonly password: string
  readonly disconnect: boolean
}

/** The page that sets a password: of the first user, an invited one, or one who forgot it. */
export function setPassword({ service, store, random }: AppDeps) {
  const { prefix } = service

  const show = (opened: OpenedLink, reply: FastifyReply, said?: Said, problem?: Text): FastifyReply => {
    const { purpose, link, hidden, user } = opened
    if (purpose === 'email-verification' || purpose === 'email-change') throw unusableLink()
    const known = { username: '', email: '', name: String(user?.claims['name'] ?? '') }
    const model = {
      action: `${prefix}${linkPath}`,
      hidden,
      purpose,
      ...(user !== undefined && { username: user.username }),
      ...(purpose === 'email-undo' && link.email !== undefined && { email: link.email }),
      typed: said ?? known,
      ...(problem !== undefined && { problem }),
    }
    return reply.page('link-password', model, { status: problem === undefined ? 200 : 400 })
  }

  const submit = async (
    opened: OpenedLink,
    form: Parameters,
    context: AuditContext,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const said = read(form)
    const problem = problemOf(opened, said, form)
    if (problem !== undefined) return show(opened, reply, said, problem)
    const passwordHash = await hashPassword(said.password, random)
    await useUp(opened, context)
    if (opened.user === undefined) await insertFirst(said, passwordHash, context)
    else if (opened.purpose === 'email-undo') await undo(opened, passwordHash, context)
    else {
      await store.transact('user', opened.user.id, (current) =>
        settle(current, opened, said, passwordHash, context),
      )
    }
    return reply.redirect(doneUrl(prefix, 'password', opened.interaction), 303)
  }

  const undo = async ({ link }: OpenedLink, passwordHash: string, context: AuditContext): Promise<void> => {
    const { userId = '', email = '', createdAt: since } = link
    try {
      await store.transact(userCredentials, userId, (current) => {
        if (current === undefined || current.user.lockedAt !== undefined) throw unusableLink()
        const facts = { userId, link: link.purpose, disconnected: 'everything' }
        return withWrites(
          undoEmailChange(current, { email, since }, passwordHash, context.at),
          auditEvent('person-changed', context, { userId, changed: 'email' }),
          auditEvent('person-password-changed', context, facts),
        )
      })
    } catch (error) {
      // Another account has proven the address in the meantime.
      throw error instanceof RecordExists ? unusableLink() : error
    }
  }

  /** Of two forms that come at once, one goes on. */
  const useUp = ({ link }: OpenedLink, { at }: AuditContext): Promise<void> =>
    store.transact(linkKinds[link.purpose], link.id, (found) => {
      requireLink(found, at)
      return accept(undefined, remove(linkKinds[link.purpose], link.id))
    })

  const insertFirst = async (said: Said, passwordHash: string, context: AuditContext): Promise<void> => {
    await assertNoUsers(store)
    const user = firstPerson(said, random(16), context, passwordHash)
    const { id: userId } = user
    await store.write(insert('user', user), auditEvent('person-added', context, { userId }))
  }

  const problemOf = (opened: OpenedLink, said: Said, form: Parameters): Text | undefined => {
    const fault = passwordFault(said.password)
    if (opened.user === undefined) {
      const wrong = faultOfUser(() => firstPerson(said, Buffer.alloc(16), { by: 'person', at: 0 }))
      if (wrong !== undefined) return wrong
    }
    if (fault !== undefined) return msg(`password.${fault}`)
    return single(form, 'repeated') === said.password ? undefined : msg('password.differs')
  }

  return { show, submit }
}

/** The account with what was said; the use of a link that came by mail proves the address it went to. */
function settle(
  current: User | undefined,
  { link, purpose }: OpenedLink,
  { name, disconnect }: Said,
  passwordHash: string,
  context: AuditContext,
): Decision<User> {
  if (current === undefined || current.lockedAt !== undefined) throw unusableLink()
  // It went to an address that the user has no more.
  if (link.email !== undefined && link.email !== current.email) throw unusableLink()
  const { at } = context
  const { id: userId } = current
  const named =
    purpose === 'invitation' ? acceptedBy(changeProfile(current, { claims: { name } }, at)) : current
  const proven = link.email === undefined ? named : acceptedBy(verifyEmail(named, link.email, at))
  const isProven = proven.claims['email_verified'] === true && current.claims['email_verified'] !== true
  return withWrites(
    changePassword(proven, passwordHash, at),
    ...(disconnect ? endAccess(userId, 'rfc9700-4.14.2-revoke-on-event', at) : []),
    auditEvent('person-password-changed', context, { userId, link: purpose, ...ended(disconnect) }),
    ...(isProven ? [auditEvent('person-email-verified', context, { userId })] : []),
  )
}

/** These decisions only ever accept; what they write is written once, with the password. */
function acceptedBy(decision: Decision<User>): User {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}

function ended(disconnect: boolean): { readonly disconnected?: string } {
  return disconnect ? { disconnected: 'everything' } : {}
}

function read(form: Parameters): Said {
  const text = (name: string) => (single(form, name) ?? '').trim()
  return {
    username: text('username'),
    email: text('email'),
    name: legible(text('name')),
    password: single(form, 'password') ?? '',
    disconnect: single(form, 'disconnect') !== undefined,
  }
}

/** As much of a name as is shown anywhere, and nothing in it that cannot be seen. */
function legible(name: string): string {
  return [...name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')].slice(0, 200).join('')
}

function firstPerson(said: Said, fresh: Buffer, { at }: AuditContext, passwordHash = ''): User {
  const { username, email, name } = said
  const claims = name === '' ? {} : { name }
  return createUser({ username, ...(email !== '' && { email }), claims, passwordHash }, fresh, at)
}

function faultOfUser(create: () => User): Text | undefined {
  try {
    create()
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return msg(error.detail.rule === 'oidc-core-5.1-email-syntax' ? 'email.invalid' : 'link.username.invalid')
  }
}
