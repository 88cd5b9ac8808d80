import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/schema.ts'
import { OAuthError } from '../domain/errors.ts'
import { hostName, isHostOf, isNameOf } from '../http/host-names.ts'
import { addressesIn } from '../outbound/public-address.ts'

type Check = (request: FastifyRequest) => Promise<void>
type Settings = Pick<Config, 'issuer' | 'dev'>

const loopbackNames = ['localhost', '127.0.0.1', '[::1]'] as const

/**
 * Rejects a request whose Host is not a name of this server. With DNS rebinding, a name of an attacker resolves to this
 * computer.
 */
export function onlyKnownHosts(settings: Settings): Check {
  const names = ownNames(settings)
  const { host: own, port } = new URL(settings.issuer)
  const sameServer = hostsOn(Number(port || 80))
  let isExplained = false
  return async ({ headers: { host }, log }) => {
    if (host === own) return
    if (isHostOf(host, names)) {
      if (isExplained || host === undefined || !sameServer.includes(host)) return
      isExplained = true
      const advice = `use ${settings.issuer}, or start the server with --issuer http://${host}`
      log.warn(
        `a request came to http://${host}, and the issuer is ${settings.issuer}: cookies and clients tell them apart; ${advice}`,
      )
      return
    }
    throw foreign(
      'Host is not a name of this development server: list it in dev.hosts (LYCHGATE_DEV_HOSTS)',
      'lychgate-dev-host',
      host ?? '',
    )
  }
}

/**
 * Rejects background requests of another site's pages. Top-level navigations pass, because authorization requests are
 * such.
 */
export function onlyOwnPages(settings: Settings): Check {
  const names = ownNames(settings)
  return async ({ headers }) => {
    const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers
    const isForeign = site === undefined ? origin !== undefined : site === 'cross-site'
    if (!isForeign || (mode === 'navigate' && destination === 'document')) return
    const from = URL.parse(origin ?? '')
    if (from !== null && from.origin === origin && isNameOf(from.hostname, names)) return
    throw foreign(
      'the page of another site may not call this: list its host in dev.hosts (LYCHGATE_DEV_HOSTS)',
      'lychgate-dev-origin',
      origin ?? 'Sec-Fetch-Site: cross-site',
    )
  }
}

/**
 * Rejects requests to a development route that come from another computer or from a page of another site, or whose Host
 * is not a name of this server (DNS rebinding).
 */
export function onlyLocal({ issuer, dev }: Settings): Check {
  const own = new URL(issuer)
  const named = hostsOn(own.port === '' ? 80 : Number(own.port))
  const isListed = (host: string) => dev.hosts?.includes(hostName(host) ?? '') ?? false
  const isOwn = (host: string, { socket }: FastifyRequest) =>
    host === own.host || named.includes(host) || isListed(host) || hostsOn(socket.localPort).includes(host)
  const isTrusted = addressesIn(['127.0.0.0/8', '::1', ...(dev.peers ?? [])])

  return async (request) => {
    const { remoteAddress = '' } = request.socket
    if (!isTrusted(remoteAddress)) {
      throw foreign(
        'only this computer may call development routes: list the address of the caller in dev.peers (LYCHGATE_DEV_PEERS)',
        'lychgate-dev-peer',
        remoteAddress,
      )
    }
    const { host = '', origin } = request.headers
    if (!isOwn(host.toLowerCase(), request)) {
      throw foreign('Host must name this development server', 'lychgate-dev-host', host)
    }
    if (origin === undefined) return
    const from = URL.parse(origin)
    if (from === null || from.origin !== origin || !isOwn(from.host, request)) {
      throw foreign('Origin must name this development server', 'lychgate-dev-origin', origin)
    }
  }
}

/** The names of this server, without those of loopback. */
function ownNames({ issuer, dev }: Settings): readonly string[] {
  return [new URL(issuer).hostname, ...(dev.hosts ?? [])]
}

function hostsOn(port: number | undefined): readonly string[] {
  if (port === undefined) return []
  return loopbackNames.map((name) => (port === 80 ? name : `${name}:${port}`))
}

function foreign(description: string, rule: string, received: string): OAuthError {
  return new OAuthError('access_denied', description, {
    rule,
    received: received.slice(0, 100),
    isForDeveloper: true,
  })
}
