import type { FastifyRequest } from 'fastify'
import { OAuthError } from '../domain/errors.ts'

const loopbackNames = ['localhost', '127.0.0.1', '[::1]'] as const

/**
 * Refuses requests to a development route that do not come from this computer by its own names: a name that leads
 * here from elsewhere (DNS rebinding), and a page of another site.
 */
export function onlyLocal(issuer: string): (request: FastifyRequest) => Promise<void> {
  const own = new URL(issuer)
  const named = hostsOn(own.port === '' ? 80 : Number(own.port))
  const isOwn = (host: string, { socket }: FastifyRequest) =>
    host === own.host || named.includes(host) || hostsOn(socket.localPort).includes(host)

  return async (request) => {
    const { host = '', origin } = request.headers
    if (!isOwn(host.toLowerCase(), request)) {
      throw foreign('Host', 'lychgate-dev-host', host)
    }
    if (origin === undefined) return
    const from = URL.parse(origin)
    if (from === null || from.origin !== origin || !isOwn(from.host, request)) {
      throw foreign('Origin', 'lychgate-dev-origin', origin)
    }
  }
}

function hostsOn(port: number | undefined): readonly string[] {
  if (port === undefined) return []
  return loopbackNames.map((name) => (port === 80 ? name : `${name}:${port}`))
}

function foreign(header: string, rule: string, received: string): OAuthError {
  return new OAuthError('access_denied', `${header} must name this development server`, {
    rule,
    received: received.slice(0, 100),
  })
}
