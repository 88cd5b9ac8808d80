import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import type { LinkPurpose, OneTimeLink, Seconds, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { findLink } from '../../users/one-time-links.ts'
import { requireLink, unusableLink } from '../../users/rules/one-time-link.ts'

/** A link that works, as it stands at this request. */
export type OpenedLink = {
  readonly link: OneTimeLink
  /** What its form brings back. */
  readonly hidden: Readonly<Record<string, string>>
  /** The request that waits in the browser the link was asked for in. */
  readonly interaction?: string
} & (
  | { readonly purpose: 'first-person'; readonly user?: undefined }
  | { readonly purpose: Exclude<LinkPurpose, 'first-person'>; readonly user: User }
)

/** Longer is no secret of ours. */
const longestCode = 100

/** Finds what the code of a page or form opens, and binds the form to this browser, RFC 6749 §10.12. */
export function linkOpener(app: FastifyInstance, { store }: Pick<AppDeps, 'store'>) {
  return async (parameters: Parameters, reply: FastifyReply, now: Seconds): Promise<OpenedLink> => {
    const code = single(parameters, 'code') ?? ''
    const found = code.length > longestCode ? undefined : await findLink(store, code)
    const link = requireLink(found, now)
    const { purpose } = link
    const secret = app.browser.ensureSecret(reply.request, reply)
    const interaction = interactionIn(parameters)
    const waits = interaction === undefined ? {} : { interaction }
    const hidden = { code, ...waits, csrf: app.browser.csrfToken(secret, 'link', link.id) }
    if (purpose === 'first-person') {
      await assertNoUsers(store)
      return { purpose, link, hidden, ...waits }
    }
    const user = await store.find('user', link.userId ?? '')
    if (user === undefined || user.lockedAt !== undefined) throw unusableLink()
    return { purpose, link, hidden, ...waits, user }
  }
}

/** @throws {OAuthError} unless the store has no user: the first one is created once. */
export async function assertNoUsers(store: AppDeps['store']): Promise<void> {
  if (!(await store.population()).isEmpty) throw unusableLink()
}

/** The handle of a pending request; it is of use only in the browser it was made in. */
export function interactionIn(parameters: Parameters): string | undefined {
  const id = single(parameters, 'interaction')
  return id !== undefined && /^[\w-]{22}$/.test(id) ? id : undefined
}
