import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { methodsOf, multiFactor } from '../../domain/authentication-context.ts'
import { accept } from '../../domain/decision.ts'
import type { Seconds, Session, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { isRecent, recentSeconds } from '../../users/rules/session.ts'
import { whileSignedIn } from '../../users/sessions.ts'
import { displayName, type NamedUser } from '../describe.ts'
import { assertOwnForm, type FormModel, isFromElsewhere } from '../forms.ts'
import type { Key } from '../i18n/i18n.ts'
import type { Pages } from '../pages.ts'
import { findSignedIn } from '../signed-in.ts'

/** The sections of the account page, in the order of its navigation. */
export const accountSections = [
  'overview',
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

/** What a page can report as just done: a word in its address, because a redirect led there. */
type DoneWord = WordOf<Key>
type WordOf<K> = K extends `done.${infer Word}` ? Word : never

/** What surrounds every page of the account: its navigation, the user, and what was just done. */
export interface AccountFrame {
  readonly sections: readonly { readonly section: AccountSection; readonly url: string }[]
  /** The section the page belongs to. */
  readonly section: AccountSection
  readonly user: NamedUser
  /** Switches to another user of this browser, or to a new one. */
  readonly switchUrl: string
  readonly signOutUrl: string
  readonly done?: DoneWord
}

/** What every page of the account shows besides its own content. */
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
  /** The same for its form, if that requires more than the page. */
  readonly formRequires?: 'recent'
  show(visit: Visit): FastifyReply | Promise<FastifyReply>
  submit?(submission: Submission): FastifyReply | Promise<FastifyReply>
}

/** A signed-in user at a page of the account. */
export interface Visit {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly session: Session
  readonly user: User
  readonly now: Seconds
  /** For audit events about what the user does here. */
  readonly context: AuditContext
  /** What every form of the page brings back: a token of this page, browser and session, RFC 6749 §10.12. */
  readonly hidden: Readonly<Record<string, string>>
  /** Returns a handle for a form in place of an internal id, valid on this page only. */
  handleOf(id: string): string
  /** Sends the page; with a problem its status is 400, unless a higher one was set before. */
  render<K extends AccountView>(view: K, content: Content<K>, problem?: Text): FastifyReply
  /** Redirects to a section, or back to this page, which reports what was done, RFC 9110 §15.4.4. */
  done(word: DoneWord, section?: AccountSection): FastifyReply
}

/** A form of the page that came back, proven to be ours. */
export interface Submission extends Visit {
  readonly form: Parameters
}

type AccountView = { [K in keyof Pages]: Pages[K] extends AccountModel ? K : never }[keyof Pages]
type Content<K extends AccountView> = Omit<Pages[K], keyof AccountModel> & Partial<AccountModel>

/**
 * Serves a page of the account. @throws {OAuthError} `access_denied` if a form is not of this page, browser and
 * session.
 */
export function addAccountPage(app: FastifyInstance, deps: AppDeps, page: AccountPage): void {
  const { prefix } = deps.service
  const url = prefix + page.path
  const sections = accountSections.map((section) => ({ section, url: prefix + sectionPath(section) }))

  const enter = async (request: FastifyRequest, reply: FastifyReply): Promise<Visit | undefined> => {
    const now = deps.clock()
    const isForm = request.method === 'POST'
    const requires = (isForm && page.formRequires) || page.requires
    const signIn = { page: isForm ? `${page.path}?done=again` : page.path, prompt: [] }
    const recentSignIn = { ...signIn, maxAgeSeconds: recentSeconds }
    const signedIn = await findSignedIn(app, deps, request, now)
    if (signedIn === undefined || (requires !== undefined && !isRecent(signedIn.session, now))) {
      await reply.startInteraction(requires === undefined ? signIn : recentSignIn, 'login')
      return undefined
    }
    const { session, user } = signedIn
    const secret = app.browser.ensureSecret(request, reply)
    const csrf = app.browser.csrfToken(secret, 'own', page.path, session.id)
    if (isForm) assertOwnForm(parametersOf(request.body), csrf, url)
    if (requires === 'every-factor') {
      const wanted = { ...recentSignIn, acr: { values: [multiFactor], essential: false } }
      if ((await loadAvailableAcrs(deps, wanted, session)).includes(multiFactor)) {
        await reply.startInteraction(wanted, 'login')
        return undefined
      }
    }
    // A link of another site must not make the page report that something was done.
    const isReport = !isForm && !isFromElsewhere(request)
    const done = isReport ? single(parametersOf(request.query), 'done') : undefined
    const frame = {
      sections,
      section: page.section,
      user: displayName(user),
      switchUrl: `${prefix}/account/switch`,
      signOutUrl: `${prefix}/oauth/logout`,
      ...(done !== undefined && app.texts.has(`done.${done}`) && { done }),
    }
    return {
      request,
      reply,
      session,
      user,
      now,
      context: userContext(request, now),
      hidden: { csrf },
      handleOf: (id) => app.browser.csrfToken(secret, 'own', page.path, session.id, id),
      render: (view, content, problem) => {
        const model = { frame, action: url, hidden: { csrf }, ...content, ...(problem && { problem }) }
        const status = problem === undefined ? reply.statusCode : Math.max(reply.statusCode, 400)
        return reply.page(view, model as unknown as Pages[typeof view], { status }) // what content leaves out is added
      },
      done: (word, section = undefined) =>
        reply.redirect(`${section === undefined ? url : prefix + sectionPath(section)}?done=${word}`, 303),
    }
  }

  app.get(page.path, { schema: { hide: true } }, async (request, reply) => {
    const visit = await enter(request, reply)
    return visit === undefined ? reply : page.show(visit)
  })
  if (page.submit === undefined) return
  app.post(page.path, { schema: { hide: true } }, async (request, reply) => {
    const visit = await enter(request, reply)
    return visit === undefined ? reply : page.submit?.({ ...visit, form: parametersOf(request.body) })
  })
}

/**
 * Adds a new factor to the session, as if it had been used at the sign-in. Like every session that gains rights, it
 * gets another identifier. A session that was ended in the meantime stays so.
 */
export async function addFactorToSession(
  app: FastifyInstance,
  { store }: Pick<AppDeps, 'store'>,
  { session, now, request, reply }: Visit,
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
  if (isReplaced) app.browser.keepSession(reply, secret, others)
}
