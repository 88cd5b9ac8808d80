import type { FastifyInstance } from 'fastify'
import { availableAcrs, multiFactor } from '../../domain/authentication-context.ts'
import type { Finding } from '../../domain/finding.ts'
import { type KeyAlgorithm, keyAlgorithms, termsOf } from '../../domain/key-term.ts'
import type { Rejection, Seconds } from '../../domain/model.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { ago } from '../../pages/describe.ts'
import type { Counts, DayCount } from '../../storage/store.ts'
import { needsSecondFactor } from '../../users/administrators.ts'
import { factorsOf } from '../../users/factors.ts'
import type { AdminModel, AdminPage } from './admin-page.ts'
import { newestErrors } from './errors.ts'

declare module '../../pages/pages.ts' {
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
      /** The problems that `lychgate doctor` would report about this server. */
      readonly findings: readonly Finding[]
      /** How long ago the apps were checked; absent: they are being checked. */
      readonly clientsAgoSeconds?: Seconds
      /** The active keys. */
      readonly keys: readonly { readonly algorithm: KeyAlgorithm; readonly ageSeconds: Seconds }[]
      /** What to do next: absent once there are users and clients. */
      readonly steps?: readonly ('app' | 'user' | 'api')[]
      /** Whether the administrator needs a second factor first. */
      readonly needsFactor: boolean
      readonly factorUrls: Readonly<Record<'passkeys' | 'codes', string>>
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

/** The first page: counts, recent activity, and what to do next. */
export function overviewPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store } = deps
  const { prefix } = service
  const isFactorNeeded = needsSecondFactor(config)
  return {
    path: '',
    section: 'overview',
    show: async ({ user, now, render }) => {
      const today = Math.floor(now / daySeconds)
      const numbers = Array.from({ length: shownDays }, (_, index) => today - shownDays + 1 + index)
      const since = (numbers[0] ?? today) * daySeconds
      const [ring, factors, counts, days, { errors }, { activeGrants }] = await Promise.all([
        store.list('key'),
        factorsOf(deps, user.id),
        store.counts(most),
        store.signInsByDay(since, searched),
        newestErrors(store, { ofSignIns: false, limit: shownErrors }),
        store.activity(),
      ])
      const countOf = new Map(days.map(({ day, count }) => [day, count]))
      const examined = deps.examine(ring, now)
      const ofRequests = [app.forwardingFinding(), app.loadFinding()].filter(
        (finding) => finding !== undefined,
      )
      const allFindings = [...examined.findings, ...ofRequests]
      return render('admin/overview', {
        counts,
        most,
        ...(activeGrants !== undefined && { grants: activeGrants }),
        days: numbers.map((day) => ({ day, at: day * daySeconds, count: countOf.get(day) ?? 0 })),
        errors,
        findings: allFindings.filter(({ level }) => level !== 'ok'),
        ...(examined.clientsAt !== undefined && { clientsAgoSeconds: ago(examined.clientsAt, now) }),
        keys: keyAlgorithms.flatMap((algorithm) => {
          const { acting } = termsOf(ring, algorithm, now)
          return acting === undefined ? [] : [{ algorithm, ageSeconds: ago(acting.activeAt, now) }]
        }),
        ...((counts.users < 2 || counts.clients === 0) && { steps: ['app', 'user', 'api'] as const }),
        needsFactor: isFactorNeeded && !availableAcrs(factors).includes(multiFactor),
        factorUrls: { passkeys: `${prefix}/account/passkeys`, codes: `${prefix}/account/one-time-codes` },
      })
    },
  }
}
