/** What all pages of signed-in users share: how one is entered, its form accepted, and what was done reported. */
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { endSession } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds, Session, User } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import type { Text } from '../domain/text.ts'
import type { Needs } from '../feature/deps.ts'
import { parametersOf } from '../http/parameters.ts'
import { displayName, type NamedUser } from './describe.ts'
import { assertOwnForm, type FormModel, isFromElsewhere } from './forms.ts'
import type { Key } from './i18n/i18n.ts'
import type { Pages } from './pages.ts'

/** The words for what was done, each the end of a text's key. One is in the address that a form redirects to. */
export type DoneWord<Prefix extends 'done' | 'admin.done'> = WordOf<Key, Prefix>
type WordOf<K, Prefix extends string> = K extends `${Prefix}.${infer Word}` ? Word : never

/** What surrounds a page of an area: its navigation, the user, and what was just done. */
export interface Frame<Section, Word> {
  readonly sections: readonly { readonly section: Section; readonly url: string }[]
  /** The section the page belongs to. */
  readonly section: Section
  readonly user: NamedUser
  readonly signOutUrl: string
  readonly done?: Word
}

/** A page, and the area whose frame surrounds it. */
interface Place extends Pick<FormModel, 'action'> {
  readonly frame: Omit<Frame<string, never>, 'user' | 'done'>
  /** What the keys of the texts for what was done begin with. */
  readonly done: 'done' | 'admin.done'
  /** What its form is bound to, in addition to browser and session. */
  readonly purpose: readonly string[]
}

type ViewOf<Model> = { [K in keyof Pages]: Pages[K] extends Model ? K : never }[keyof Pages]
type Content<K extends keyof Pages, Model> = Omit<Pages[K], keyof Model> & Partial<Model>

/** Who is signed in in a browser. */
export interface SignedIn {
  readonly session: Session
  readonly user: User
}

/** A signed-in user at a page. */
export interface PageVisit<Model> extends SignedIn {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly now: Seconds
  /** What came back with the form; empty until then. */
  readonly form: Parameters
  /** Returns a handle for a form in place of internal ids, valid on this page only. */
  handleOf(...ids: readonly string[]): string
  /** Sends a page of the area. With a problem its status is 400, unless a higher one was set before. */
  render<K extends ViewOf<Model>>(view: K, content: Content<K, Model>, problem?: Text): FastifyReply
}

/** A page and its form, which have one path. */
interface PageRoutes<Visit> {
  /** How it is opened. */
  readonly config?: FastifyContextConfig
  /** The fields of its form that may repeat. */
  readonly repeats?: readonly string[]
  /** Returns undefined after it responded itself. */
  enter(reply: FastifyReply): Promise<Visit | undefined>
  show(visit: Visit): FastifyReply | Promise<FastifyReply>
  submit?(visit: Visit): FastifyReply | Promise<FastifyReply>
  /** Shows the page again if the error is a problem of its form. @throws it if not. */
  rejected?(error: OAuthError, visit: Visit): FastifyReply | Promise<FastifyReply>
}

/** Serves a page and its form. */
export function servePage<Visit>(app: FastifyInstance, path: string, page: PageRoutes<Visit>): void {
  const { config = {}, repeats = [], show, submit, rejected } = page
  const serve = async (reply: FastifyReply, use: PageRoutes<Visit>['show']) => {
    const visit = await page.enter(reply)
    try {
      return visit === undefined ? reply : await use(visit)
    } catch (error) {
      if (visit === undefined || use === show || !(error instanceof OAuthError)) throw error
      return rejected?.(error, visit) ?? Promise.reject(error)
    }
  }
  app.get(path, { config, schema: { hide: true } }, (_request, reply) => serve(reply, show))
  if (submit === undefined) return
  app.post(path, { config: { repeats }, schema: { hide: true } }, (_request, reply) => serve(reply, submit))
}

/**
 * Opens a page of an area for a signed-in user.
 * @throws {OAuthError} `access_denied` if the form is not of this page, browser and session, RFC 6749 §10.12.
 */
export function openPage<Model extends FormModel>(
  app: FastifyInstance,
  reply: FastifyReply,
  now: Seconds,
  { session, user }: SignedIn,
  { frame: known, done, action, purpose }: Place,
): PageVisit<Model> {
  const { request } = reply
  const secret = app.browser.ensureSecret(request, reply)
  const handleOf = (...ids: readonly string[]) =>
    app.browser.csrfToken(secret, ...purpose, session.id, ...ids)
  const csrf = handleOf()
  const isForm = request.method === 'POST'
  const form = parametersOf(request.body)
  if (isForm) assertOwnForm(form, csrf, action)
  // A link of another site must not make the page report that something was done.
  const word = isForm || isFromElsewhere(request) ? undefined : single(parametersOf(request.query), 'done')
  const report = word !== undefined && app.texts.has(`${done}.${word}`) && { done: word }
  const frame = { ...known, user: displayName(user), ...report }
  const render: PageVisit<Model>['render'] = (view, content, problem) => {
    const hidden = { ...content.hidden, csrf }
    const model = { frame, action, ...content, hidden, ...(problem && { problem }) }
    const status = problem === undefined ? reply.statusCode : Math.max(reply.statusCode, 400)
    return reply.page(view, model as unknown as Pages[typeof view], { status }) // what content leaves out is added
  }
  return { request, reply, session, user, now, form, handleOf, render }
}

/**
 * Finds who is signed in; undefined if the user has to sign in. A session that outlived its user is ended, because it
 * would only lead to the same page again.
 */
export async function findSignedIn(
  app: FastifyInstance,
  { store }: Needs<'store'>,
  request: FastifyRequest,
  now: Seconds,
): Promise<SignedIn | undefined> {
  const session = await app.browser.session(request, now)
  if (session === undefined) return undefined
  const user = await store.find('user', session.userId)
  if (user !== undefined && user.lockedAt === undefined) return { session, user }
  await store.write(endSession(session.id, now))
  return undefined
}
