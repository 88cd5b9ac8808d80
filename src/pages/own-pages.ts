import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { remove } from '../domain/decision.ts'
import type { Seconds, Session, User } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { isSameText } from '../domain/secret.ts'
import { parametersOf } from '../http/parameters.ts'
import { isRecent, recentSeconds } from '../users/rules/session.ts'
import {
  type AccountFrame,
  type AccountSection,
  accountSections,
  type DoneWord,
  isDoneWord,
  sectionPath,
} from './account/models.ts'
import { forged, isFromElsewhere } from './forgery.ts'

/** A user at an account page. */
export interface Visit {
  readonly session: Session
  readonly user: User
  readonly now: Seconds
  /** What stands around the page. */
  readonly frame: AccountFrame
  /** What every form of the page brings back: a token of this page, browser and sign-in, RFC 6749 §10.12. */
  readonly hidden: Readonly<Record<string, string>>
  /** Returns a handle for a form in place of an internal id, valid on this page only. */
  handleOf(id: string): string
}

/** A form of such a page that came back, proven to be ours. */
export interface Submission extends Visit {
  readonly form: Parameters
}

/** What a page asks of the sign-in. */
export interface Entry {
  readonly section: AccountSection
  /** Requires a sign-in of the last minutes, so that a browser left open does not suffice. */
  readonly recent?: true
}

/**
 * The way into a page of the user's own, for every page below `/account`. A page and its forms have one address:
 * who has to sign in first comes back to it.
 */
export function ownPages(
  app: FastifyInstance,
  { service, store, clock }: Pick<AppDeps, 'service' | 'store' | 'clock'>,
) {
  const { prefix } = service
  const sections = accountSections.map((section) => ({ section, url: prefix + sectionPath(section) }))
  const pathOf = (request: FastifyRequest) => request.routeOptions.url?.slice(prefix.length) ?? ''

  const enter = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { section, recent }: Entry,
    isForm: boolean,
  ): Promise<Visit | undefined> => {
    const now = clock()
    const page = pathOf(request)
    const session = await app.browser.session(request, now)
    const user = session && (await store.find('user', session.userId))
    const isIn = session !== undefined && user !== undefined && user.lockedAt === undefined
    // A session that outlived its user would only lead here again.
    if (!isIn && session !== undefined) await store.write(remove('session', session.id))
    if (!isIn || (recent && !isRecent(session, now))) {
      const back = isForm ? `${page}?done=again` : page
      const wanted = { page: back, prompt: [], ...(recent && { maxAgeSeconds: recentSeconds }) }
      await reply.startInteraction(wanted, 'login')
      return undefined
    }
    const secret = app.browser.ensureSecret(request, reply)
    const csrf = app.browser.csrfToken(secret, 'own', page, session.id)
    const handleOf = (id: string) => app.browser.csrfToken(secret, 'own', page, session.id, id)
    // A link of another site must not make the page say that something was done.
    const isSaid = !isForm && !isFromElsewhere(request)
    const done = isSaid ? single(parametersOf(request.query), 'done') : undefined
    return { session, user, now, frame: frameOf(section, user, done), hidden: { csrf }, handleOf }
  }

  const frameOf = (section: AccountSection, { username, claims }: User, done: string | undefined) => ({
    sections,
    section,
    user: { name: String(claims['name'] ?? username), username },
    switchUrl: `${prefix}/account/switch`,
    signOutUrl: `${prefix}/oauth/logout`,
    ...(isDoneWord(done) && { done }),
  })

  return {
    /** The user at the page; undefined when the browser was sent to the sign-in page, which leads back. */
    visit: (request: FastifyRequest, reply: FastifyReply, entry: Entry): Promise<Visit | undefined> =>
      enter(request, reply, entry, false),

    /**
     * The same for a form of the page.
     * @throws {OAuthError} `access_denied` when the form is not of this page, browser and sign-in.
     */
    submission: async (
      request: FastifyRequest,
      reply: FastifyReply,
      entry: Entry,
    ): Promise<Submission | undefined> => {
      const form = parametersOf(request.body)
      const visit = await enter(request, reply, entry, true)
      if (visit === undefined) return undefined
      const isOurs = isSameText(single(form, 'csrf'), visit.hidden['csrf'] ?? '')
      if (!isOurs) throw forged(prefix + pathOf(request))
      return { ...visit, form }
    },

    /** On to a room after a form, or back to its own page, with a word on what was done, RFC 9110 §15.4.4. */
    back: (reply: FastifyReply, done: DoneWord, section?: AccountSection): FastifyReply => {
      const path = section === undefined ? pathOf(reply.request) : sectionPath(section)
      return reply.redirect(`${prefix}${path}?done=${done}`, 303)
    },
  }
}
