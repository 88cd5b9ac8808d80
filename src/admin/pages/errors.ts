import type { FastifyInstance } from 'fastify'
import { requestIdPattern } from '../../domain/errors.ts'
import type { Rejection } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { type Explanation, explainRejection, explainToken } from '../../observability/explain.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/errors': AdminModel & {
      readonly errors: readonly Rejection[]
      readonly nextUrl?: string
      readonly explanation?: Explanation
    }
  }
}

const onPage = 25
/** Longer than any token of this server. */
const longestToken = 8000

/**
 * The rejected requests, newest first, and why each was rejected. Its form takes a token: that must not be in a URL.
 */
export function errorsPage(_app: FastifyInstance, { service, store, keys, clock }: PageDeps): AdminPage {
  const url = service.prefix + adminPath('errors')

  const show = async ({ query, render }: AdminVisit, explained?: Explanation, isUnknown?: boolean) => {
    const rows = await store.rejections({ limit: onPage + 1, before: readCursor(single(query, 'after')) })
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
        errors: rows.slice(0, onPage).map(({ row }) => row),
        ...(rows.length > onPage && { nextUrl: `${url}?after=${cursorOf(rows.at(onPage - 1)?.seq ?? 0)}` }),
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
