import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { availableAcrs, lacksAcr, multiFactor } from '../../domain/authentication-context.ts'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Seconds, Session, SignInRequest, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { recordRejection } from '../../http/errors.ts'
import { parametersOf } from '../../http/parameters.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import { assertOwnForm, type FormModel, isFromElsewhere } from '../../pages/forms.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import type { Pages } from '../../pages/pages.ts'
import { findSignedIn } from '../../pages/signed-in.ts'
import type { Store } from '../../storage/store.ts'
import { isAdministrator, needsSecondFactor, storeRequiring } from '../../users/administrators.ts'
import { readGroupsOf } from '../../users/delegation.ts'
import { factorsOf } from '../../users/factors.ts'
import { groupsOf } from '../../users/groups.ts'
import type { DoneWord } from '../operations/operation.ts'
import { type KeptFields, keepForm, keptForm, typedLines } from './late-form.ts'
import { outdatedForm } from './version.ts'

/** The sections of the admin pages, in the order of their navigation. */
export const adminSections = ['overview', 'users', 'groups', 'clients', 'keys', 'audit', 'errors'] as const

export type AdminSection = (typeof adminSections)[number]

/** Where the admin pages are, below the issuer. */
export const adminRoot = '/admin'

/** Returns the path of a section, below the issuer. */
export function adminPath(section: AdminSection): string {
  return section === 'overview' ? adminRoot : `${adminRoot}/${section}`
}

/** What surrounds every admin page. */
export interface AdminFrame {
  readonly sections: readonly { readonly section: AdminSection; readonly url: string }[]
  readonly section: AdminSection
  readonly user: NamedUser
  readonly accountUrl: string
  readonly signOutUrl: string
  readonly done?: DoneWord
}

/** What every admin page shows besides its own content. */
export interface AdminModel extends FormModel {
  readonly frame: AdminFrame
  /** The address of the admin pages. */
  readonly root: string
  /** Why a rule rejected the last form: the English description of the error. */
  readonly rejected?: string
  /** What was typed into a form that came too late, where the form shows what there is now. */
  readonly typedLate?: ReturnType<typeof typedLines>
}

declare module '../../pages/pages.ts' {
  interface Pages {
    /** For an administrator whose sign-in has one factor, and who has no second one. */
    'admin/factor': AdminModel & { readonly passkeysUrl: string; readonly codesUrl: string }
  }
}

const membership = 'lychgate-admin-membership'

/** A page for administrators. Its form has the same address. */
export interface AdminPage {
  /** Below `adminRoot`: empty for the first page. */
  readonly path: string
  readonly section: AdminSection
  /** Opening it needs what its form needs, because filling in the form takes time. */
  readonly isForm?: true
  /** What is kept of a form that comes after another change, or without a sign-in that suffices. */
  readonly kept?: KeptFields
  /** The fields of its form that may repeat. */
  readonly repeats?: readonly string[]
  show(visit: AdminVisit): FastifyReply | Promise<FastifyReply>
  submit?(visit: AdminVisit): FastifyReply | Promise<FastifyReply>
}

/** An administrator at a page. */
export interface AdminVisit {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly user: User
  readonly now: Seconds
  readonly query: Parameters
  /** What came back with the form, or was typed into it before the sign-in; empty until then. */
  readonly form: Parameters
  /** For audit events about what the administrator does here. */
  readonly context: AuditContext
  /** Changes go through it: they are made only if the user is an administrator at that time. */
  readonly store: Pick<Store, 'find' | 'listKind' | 'transact' | 'write'>
  /** What that store adds to each change. */
  requireAdministrator(): Write
  /** Returns a part of the address that the path names. */
  param(name: string): string
  /** Sends the page; with a problem, its status is 400. */
  render<K extends AdminView>(view: K, content: Content<K>, problem?: Text): FastifyReply
  /** Redirects to a page below `adminRoot`, which reports what was done, RFC 9110 §15.4.4. */
  done(word: DoneWord, path: string): FastifyReply
}

type AdminView = { [K in keyof Pages]: Pages[K] extends AdminModel ? K : never }[keyof Pages]
type Content<K extends AdminView> = Omit<Pages[K], keyof AdminModel> & Partial<AdminModel>

/** Serves a page for administrators: who is one is read at every request. */
export function addAdminPage(app: FastifyInstance, deps: AppDeps, page: AdminPage): void {
  const { config, store, service } = deps
  const { prefix } = service
  const root = prefix + adminRoot
  const sections = adminSections.map((section) => ({ section, url: prefix + adminPath(section) }))
  const { group, secondFactorSeconds } = config.admin
  const isStrict = needsSecondFactor(config)
  const acr = { values: [multiFactor], essential: false }
  const strong: SignInRequest = { prompt: [], maxAgeSeconds: secondFactorSeconds, acr }

  /** Whether the sign-in suffices to change something. */
  const isStrong = ({ methods, authenticatedAt }: Session, now: Seconds) =>
    !isStrict || (!lacksAcr(methods, acr) && now - authenticatedAt <= secondFactorSeconds)

  const deniedPage = {
    title: msg('admin.denied'),
    advice: msg('admin.denied.advice'),
    link: { url: `${prefix}/account`, label: msg('sections.overview') },
  }

  const assertAdministrator = async ({ id }: User) => {
    const groups = await groupsOf(store, id)
    check(isAdministrator(groups, group), membership, 'access_denied', 'the user is not an administrator', {
      stored: groups.map(({ name }) => name),
      received: group,
      page: deniedPage,
    })
  }

  /** The same in the transaction of a change: the membership may have ended in the meantime. */
  const requireAdministrator = ({ id }: User): Write => {
    const why = 'the user is no longer an administrator'
    return {
      op: 'require',
      condition: {
        rule: membership,
        why,
        *holds(read) {
          const user = yield* read.find('user', id)
          if (user === undefined || user.lockedAt !== undefined) return false
          return isAdministrator(yield* readGroupsOf(read, id), group)
        },
        error: () => new OAuthError('access_denied', why, { rule: membership, page: deniedPage }),
      },
    }
  }

  /** Whether the form is of this browser, and of the session that has ended since. */
  const isFormOfEnded = (request: FastifyRequest, path: string, form: Parameters): boolean => {
    const [secret, session] = [app.browser.secret(request), app.browser.namedSession(request)]
    if (secret === undefined || session === undefined) return false
    return isSameText(single(form, 'csrf'), app.browser.csrfToken(secret, 'admin', path, session))
  }

  const enter = async (request: FastifyRequest, reply: FastifyReply): Promise<AdminVisit | undefined> => {
    const now = deps.clock()
    const isForm = request.method === 'POST'
    const [path = ''] = request.url.split('?', 1)
    const query = parametersOf(request.query)
    const form = isForm
      ? parametersOf(request.body)
      : await keptForm(app, deps, request, { query, path, now })
    /** Where the sign-in leads back to, with what was typed if the form is our own. */
    const here = async (isOwn: boolean) => {
      const browserSecret = app.browser.secret(request)
      const isKept = isForm && isOwn && page.kept !== undefined && browserSecret !== undefined
      const otherwise = isForm ? `${path}?done=again` : request.url
      const url = isKept ? await keepForm(deps, path, { form, fields: page.kept, browserSecret }) : otherwise
      return url.slice(prefix.length)
    }
    const signedIn = await findSignedIn(app, deps, request, now)
    if (signedIn === undefined) {
      await reply.startInteraction(
        { page: await here(isFormOfEnded(request, path, form)), prompt: [] },
        'login',
      )
      return undefined
    }
    const { session, user } = signedIn
    await assertAdministrator(user)
    const secret = app.browser.ensureSecret(request, reply)
    const csrf = app.browser.csrfToken(secret, 'admin', path, session.id)
    if (isForm) assertOwnForm(form, csrf, path)
    // A link of another site must not make the page report that something was done.
    const isReport = !isForm && !isFromElsewhere(request)
    const done = isReport ? single(query, 'done') : undefined
    const frame: AdminFrame = {
      sections,
      section: page.section,
      user: displayName(user),
      accountUrl: `${prefix}/account`,
      signOutUrl: `${prefix}/oauth/logout`,
      ...(done !== undefined && app.texts.has(`admin.done.${done}`) && { done: done as DoneWord }), // it has a text
    }
    const common = { frame, root, action: path, hidden: { csrf } }
    if ((isForm || page.isForm) && !isStrong(session, now)) {
      if (availableAcrs(await factorsOf(deps, user.id)).includes(multiFactor))
        await reply.startInteraction({ page: await here(true), ...strong }, 'login')
      else {
        const urls = {
          passkeysUrl: `${prefix}/account/passkeys`,
          codesUrl: `${prefix}/account/one-time-codes`,
        }
        reply.page('admin/factor', { ...common, ...urls }, { status: 403 })
      }
      return undefined
    }
    return {
      request,
      reply,
      user,
      now,
      query,
      form,
      context: {
        by: 'operator',
        at: now,
        from: addressPrefix(request.ip),
        facts: { actor: user.id, request: request.id },
      },
      store: { ...store, ...storeRequiring(store, () => requireAdministrator(user)) },
      requireAdministrator: () => requireAdministrator(user),
      param: (name) => (request.params as Readonly<Record<string, string>>)[name] ?? '', // as the path says
      render: (view, content, problem) => {
        const hidden = { ...content.hidden, csrf }
        const model = { ...common, ...content, hidden, ...(problem && { problem }) }
        const status = problem === undefined ? reply.statusCode : Math.max(reply.statusCode, 400)
        return reply.page(view, model as unknown as Pages[typeof view], { status }) // what content leaves out is added
      },
      done: (word, to) => reply.redirect(`${root}${to}?done=${word}`, 303),
    }
  }

  /** A rule that rejects what was typed is a problem of the form, and not of the page. */
  const submit = async (visit: AdminVisit): Promise<FastifyReply | undefined> => {
    try {
      return await page.submit?.(visit)
    } catch (error) {
      if (!(error instanceof OAuthError) || error.status === 404 || error.status >= 500) throw error
      if (error.detail.rule === membership) throw error
      recordRejection(error, visit.reply)
      visit.reply.code(error.status)
      // The form of a page that has changed shows what there is now.
      const isOutdated = error.detail.rule === outdatedForm
      const typedLate = typedLines(visit.form, page.kept ?? {})
      const render: AdminVisit['render'] = (view, content) =>
        isOutdated
          ? visit.render(view, { ...content, typedLate }, msg('admin.outdated'))
          : visit.render(view, { ...content, rejected: error.message }, msg('admin.rejected'))
      return page.show({ ...visit, ...(isOutdated && { form: {} }), render })
    }
  }

  const path = adminRoot + page.path
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    const visit = await enter(request, reply)
    return visit === undefined ? reply : page.show(visit)
  })
  if (page.submit === undefined) return
  const { repeats = [] } = page
  app.post(path, { config: { repeats }, schema: { hide: true } }, async (request, reply) => {
    const visit = await enter(request, reply)
    return visit === undefined ? reply : submit(visit)
  })
}
