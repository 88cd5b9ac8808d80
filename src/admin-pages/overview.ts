import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../deps.ts'
import type { Rejection, Seconds } from '../domain/model.ts'
import type { Counts, DayCount } from '../storage/store.ts'
import type { AdminModel, AdminPage } from './admin-page.ts'

declare module '../pages/pages.ts' {
  interface Pages {
    'admin/overview': AdminModel & {
      readonly counts: Counts
      /** How far was counted. */
      readonly most: number
      /** Absent until the sweep has counted them. */
      readonly grants?: number
      /** The last seven days, each with its number of sign-ins. */
      readonly days: readonly (DayCount & { readonly at: Seconds })[]
      readonly errors: readonly Rejection[]
    }
  }
}

/** How far rows are counted: an overview needs no more. */
const most = 10_000
/** How many of the newest audit events are searched for sign-ins. */
const searched = 20_000
const daySeconds = 86_400
const shownDays = 7
const shownErrors = 5

/** The first page: what there is, what happened, and what to do next. */
export function overviewPage(_app: FastifyInstance, { store }: AppDeps): AdminPage {
  return {
    path: '',
    section: 'overview',
    show: async ({ now, render }) => {
      const today = Math.floor(now / daySeconds)
      const numbers = Array.from({ length: shownDays }, (_, index) => today - shownDays + 1 + index)
      const since = (numbers[0] ?? today) * daySeconds
      const [counts, found, errors, { activeGrants }] = await Promise.all([
        store.counts(most),
        store.signInsByDay(since, searched),
        store.rejections({ limit: shownErrors }),
        store.activity(),
      ])
      const countOf = new Map(found.map(({ day, count }) => [day, count]))
      return render('admin/overview', {
        counts,
        most,
        ...(activeGrants !== undefined && { grants: activeGrants }),
        days: numbers.map((day) => ({ day, at: day * daySeconds, count: countOf.get(day) ?? 0 })),
        errors: errors.map(({ row }) => row),
      })
    },
  }
}
