import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { availableAcrs, lacksAcr, multiFactor } from '../../domain/authentication-context.ts'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isBinding } from '../../domain/interaction.ts'
import type { Seconds, Session, SignInRequest, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { recordRejection } from '../../http/errors.ts'
import { parametersOf } from '../../http/parameters.ts'
import type { FormModel } from '../../pages/forms.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { type Frame, findSignedIn, openPage, type PageVisit, servePage } from '../../pages/kit.ts'
import type { Store } from '../../storage/store.ts'
import { isAdministrator, needsSecondFactor, storeRequiring } from '../../users/administrators.ts'
import { readGroupsOf } from '../../users/delegation.ts'
import { factorsOf } from '../../users/factors.ts'
import { groupsOf } from '../../users/groups.ts'
import { isRecent, recentSeconds } from '../../users/rules/session.ts'
import { hasUpstreams } from '../../users/upstreams.ts'
import type { DoneWord } from '../operations/operation.ts'
import { type KeptFields, keepForm, keptForm, typedLines } from './late-form.ts'
import { outdatedForm } from './version.ts'

/** The sections of the admin pages, in the order of their navigation. */
export const adminSections = [
  'overview',
  'users',
  'groups',
  'clients',
  'upstreams',
  'apis',
  'keys',
  'audit',
  'errors',
  'settings',
] as const

export type AdminSection = (typeof adminSections)[number]

/** Where the admin pages are, below the issuer. */
export const adminRoot = '/admin'

/** Returns the path of a section, below the issuer. */
export function adminPath(section: AdminSection): string {
  return section === 'overview' ? adminRoot : `${adminRoot}/${section}`
}

/** What surrounds every admin page. */
export interface AdminFrame extends Frame<AdminSection, DoneWord> {
  readonly accountUrl: string
}

/** What every admin page shows around its content. */
export interface AdminModel extends FormModel {
  readonly frame: AdminFrame
  /** The address of the admin pages. */
  readonly root: string
  /** Why a rule rejected the last form: the English description of the error. */
  readonly rejected?: string
  /** What was typed into a form that came too late; the form itself shows the current values. */
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
  /** Opening it and its form need a sign-in of the last minutes, also where no second factor is required. */
  readonly needsRecentSignIn?: true
  /** What is kept of a form that comes after another change, or without a sign-in that suffices. */
  readonly kept?: KeptFields
  /** The fields of its form that may repeat. */
  readonly repeats?: readonly string[]
  show(visit: AdminVisit): FastifyReply | Promise<FastifyReply>
  submit?(visit: AdminVisit): FastifyReply | Promise<FastifyReply>
}

/** An administrator at a page. */
export interface AdminVisit extends PageVisit<AdminModel> {
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
  /** Redirects to a page below `adminRoot`, which reports what was done, RFC 9110 §15.4.4. */
  done(word: DoneWord, path: string): FastifyReply
}

/** Serves a page for administrators: who is one is read at every request. */
export function addAdminPage(app: FastifyInstance, deps: PageDeps, page: AdminPage): void {
  const { config, store, service } = deps
  const { prefix } = service
  const root = prefix + adminRoot
  const sections = adminSections.filter((section) => section !== 'upstreams' || hasUpstreams(config))
  const frame = {
    sections: sections.map((section) => ({ section, url: prefix + adminPath(section) })),
    section: page.section,
    accountUrl: `${prefix}/account`,
    signOutUrl: `${prefix}/oauth/logout`,
  }
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

  const enter = async (reply: FastifyReply): Promise<AdminVisit | undefined> => {
    const { request } = reply
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
      const page = await here(isFormOfEnded(request, path, form))
      await reply.startInteraction({ page, prompt: [] }, 'login')
      return undefined
    }
    const { session, user } = signedIn
    await assertAdministrator(user)
    const denial = await app.seams.userChecks.collect(undefined, session)
    if (isBinding(denial)) {
      await reply.startInteraction({ page: await here(true), prompt: [], policy: {} }, 'login')
      return undefined
    }
    const place = { frame, done: 'admin.done', action: path, purpose: ['admin', path] } as const
    const opened = openPage<AdminModel>(app, reply, now, signedIn, place)
    if ((isForm || page.isForm) && !isStrong(session, now)) {
      if (availableAcrs(await factorsOf(deps, user.id)).includes(multiFactor))
        await reply.startInteraction({ page: await here(true), ...strong }, 'login')
      else {
        reply.code(403)
        opened.render('admin/factor', {
          passkeysUrl: `${prefix}/account/passkeys`,
          codesUrl: `${prefix}/account/one-time-codes`,
        })
      }
      return undefined
    }
    if (page.needsRecentSignIn && !isRecent(session, now)) {
      const page = await here(true)
      await reply.startInteraction({ page, prompt: [], maxAgeSeconds: recentSeconds }, 'login')
      return undefined
    }
    return {
      ...opened,
      render: (view, content, problem) => opened.render(view, { ...content, root }, problem),
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
      done: (word, to) => reply.redirect(`${root}${to}?done=${word}`, 303),
    }
  }

  /** A rule that rejects what was typed is a problem of the form, and not of the page. */
  const rejected = (error: OAuthError, visit: AdminVisit) => {
    if (error.status === 404 || error.status >= 500) throw error
    if (error.detail.rule === membership) throw error
    recordRejection(error, visit.reply)
    visit.reply.code(error.status)
    // After a change by another, the form shows the current values.
    const isOutdated = error.detail.rule === outdatedForm
    const why = isOutdated
      ? { typedLate: typedLines(visit.form, page.kept ?? {}) }
      : { rejected: error.message }
    const problem = msg(isOutdated ? 'admin.outdated' : 'admin.rejected')
    const render: AdminVisit['render'] = (view, content) =>
      visit.render(view, { ...content, ...why }, problem)
    return page.show({ ...visit, ...(isOutdated && { form: {} }), render })
  }

  servePage(app, adminRoot + page.path, { ...page, enter, rejected })
}
