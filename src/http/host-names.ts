import { isIP } from 'node:net'

/** The lower-case name in a Host header (RFC 9110 §7.2) without its port; undefined for anything else. */
export function hostName(host: string): string | undefined {
  return /^(\[[\da-f:.]+\]|[^:[\]/@]+)(:\d*)?$/.exec(host.toLowerCase())?.[1]
}

/**
 * Checks Host against DNS rebinding, by which a web page reaches a server of an internal network through its own name.
 * Accepts these names, `localhost` and the names below it (RFC 6761 §6.3), and IP addresses, which no page can use as
 * its own name. An absent Host does not come from a browser.
 */
export function isHostOf(host: string | undefined, names: Iterable<string>): boolean {
  if (host === undefined || host === '') return true
  const name = hostName(host)
  return name !== undefined && (isNameOf(name, names) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0)
}

/** Whether a host name is one of these or leads to this computer by definition. */
export function isNameOf(name: string, names: Iterable<string>): boolean {
  const known = ['localhost', '127.0.0.1', '[::1]', ...names]
  return known.includes(name) || /^([a-z0-9-]+\.)+localhost$/.test(name)
}
