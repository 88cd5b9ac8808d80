import type { Config } from '../config/schema.ts'
import { removeAll } from '../domain/decision.ts'
import type { Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system.ts'
import { makeLink } from '../users/one-time-links.ts'
import { linkKinds } from '../users/rules/one-time-link.ts'

/**
 * Makes a link that creates the first user, for a store without users; undefined for any other. It replaces the
 * link that an earlier start printed.
 */
export async function linkForFirstUser(
  config: Pick<Config, 'issuer' | 'lifetimes'>,
  store: Store,
  clock: Clock,
  random: RandomSource,
): Promise<string | undefined> {
  if (!(await store.population()).isEmpty) return undefined
  await store.write(removeAll(linkKinds['first-person']))
  const sources = { config, store, random }
  const { url } = await makeLink(sources, { purpose: 'first-person' }, { by: 'server', at: clock() })
  return url
}

/** What is said of it, on standard error: a line of its own between those of the log. */
export function sayWhereToBegin(url: string, seconds: number): void {
  const hours = Math.max(1, Math.round(seconds / 3600))
  process.stderr.write(
    `lychgate: No users yet. Open this link within ${hours} hours to create the first one:\n${url}\n`,
  )
}
