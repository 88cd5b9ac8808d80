import type { Config } from '../config/schema.ts'
import { type AuditContext, auditEvent } from '../domain/audit.ts'
import { accept, removeAll, type Write } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { OneTimeLink, Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { hashSecret, secretBytes } from '../domain/secret.ts'
import type { Store } from '../storage/store.ts'
import type { RandomSource } from '../system/system.ts'
import { insertLink, linkKinds, type MintedLink, mintLink } from './rules/one-time-link.ts'

/** A link with its secret: the URL can be used once. */
export interface GivenLink {
  readonly url: string
  readonly expiresAt: Seconds
  /** For how long it works. */
  readonly seconds: Seconds
}

/** What links are made of. */
export interface LinkSources {
  readonly config: Pick<Config, 'issuer' | 'lifetimes'>
  readonly store: Pick<Store, 'transact' | 'write'>
  readonly random: RandomSource
}

/** The path of links and of requests for one, below the issuer. */
export const linkPath = '/link'

/**
 * Makes a link for a user, stored as a hash, and records it in the audit log.
 * @throws {OAuthError} `access_denied` when the user is locked or was removed.
 * @param recipient `email`: the address it is sent to, which its use verifies.
 * @param query Further parameters of the page, such as the request that waits in the same browser.
 */
export async function makeLink(
  { config, store, random }: LinkSources,
  { purpose, ...recipient }: Pick<OneTimeLink, 'purpose' | 'userId' | 'email'>,
  context: AuditContext,
  query: Readonly<Record<string, string>> = {},
): Promise<GivenLink> {
  const minted = mintLink(purpose, recipient, config.lifetimes, random(secretBytes), context.at)
  const about = { ...(recipient.userId !== undefined && { userId: recipient.userId }), purpose }
  const writes: readonly Write[] = [
    ...withdrawn(minted.link),
    insertLink(minted.link),
    auditEvent('link-made', context, about),
  ]
  const { userId } = recipient
  if (userId === undefined) await store.write(...writes)
  else {
    await store.transact('user', userId, (user) => {
      if (user === undefined || user.lockedAt !== undefined) throw notAllowedIn()
      return accept(undefined, ...writes)
    })
  }
  return givenLink(config, minted, query)
}

/** Returns the links of a user that can be used. */
export async function linksOf(
  store: Pick<Store, 'listOf'>,
  userId: string,
  now: Seconds,
): Promise<readonly OneTimeLink[]> {
  const found = await Promise.all(Object.values(linkKinds).map((kind) => store.listOf(kind, userId)))
  return found.flat().filter(({ expiresAt }) => now < expiresAt)
}

/** Finds a link of a user by its id, which is no secret. */
export async function findLinkOf(
  store: Pick<Store, 'find'>,
  userId: string,
  id: string,
): Promise<OneTimeLink | undefined> {
  const found = await Promise.all(Object.values(linkKinds).map((kind) => store.find(kind, id)))
  return found.find((one) => one?.userId === userId)
}

/** Describes a link without its secret. */
export function describeLink({ id, purpose, email, createdAt, expiresAt }: OneTimeLink) {
  return {
    link_id: id,
    purpose,
    ...omitUndefined({ email }),
    created_at: createdAt,
    expires_at: expiresAt,
  }
}

/** Finds a stored link by its secret, expired or not. */
export async function findLink(store: Pick<Store, 'find'>, secret: string): Promise<OneTimeLink | undefined> {
  const id = hashSecret(secret)
  const found = await Promise.all(Object.values(linkKinds).map((kind) => store.find(kind, id)))
  return found.find((link) => link !== undefined)
}

/** A minted link with its secret. */
export function givenLink(
  { issuer }: Pick<Config, 'issuer'>,
  { link, secret }: MintedLink,
  query: Readonly<Record<string, string>> = {},
): GivenLink {
  const search = new URLSearchParams({ code: secret, ...query })
  return {
    url: `${issuer}${linkPath}?${search}`,
    expiresAt: link.expiresAt,
    seconds: link.expiresAt - link.createdAt,
  }
}

function notAllowedIn(): OAuthError {
  return new OAuthError('access_denied', 'the user is locked or no longer exists', {
    rule: 'lychgate-account-locked',
  })
}

/** Only the last address that was asked for can become the user's: an earlier one may have been mistyped. */
function withdrawn({ purpose, userId }: OneTimeLink): readonly Write[] {
  if (purpose !== 'email-change' || userId === undefined) return []
  return [removeAll(linkKinds[purpose], userId)]
}
