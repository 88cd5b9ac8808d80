import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { methodsOf, multiFactor } from '../../domain/authentication-context.ts'
import { accept, update } from '../../domain/decision.ts'
import { interactionKind } from '../../domain/interaction.ts'
import type { Interaction, SignInRequest } from '../../domain/model.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { isRecent, recentSeconds } from '../../users/rules/session.ts'
import { whileSignedIn } from '../../users/sessions.ts'
import type { FormModel } from '../forms.ts'
import { type Key, msg } from '../i18n/i18n.ts'
import { type DoneWord, type Frame, findSignedIn, openPage, type PageVisit, servePage } from '../kit.ts'
import { findWaiting, waitingIn, waitingUrl } from '../waiting.ts'

/** The sections of the account page, in the order of its navigation. */
export const accountSections = [
  'overview',
  'start',
  'apps',
  'sessions',
  'security',
  'profile',
  'activity',
  'privacy',
] as const

export type AccountSection = (typeof accountSections)[number]

/** Returns the path of a section, below the issuer. */
export function sectionPath(section: AccountSection): string {
  return section === 'overview' ? '/account' : `/account/${section}`
}

/** What surrounds every page of the account. */
export interface AccountFrame extends Frame<AccountSection, DoneWord<'done'>> {
  /** Switches to another user of this browser, or to a new one. */
  readonly switchUrl: string
}

/** What every account page shows around its content. */
export interface AccountModel extends FormModel {
  readonly frame: AccountFrame
}

/** A page of the account. The page and its forms have one address; a user who has to sign in first comes back to it. */
export interface AccountPage {
  /** Below the issuer. */
  readonly path: string
  readonly section: AccountSection
  /**
   * `recent`: a sign-in of the last minutes, because a browser left open must not suffice. `every-factor`: one with a
   * second factor, too, if the user has one, because a password must not suffice to change the other factors.
   */
  readonly requires?: 'recent' | 'every-factor'
  /** A request may wait until the user has set up a factor here. */
  readonly enrols?: true
  /** The same for its form, if that requires more than the page. */
  readonly formRequires?: 'recent'
  /** What the form says when one of these rules rejects it. */
  readonly problems?: Readonly<Record<string, Key>>
  show(visit: Visit, problem?: Text): FastifyReply | Promise<FastifyReply>
  submit?(visit: Visit): FastifyReply | Promise<FastifyReply>
}

/** A signed-in user at a page of the account. */
export interface Visit extends PageVisit<AccountModel> {
  /** For audit events about what the user does here. */
  readonly context: AuditContext
  /** The request that waits in this browser until the user has set up a factor here. */
  readonly waiting?: Interaction
  /** Continues that request; undefined: none waits. */
  readonly waitingUrl?: string
  /** Redirects to a section, or back to this page, which reports what was done, RFC 9110 §15.4.4. */
  done(word: DoneWord<'done'>, section?: AccountSection): FastifyReply
}

/** Serves a page of the account. */
export function addAccountPage(app: FastifyInstance, deps: PageDeps, page: AccountPage): void {
  const { prefix } = deps.service
  const action = prefix + page.path
  const frame = {
    sections: accountSections.map((section) => ({ section, url: prefix + sectionPath(section) })),
    section: page.section,
    switchUrl: `${prefix}/account/switch`,
    signOutUrl: `${prefix}/oauth/logout`,
  }
  const place = { frame, done: 'done', action, purpose: ['own', page.path] } as const

  const enter = async (reply: FastifyReply): Promise<Visit | undefined> => {
    const { request } = reply
    const now = deps.clock()
    const isForm = request.method === 'POST'
    const requires = (isForm && page.formRequires) || page.requires
    const sent = parametersOf(isForm ? request.body : request.query)
    const waiting = page.enrols ? await findWaiting(app, deps, request, waitingIn(sent, 'for')) : undefined
    const query = { ...(isForm && { done: 'again' }), ...(waiting && { for: waiting.id }) }
    const signIn = { page: addressOf(page.path, query), prompt: [] }
    const recentSignIn = { ...signIn, maxAgeSeconds: recentSeconds }
    const again = async (wanted: SignInRequest & typeof signIn) =>
      void (await reply.startInteraction(wanted, 'login'))
    const signedIn = await findSignedIn(app, deps, request, now)
    if (signedIn === undefined || (requires !== undefined && !isRecent(signedIn.session, now)))
      return again(requires === undefined ? signIn : recentSignIn)
    const opened = openPage<AccountModel>(app, reply, now, signedIn, place)
    if (requires === 'every-factor') {
      const wanted = { ...recentSignIn, acr: { values: [multiFactor], essential: false } }
      const available = await loadAvailableAcrs(deps, wanted, signedIn.session)
      if (available.includes(multiFactor)) return again(wanted)
    }
    // Its form may end at the client.
    if (waiting !== undefined && !('page' in waiting.request)) request.leadsToClient = true
    return {
      ...opened,
      context: userContext(request, now),
      ...(waiting && { waiting, waitingUrl: waitingUrl(prefix, waiting.id) }),
      render: (view, content, problem) => {
        const hidden = { ...content.hidden, ...(waiting && { for: waiting.id }) }
        return opened.render(view, { ...content, hidden }, problem)
      },
      done: (word, section) => {
        const to = section === undefined ? action : prefix + sectionPath(section)
        return reply.redirect(addressOf(to, { done: word, ...(waiting && { for: waiting.id }) }), 303)
      },
    }
  }
  servePage(app, page.path, {
    ...page,
    enter,
    rejected: (error, visit) => {
      const problem = page.problems?.[error.detail.rule ?? '']
      if (problem === undefined) throw error
      return page.show(visit, msg(problem))
    },
  })
}

function addressOf(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString()
  return text === '' ? path : `${path}?${text}`
}

/**
 * Adds a new factor to the session, as if it had been used at the sign-in. Like every session that gains rights, it
 * gets another identifier. A session that was ended in the meantime stays so. A request that waits goes on with it.
 */
export async function addFactorToSession(
  app: FastifyInstance,
  { store }: Needs<'store'>,
  { session, now, request, reply, waiting }: Visit,
  factor: 'codes' | 'passkey',
): Promise<void> {
  const { secret, id } = app.browser.mintSession()
  const proven = {
    password: session.methods.includes('pwd'),
    codes: factor === 'codes' || session.methods.includes('otp'),
    passkey: factor === 'passkey' || session.methods.includes('pop'),
  }
  // A passkey is only created by a device that verified its user.
  const methods = methodsOf(proven, proven.passkey)
  const signedIn = await app.browser.sessions(request, now)
  const renamed = { op: 'replaceSession', sessionId: session.id, by: id, methods } as const
  // Writes that end the sessions of a user take the lock of the user: so does this one.
  const isReplaced = await whileSignedIn(store, session, now, () =>
    store.transact('user', session.userId, () => accept(undefined, renamed)),
  )
  const others = signedIn.filter((other) => other.id !== session.id)
  if (!isReplaced) return
  app.browser.keepSession(reply, secret, others)
  if (waiting?.authenticatedSessionId !== session.id) return
  await store.transact(interactionKind, waiting.id, (current) =>
    current === undefined
      ? accept(undefined)
      : accept(undefined, update(interactionKind, { ...current, authenticatedSessionId: id })),
  )
}
