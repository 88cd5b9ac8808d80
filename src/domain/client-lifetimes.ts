import type { Client, Seconds } from './model.ts'

/** The lifetimes that an operator may shorten for one client, by the names of its metadata. */
export const clientLifetimes = {
  access_token_seconds: 'accessTokenSeconds',
  id_token_seconds: 'idTokenSeconds',
  refresh_token_idle_seconds: 'refreshTokenIdleSeconds',
  refresh_token_absolute_seconds: 'refreshTokenAbsoluteSeconds',
} as const

type Shortened = (typeof clientLifetimes)[keyof typeof clientLifetimes]

/**
 * Returns lifetimes of the server as they are for a client. A client never has longer ones: keys verify as long as the
 * server's need.
 */
export function lifetimesFor<T extends Partial<Readonly<Record<Shortened, Seconds>>>>(
  { extra }: Pick<Client, 'extra'>,
  lifetimes: T,
): T {
  // Most clients have no such member.
  if (extra === undefined) return lifetimes
  let own: T | undefined
  for (const [member, name] of Object.entries(clientLifetimes)) {
    const [most, usual] = [extra[member], lifetimes[name]]
    if (typeof most === 'number' && usual !== undefined && most < usual)
      own = { ...(own ?? lifetimes), [name]: most }
  }
  return own ?? lifetimes
}
