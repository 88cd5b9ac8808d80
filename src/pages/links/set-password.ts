import type { FastifyReply } from 'fastify'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import type { TextClaim } from '../../domain/claims.ts'
import { type Decision, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs } from '../../feature/deps.ts'
import { addAdministrator } from '../../users/administrators.ts'
import { userCredentials } from '../../users/factors.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { hashPassword } from '../../users/passwords.ts'
import { unusableLink } from '../../users/rules/one-time-link.ts'
import {
  addUser,
  changePassword,
  changeProfile,
  createUser,
  endSessionsAndGrants,
  undoEmailChange,
  verifyEmail,
} from '../../users/rules/user.ts'
import { type FormModel, newPasswordProblem } from '../forms.ts'
import { msg } from '../i18n/i18n.ts'
import { assertNoUsers, claimAddress, type OpenedLink, redirectToDone, useUp } from './open-link.ts'

declare module '../pages.ts' {
  interface Pages {
    'link-password': FormModel & {
      readonly purpose: 'first-user' | 'invitation' | 'password-reset' | 'email-undo'
      /** The user; absent for the first one, who chooses the name. */
      readonly username?: string
      /** The address that comes back with `email-undo`. */
      readonly email?: string
      /** What was typed before, or is known. */
      readonly typed: Pick<Typed, 'username' | 'email' | 'givenName' | 'familyName'>
    }
  }
}

/** What the user typed. */
interface Typed {
  readonly username: string
  readonly email: string
  readonly givenName: string
  readonly familyName: string
  readonly password: string
  readonly disconnect: boolean
}

/** Serves the page that sets a password: of the first user, an invited one, or one who forgot it. */
export function setPassword({
  config,
  service,
  store,
  random,
}: Needs<'config' | 'store' | 'random' | 'service'>) {
  const { prefix } = service

  const show = (opened: OpenedLink, typed?: Typed, problem?: Text): FastifyReply => {
    const { purpose, link, hidden, user, reply } = opened
    if (purpose === 'email-verification' || purpose === 'email-change') throw unusableLink()
    const claim = (name: TextClaim) => String(user?.claims[name] ?? '')
    const profile = {
      username: '',
      email: '',
      givenName: claim('given_name'),
      familyName: claim('family_name'),
    }
    const model = {
      action: `${prefix}${linkPath}`,
      hidden,
      purpose,
      ...(user !== undefined && { username: user.username }),
      ...(purpose === 'email-undo' && link.email !== undefined && { email: link.email }),
      typed: typed ?? profile,
      ...(problem !== undefined && { problem }),
    }
    return reply.page('link-password', model, { status: problem === undefined ? 200 : 400 })
  }

  const submit = async (opened: OpenedLink): Promise<FastifyReply> => {
    const typed = read(opened.sent)
    const problem = userProblem(opened, typed) ?? newPasswordProblem(opened.sent)
    if (problem !== undefined) return show(opened, typed, problem)
    const passwordHash = await hashPassword(typed.password, random)
    await useUp(store, opened)
    if (opened.user === undefined) await insertFirst(typed, passwordHash, opened.context)
    else if (opened.purpose === 'email-undo') await undo(opened, passwordHash)
    else {
      await store.transact('user', opened.user.id, (current) => settle(current, opened, typed, passwordHash))
    }
    return redirectToDone(opened, prefix, opened.user === undefined ? 'first-user' : 'password')
  }

  const undo = ({ link, context }: OpenedLink, passwordHash: string): Promise<void> => {
    const { userId = '', email = '', createdAt: since } = link
    const undone = store.transact(userCredentials, userId, (current) => {
      if (current === undefined || current.user.lockedAt !== undefined) throw unusableLink()
      return undoEmailChange(current, { email, since }, passwordHash, context)
    })
    return claimAddress(undone)
  }

  const insertFirst = async (typed: Typed, passwordHash: string, context: AuditContext): Promise<void> => {
    await assertNoUsers(store)
    const user = firstUser(typed, random(16), context, passwordHash)
    const added = addUser(user, false, context)
    await addAdministrator(store, config.admin.group, user.id, random(16), context, ...added)
  }

  return { show: (opened: OpenedLink) => show(opened), submit }
}

/** Decides what a user with a link gets: a link that was emailed verifies the address it was sent to. */
function settle(
  current: User | undefined,
  { link, purpose, context }: OpenedLink,
  typed: Typed,
  passwordHash: string,
): Decision<User> {
  if (current === undefined || current.lockedAt !== undefined) throw unusableLink()
  // It was sent to an address that the user no longer has.
  if (link.email !== undefined && link.email !== current.email) throw unusableLink()
  const { at } = context
  const { id: userId } = current
  const named =
    purpose === 'invitation' ? acceptedBy(changeProfile(current, { claims: namesOf(typed) }, at)) : current
  const proven = link.email === undefined ? named : acceptedBy(verifyEmail(named, link.email, at))
  const isProven = proven.claims['email_verified'] === true && current.claims['email_verified'] !== true
  return withWrites(
    changePassword(proven, passwordHash, context, {
      link: purpose,
      ...(typed.disconnect && { disconnected: 'everything' }),
    }),
    ...(typed.disconnect ? endSessionsAndGrants(userId, 'rfc9700-4.14.2-revoke-on-event', at) : []),
    ...(isProven ? [auditEvent('user-email-verified', context, { userId })] : []),
  )
}

/** Returns the user of a decision that always accepts; the user is written once, with the password. */
function acceptedBy(decision: Decision<User>): User {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}

function read(form: Parameters): Typed {
  const text = (name: string) => (single(form, name) ?? '').trim()
  return {
    username: text('username'),
    email: text('email'),
    givenName: legible(text('given_name')),
    familyName: legible(text('family_name')),
    password: single(form, 'password') ?? '',
    disconnect: single(form, 'disconnect') !== undefined,
  }
}

/** Returns a name without invisible characters, and no longer than pages show it. */
function legible(name: string): string {
  return [...name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')].slice(0, 100).join('')
}

function firstUser(typed: Typed, fresh: Buffer, { at }: AuditContext, passwordHash = ''): User {
  const { username, email } = typed
  const claims = namesOf(typed)
  return createUser({ username, ...(email !== '' && { email }), claims, passwordHash }, fresh, at)
}

/** What is typed replaces the name that an operator gave; the whole name follows. */
function namesOf({ givenName, familyName }: Typed): Readonly<Record<string, string>> {
  if (givenName === '' && familyName === '') return {}
  const name = [givenName, familyName].filter(Boolean).join(' ')
  const parts = { given_name: givenName, family_name: familyName, name }
  return Object.fromEntries(Object.entries(parts).filter(([, text]) => text !== ''))
}

/** Returns why the first user cannot be created as typed. */
function userProblem({ user }: OpenedLink, typed: Typed): Text | undefined {
  if (user !== undefined) return undefined
  try {
    firstUser(typed, Buffer.alloc(16), { by: 'user', at: 0 })
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return msg(error.detail.rule === 'oidc-core-5.1-email-syntax' ? 'email.invalid' : 'link.username.invalid')
  }
}
