import type { FastifyInstance } from 'fastify'
import { requestIdPattern } from '../../domain/errors.ts'
import type { Rejection } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { type Explanation, explainRejection, explainToken } from '../../observability/explain.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { isFailedSignIn } from '../../users/failed-sign-ins.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/errors': AdminModel & {
      readonly errors: readonly Rejection[]
      /** Whether the list has the sign-ins that failed, or else everything but those. */
      readonly ofSignIns: boolean
      readonly otherUrl: string
      readonly nextUrl?: string
      readonly explanation?: Explanation
    }
  }
}

const onPage = 25
/** How many records are looked through for a page, and how many at once. */
const [mostRead, atOnce] = [1000, 200]
/** Longer than any token of this server. */
const longestToken = 8000

/**
 * The rejected requests, newest first, and why each was rejected. Its form takes a token: that must not be in a URL.
 */
export function errorsPage(_app: FastifyInstance, { service, store, keys, clock }: PageDeps): AdminPage {
  const url = service.prefix + adminPath('errors')

  const show = async ({ query, render }: AdminVisit, explained?: Explanation, isUnknown?: boolean) => {
    const ofSignIns = single(query, 'only') === 'sign-ins'
    const { errors, next } = await newestErrors(store, {
      ofSignIns,
      limit: onPage,
      before: readCursor(single(query, 'after')),
    })
    const addressOf = (named: Readonly<Record<string, string>>) => `${url}?${new URLSearchParams(named)}`
    const id = single(query, 'request')?.trim()
    const rejection =
      id !== undefined && requestIdPattern.test(id)
        ? await store.find('rejection', id.toLowerCase())
        : undefined
    const explanation = explained ?? (rejection && explainRejection(rejection))
    const isMissing = isUnknown || (id !== undefined && rejection === undefined)
    return render(
      'admin/errors',
      {
        errors,
        ofSignIns,
        otherUrl: ofSignIns ? url : addressOf({ only: 'sign-ins' }),
        ...(next !== undefined && {
          nextUrl: addressOf({ ...(ofSignIns && { only: 'sign-ins' }), after: cursorOf(next) }),
        }),
        ...(explanation && { explanation }),
      },
      isMissing ? msg('admin.errors.unknown') : undefined,
    )
  }

  return {
    path: '/errors',
    section: 'errors',
    show: (visit) => show(visit),
    submit: async (visit) => {
      const text = (single(visit.form, 'text') ?? '').trim()
      if (requestIdPattern.test(text)) {
        const rejection = await store.find('rejection', text.toLowerCase())
        return show(visit, rejection && explainRejection(rejection), rejection === undefined)
      }
      if (text === '' || text.length > longestToken) return show(visit, undefined, true)
      return show(visit, await explainToken(text, { store, keys, service, now: clock() }))
    },
  }
}

/**
 * Returns the newest rejected requests: those that are sign-ins of users, such as a wrong password, or all others.
 */
export async function newestErrors(
  store: Pick<PageDeps['store'], 'rejections'>,
  wanted: { readonly ofSignIns: boolean; readonly limit: number; readonly before?: number | undefined },
): Promise<{ readonly errors: readonly Rejection[]; readonly next?: number }> {
  const { ofSignIns, limit } = wanted
  const errors: Rejection[] = []
  let { before } = wanted
  for (let read = 0; read < mostRead; read += atOnce) {
    const rows = await store.rejections({ limit: atOnce, before })
    for (const { row, seq } of rows) {
      if (errors.length === limit) return { errors, next: before ?? seq }
      if (isFailedSignIn(row) === ofSignIns) errors.push(row)
      before = seq
    }
    if (rows.length < atOnce) return { errors }
  }
  return { errors, ...(before !== undefined && { next: before }) }
}
