import type { FastifyInstance, FastifyReply } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import type { TextClaim } from '../../domain/claims.ts'
import { insert, type Write, withWrites } from '../../domain/decision.ts'
import type { LinkPurpose, User, UserCredentials } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs } from '../../feature/deps.ts'
import { keyOfParts, RecordExists } from '../../storage/store.ts'
import { addAdministrator } from '../../users/administrators.ts'
import { userCredentials } from '../../users/factors.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { hashPassword } from '../../users/passwords.ts'
import { linkKinds, unusableLink } from '../../users/rules/one-time-link.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import {
  type ChangeByLink,
  hasFactor,
  methodsByLink,
  type NewSignIn,
  signInByLink,
} from '../../users/rules/sign-in-by-link.ts'
import { addUser, undoEmailChange } from '../../users/rules/user.ts'
import { type BegunSession, sessionBeginner } from '../begin-session.ts'
import { type FormModel, newPasswordProblem } from '../forms.ts'
import { msg } from '../i18n/i18n.ts'
import { type PasskeyCreation, passkeyCreation } from '../passkey-creation.ts'
import { findWaiting, waitingUrl } from '../waiting.ts'
import { assertNoUsers, claimAddress, type OpenedLink, redirectToDone, useUp } from './open-link.ts'
import { firstUser, firstUserProblem, namesOf, readProfile, type TypedProfile } from './profile-form.ts'

declare module '../pages.ts' {
  interface Pages {
    'link-password': FormModel & {
      readonly purpose: 'first-user' | 'invitation' | 'password-reset' | 'email-undo'
      /** The user; absent for the first one, who chooses the name. */
      readonly username?: string
      /** The address that comes back with `email-undo`. */
      readonly email?: string
      /** What was typed before, or is known. */
      readonly typed: TypedProfile
      /** Absent where no passkey can be created, and for a user who has another factor. */
      readonly creation?: PasskeyCreation
    }
  }
}

/**
 * Serves the page on which the first user, an invited one, or one who cannot sign in any more sets a passkey or a
 * password. The user is then signed in, unless one-time codes are still to be asked for.
 */
export function setUpSignIn(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'clock' | 'random' | 'service'>,
) {
  const { config, service, store, random } = deps
  const { prefix } = service
  const creation = passkeyCreation(app, deps, linkPath)
  const begin = sessionBeginner(app, deps)

  const show = async (opened: OpenedLink, typed?: TypedProfile, problem?: Text): Promise<FastifyReply> => {
    const { purpose, link, hidden, user, reply } = opened
    if (purpose === 'email-verification' || purpose === 'email-change') throw unusableLink()
    const claim = (name: TextClaim) => String(user?.claims[name] ?? '')
    const profile = {
      username: '',
      email: '',
      givenName: claim('given_name'),
      familyName: claim('family_name'),
    }
    const waiting = await waitingOf(opened)
    // Its form may end at the client.
    if (waiting !== undefined && !('page' in waiting.request)) reply.request.leadsToClient = true
    const offer = await offerOf(opened)
    const model = {
      action: `${prefix}${linkPath}`,
      hidden: { ...hidden, ...offer?.hidden },
      purpose,
      ...(user !== undefined && { username: user.username }),
      ...(purpose === 'email-undo' && link.email !== undefined && { email: link.email }),
      typed: typed ?? profile,
      ...(offer && { creation: offer.creation }),
      ...(problem !== undefined && { problem }),
    }
    return reply.page('link-password', model, { status: problem === undefined ? 200 : 400 })
  }

  const waitingOf = ({ hidden: { interaction }, reply }: OpenedLink) =>
    findWaiting(app, deps, reply.request, interaction)

  /** Offers a passkey to a user without another factor: a link that was sent by email must not get around that one. */
  const offerOf = async ({ purpose, link, user, reply, context: { at } }: OpenedLink) => {
    if (purpose === 'first-user') {
      const { id } = firstUser(unnamed, link, { at })
      return creation.offer(reply, { id, username: '', claims: {} }, [], at)
    }
    if (purpose === 'email-undo' || user === undefined) return undefined
    const credentials = await store.find(userCredentials, user.id)
    return credentials === undefined || hasFactor(credentials)
      ? undefined
      : creation.offer(reply, user, [], at)
  }

  const submit = async (opened: OpenedLink): Promise<FastifyReply> => {
    const { sent, link, user, purpose } = opened
    const typed = readProfile(sent)
    const problem = user === undefined ? firstUserProblem(typed, link) : undefined
    const chosen = problem ?? (await choose(opened, typed))
    if ('key' in chosen) return show(opened, typed, chosen)
    if (purpose === 'email-undo') return undo(opened, 'passwordHash' in chosen ? chosen.passwordHash : '')
    try {
      return await (user === undefined
        ? insertFirst(opened, typed, chosen)
        : settle(opened, user, typed, chosen))
    } catch (error) {
      if (!(error instanceof RecordExists)) throw error
      return show(opened, typed, msg('passkeys.known'))
    }
  }

  /** Returns what the user chose to sign in with, or the problem with it. */
  const choose = async (
    { sent, user, link, purpose, reply, context }: OpenedLink,
    typed: TypedProfile,
  ): Promise<NewSignIn | Text> => {
    if ((single(sent, 'credential') ?? '') !== '' && purpose !== 'email-undo') {
      const { id } = user ?? firstUser(typed, link, context)
      const passkey = await creation.take(sent, reply.request, id, context.at)
      return 'key' in passkey ? passkey : { passkey }
    }
    const problem = newPasswordProblem(sent)
    return problem ?? { passwordHash: await hashPassword(single(sent, 'password') ?? '', random) }
  }

  const insertFirst = async (opened: OpenedLink, typed: TypedProfile, chosen: NewSignIn) => {
    await assertNoUsers(store)
    const { link, context, reply } = opened
    const user = firstUser(typed, link, context, 'passwordHash' in chosen ? chosen.passwordHash : undefined)
    const passkeys = 'passkey' in chosen ? [chosen.passkey] : []
    const begun = await begin(reply, { user, methods: methodsByLink(chosen, link) }, context.at)
    await useUp(store, opened)
    const added = [
      ...addUser(user, false, context),
      ...passkeys.flatMap((passkey) => [
        insert(passkeyKind, passkey),
        auditEvent('passkey-added', context, { userId: user.id, name: passkey.name, link: link.purpose }),
      ]),
      ...signedInBy(opened, begun),
    ]
    await addAdministrator(store, config.admin.group, user.id, random(16), context, ...added)
    await begun.keep({ user, passkeys })
    return reply.redirect(app.adminPages.url ?? `${prefix}/account`, 303)
  }

  /** Codes are asked for after the password, whatever it was set by: then the user is not signed in yet. */
  const settle = async (opened: OpenedLink, { id }: User, typed: TypedProfile, chosen: NewSignIn) => {
    const { link, purpose, sent, reply, context } = opened
    const begun = await begin(reply, { user: { id }, methods: methodsByLink(chosen, link) }, context.at)
    const change = {
      chosen,
      claims: namesOf(typed),
      disconnects: single(sent, 'disconnect') !== undefined,
      sessionId: begun.session.id,
    }
    const kind = linkedUser(purpose)
    const key = keyOfParts(kind, { link: link.id, credentials: id })
    const current = await store.transact(kind, key, (rows) => {
      const decision = signInByLink(rows, change, context)
      const isSignedIn = 'result' in decision && !asksCodes(decision.result)
      return isSignedIn ? withWrites(decision, ...signedInBy(opened, begun)) : decision
    })
    if (asksCodes(current)) return redirectToDone(opened, prefix, 'password')
    await begun.keep(current)
    const waiting = await waitingOf(opened)
    if (waiting !== undefined) return reply.redirect(waitingUrl(prefix, waiting.id), 303)
    return reply.redirect(`${prefix}/account${reportOf(opened, change)}`, 303)
  }

  const undo = async (opened: OpenedLink, passwordHash: string): Promise<FastifyReply> => {
    const { link, context } = opened
    const { userId = '', email = '', createdAt: since } = link
    await useUp(store, opened)
    const undone = store.transact(userCredentials, userId, (current) => {
      if (current === undefined || current.user.lockedAt !== undefined) throw unusableLink()
      return undoEmailChange(current, { email, since }, passwordHash, context)
    })
    await claimAddress(undone)
    return redirectToDone(opened, prefix, 'password')
  }

  return { show: (opened: OpenedLink) => show(opened), submit }
}

/** Before the first user typed anything: only the id is read. */
const unnamed: TypedProfile = { username: 'unnamed', email: '', givenName: '', familyName: '' }

/** Whether one-time codes are asked for after the password. */
function asksCodes({ secondFactor }: UserCredentials): boolean {
  return secondFactor?.confirmedAt !== undefined
}

/** The session that begins with what was set, and its event. */
function signedInBy({ purpose, context }: OpenedLink, { session, writes }: BegunSession): readonly Write[] {
  const { userId, methods } = session
  return [...writes, auditEvent('sign-in', context, { userId, methods: methods.join(' '), link: purpose })]
}

/** What is decided about in one commit: a link, and its user. */
function linkedUser(purpose: LinkPurpose) {
  return { name: 'linkedUser', parts: { link: linkKinds[purpose], credentials: userCredentials } } as const
}

/** What the account page reports; nothing of a first password. */
function reportOf({ purpose }: OpenedLink, { chosen, disconnects }: ChangeByLink): string {
  if ('passkey' in chosen) return '?done=passkey-added'
  if (purpose === 'invitation') return ''
  return disconnects ? '?done=password-changed-disconnected' : '?done=password-changed'
}
