import { ok, type Setup, setting, warning } from '../../doctor/finding.ts'
import type { Finding } from '../../domain/finding.ts'
import { features } from '../../features.ts'
import { FetchFailed } from '../../outbound/exchange.ts'
import { createGuardedFetch, type GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { systemClock } from '../../system/system.ts'

/** Any response to these means that the host was reached. */
const reached: readonly unknown[] = ['redirect', 'status', 'encoding', 'size']

/**
 * Checks that the server can connect to what its settings have it fetch. Default settings are not tried: a
 * server without access to the Internet is none the worse for their defaults.
 */
export async function examineFetches({ config, origins }: Setup): Promise<readonly Finding[]> {
  const isDevelopment = config.mode === 'dev'
  const fetchUrl = createGuardedFetch({ limits: config.fetch, isDevelopment, clock: systemClock })
  // A section is set by any of its options, and a list as a whole.
  const isSet = (name: string) =>
    [...origins.keys()].some((path) => path === name || path.startsWith(`${name}.`))
  const urls = features.flatMap(({ settings = {}, fetches }) =>
    Object.keys(settings).some(isSet) ? (fetches?.(config) ?? []) : [],
  )
  return Promise.all(urls.map((url) => examineFetch(url, fetchUrl)))
}

async function examineFetch(url: string, fetchUrl: GuardedFetch): Promise<Finding> {
  const { host } = new URL(url)
  try {
    await fetchUrl(url, { purpose: 'operator' })
  } catch (error) {
    if (!(error instanceof FetchFailed)) throw error
    if (!reached.includes(error.fault)) {
      const change =
        error.fault === 'address'
          ? setting('fetch.privateNetworks', ['10.2.0.0/16'])
          : [`let this server connect to ${host}; it uses no proxy`]
      return warning`fetches: ${host} cannot be reached, so that no sign-in that needs it can begin
        expected  a response from ${url}
        found  ${error.message}
        change  ${change}`
    }
  }
  return ok`fetches: ${host} responds`
}
