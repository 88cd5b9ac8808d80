import type { FastifyRequest } from 'fastify'
import { check } from '../domain/check.ts'
import type { Client } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { addressesIn } from '../outbound/public-address.ts'
import { hostKind, nameOf, type ProtectedHost, protectedHostOf } from './rules.ts'

/** A protected host, and the client that it is. */
export interface HostClient {
  readonly client: Client
  readonly protectedHost: ProtectedHost
}

/** Finds protected hosts for the proxies in front of them. */
export function protectedHosts({ config, store, service }: Needs<'config' | 'store' | 'service'>) {
  const isTrusted = addressesIn(config.trustProxy)
  // A proxy keeps its connections.
  const trusted = new WeakSet<object>()
  const isProxy = (socket: FastifyRequest['socket']) => {
    if (trusted.has(socket)) return true
    if (!isTrusted(socket.remoteAddress ?? '')) return false
    trusted.add(socket)
    return true
  }
  const issuerHost = new URL(service.issuer).host
  // A name keeps its client until an operator changes that: then what is remembered does not fit, and is read again.
  const clientIds = new Map<string, string>()

  const hostOfClient = async (clientId: string, host: string): Promise<HostClient | undefined> => {
    const client = await store.find('client', clientId)
    const protectedHost = client && protectedHostOf(client)
    return client && protectedHost?.host === host ? { client, protectedHost } : undefined
  }

  const hosts = {
    /** @throws {OAuthError} for a request that is not from a proxy of `trustProxy`: anyone can send its headers. */
    assertProxy({ socket }: FastifyRequest): void {
      check(
        isProxy(socket),
        'lychgate-forward-auth-proxy',
        'access_denied',
        'only proxies may ask, whose addresses are in trustProxy',
        { passed: 'the request is from a proxy of trustProxy' },
      )
    },
    async find(host: string): Promise<HostClient | undefined> {
      const name = nameOf(host)
      const lastClientId = clientIds.get(name)
      const last = lastClientId === undefined ? undefined : await hostOfClient(lastClientId, host)
      if (last !== undefined) return last
      const record = await store.find(hostKind, name)
      if (record === undefined) return undefined
      clientIds.set(name, record.clientId)
      return hostOfClient(record.clientId, host)
    },
    /** @throws {OAuthError} for a host that no client protects, or the server itself, whose sign-in would need one. */
    require(host: unknown, found: HostClient | undefined): HostClient {
      const isServed = found !== undefined && found.client.lockedAt === undefined && host !== issuerHost
      check(isServed, 'lychgate-forward-auth-host', 'access_denied', 'no client protects this host', {
        received: String(host).slice(0, 100),
        passed: 'a client protects the host',
      })
      return found
    },
    /** Returns the host of a request that a proxy routes to this server. @throws {OAuthError} as above. */
    async ofRequest(request: FastifyRequest): Promise<HostClient> {
      hosts.assertProxy(request)
      const host = request.headers['x-forwarded-host']
      return hosts.require(host, await hosts.find(String(host)))
    },
  }
  return hosts
}

export type ProtectedHosts = ReturnType<typeof protectedHosts>
