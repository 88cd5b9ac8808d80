import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import type { LinkPurpose, OneTimeLink, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { AppDeps, Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { RecordExists } from '../../storage/store.ts'
import { findLink, linkPath } from '../../users/one-time-links.ts'
import { linkKinds, requireLink, unusableLink } from '../../users/rules/one-time-link.ts'
import { msg } from '../i18n/i18n.ts'
import { findWaiting, waitingIn, waitingUrl } from '../waiting.ts'

declare module '../pages.ts' {
  interface Pages {
    'link-done': {
      readonly title: Text
      readonly about: Text
      readonly link: { readonly url: string; readonly label: Text }
    }
  }
}

/** A link that works, and the visit of the user who opened it. */
export type OpenedLink = {
  readonly link: OneTimeLink
  /** What its form brings back. */
  readonly hidden: Readonly<Record<'code' | 'csrf', string> & Partial<Record<'interaction', string>>>
  /** The query or the form. */
  readonly sent: Parameters
  readonly reply: FastifyReply
  /** For audit events about what the user does here. */
  readonly context: AuditContext
} & (
  | { readonly purpose: 'first-user'; readonly user?: undefined }
  | { readonly purpose: Exclude<LinkPurpose, 'first-user'>; readonly user: User }
)

/** Longer than any code of a link. */
const longestCode = 100

/** Finds the link that a query or form names, and binds its form to this browser, RFC 6749 §10.12. */
export function linkOpener(app: FastifyInstance, { store, clock }: Needs<'store' | 'clock'>) {
  return async (parsed: unknown, reply: FastifyReply): Promise<OpenedLink> => {
    const sent = parametersOf(parsed)
    const now = clock()
    const code = single(sent, 'code') ?? ''
    const found = code.length > longestCode ? undefined : await findLink(store, code)
    const link = requireLink(found, now)
    const { purpose } = link
    const secret = app.browser.ensureSecret(reply.request, reply)
    const hidden = { code, ...interactionIn(sent), csrf: app.browser.csrfToken(secret, 'link', link.id) }
    const opened = { link, hidden, sent, reply, context: userContext(reply.request, now) }
    if (purpose === 'first-user') {
      await assertNoUsers(store)
      return { ...opened, purpose }
    }
    const user = await store.find('user', link.userId ?? '')
    if (user === undefined || user.lockedAt !== undefined) throw unusableLink()
    return { ...opened, purpose, user }
  }
}

/** Uses up a link: of two forms that come at once, one continues. @throws {OAuthError} if it was used. */
export function useUp(store: AppDeps['store'], { link, context }: OpenedLink): Promise<void> {
  const kind = linkKinds[link.purpose]
  return store.transact(kind, link.id, (found) => {
    requireLink(found, context.at)
    return accept(undefined, remove(kind, link.id))
  })
}

/**
 * Writes an address that another user may have by now. @throws {OAuthError} if so, as for any link that does not
 * work.
 */
export async function claimAddress(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    throw error instanceof RecordExists ? unusableLink() : error
  }
}

/** @throws {OAuthError} unless the store has no user: the first one is created once. */
export async function assertNoUsers(store: AppDeps['store']): Promise<void> {
  if (!(await store.population()).isEmpty) throw unusableLink()
}

/** Returns the pending request of a query or form, as a parameter. */
export function interactionIn(sent: Parameters): { readonly interaction?: string } {
  return omitUndefined({ interaction: waitingIn(sent, 'interaction') })
}

/** Redirects to the page that says what the form of a link did, RFC 9110 §15.4.4: reloading it does nothing again. */
export function redirectToDone(
  { reply, hidden: { interaction } }: OpenedLink,
  prefix: string,
  done: 'password' | 'email',
): FastifyReply {
  const isPassword = done === 'password' && interaction !== undefined
  const query = new URLSearchParams({ done, ...(isPassword && { interaction }) })
  return reply.redirect(`${prefix}${linkPath}?${query}`, 303)
}

/**
 * Serves the page that says what was done. It leads back to the request that waits in this browser, or to the account
 * page.
 */
export function donePage(app: FastifyInstance, deps: Needs<'store' | 'clock' | 'service'>) {
  const { prefix } = deps.service
  return async (sent: Parameters, reply: FastifyReply): Promise<FastifyReply> => {
    const waiting = await findWaiting(app, deps, reply.request, waitingIn(sent, 'interaction'))
    const url = waiting && waitingUrl(prefix, waiting.id)
    const done = single(sent, 'done')
    const isEmail = done === 'email'
    return reply.page('link-done', {
      title: msg(isEmail ? 'link.verified' : 'link.saved'),
      about: msg(isEmail ? 'link.verified.about' : 'link.saved.about'),
      link:
        url === undefined
          ? { url: `${prefix}/account`, label: msg(isEmail ? 'link.account' : 'login.submit') }
          : { url, label: msg('link.goOn') },
    })
  }
}
