import type { FastifyReply } from 'fastify'
import { OAuthError } from '../../domain/errors.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import type { AdminModel, AdminPage, AdminSection, AdminVisit } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    /** Asks whether to do something. */
    'admin/act': AdminModel & {
      readonly title: Text
      readonly about: Text
      /** What it means for this one. */
      readonly more?: readonly Text[]
      readonly submit: Text
      /** What has to be typed; absent: pressing the button is enough. */
      readonly typed?: string
      /** The way back. */
      readonly backUrl: string
    }
  }
}

/** Something to do to one user, client, group or key. */
export interface Act<T> {
  /** Below `adminRoot`; `:id` names what it is done to. */
  readonly path: string
  readonly section: AdminSection
  readonly title: Text
  readonly about: Text
  /** Whether the name has to be typed, because it cannot be undone. */
  readonly isTyped: boolean
  /** Finds what it is done to. */
  find(id: string): Promise<Subject<T>>
  perform(subject: T, visit: AdminVisit): FastifyReply | Promise<FastifyReply>
}

/** What something is done to. */
export interface Subject<T> {
  readonly subject: T
  /** What has to be typed. */
  readonly name: string
  /** Its page. */
  readonly url: string
  /** What the act means for this one. */
  readonly more?: readonly Text[]
}

/** A page that asks for a confirmation, and its form, which acts. */
export function actPage<T>({ path, section, title, about, isTyped, find, perform }: Act<T>): AdminPage {
  const show = async ({ param, render }: AdminVisit, problem?: Text) => {
    const { name, url, more } = await find(param('id'))
    const named = { name }
    return render(
      'admin/act',
      {
        title: { ...title, with: named },
        about: { ...about, with: named },
        ...(more && { more }),
        submit: { ...title, with: named },
        ...(isTyped && { typed: name }),
        backUrl: url,
      },
      problem,
    )
  }
  return {
    path,
    section,
    isForm: true,
    show,
    submit: async (visit) => {
      const { subject, name } = await find(visit.param('id'))
      const isConfirmed = !isTyped || single(visit.form, 'confirm')?.trim() === name
      return isConfirmed ? perform(subject, visit) : show(visit, msg('admin.act.other', { name }))
    },
  }
}

/** @throws {OAuthError} 404 for something that is not there. */
export function requireFound<T>(value: T | undefined, what: string): T {
  if (value !== undefined) return value
  throw new OAuthError('invalid_request', `there is no such ${what}`, {
    rule: 'lychgate-admin-found',
    status: 404,
  })
}
