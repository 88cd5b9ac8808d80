import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect, type PeerCertificate } from 'node:tls'
import {
  isDirect,
  ok,
  problem,
  type Setup,
  setting,
  unchecked,
  upstreamOf,
  warning,
} from '../../doctor/finding.ts'
import type { Finding } from '../../domain/finding.ts'
import { isRetired } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { wellKnownUrl } from '../../domain/well-known.ts'
import { readinessUrl } from '../healthcheck.ts'
import { type Difference, differenceOf } from './difference.ts'
import { ask, excerptOf, type HttpResponse, membersOf, NoResponse, type Reference } from './http.ts'

/** Whether the server of this configuration runs on this machine. */
type ServerState = 'runs' | 'silent' | 'another'

/** Asks the server on its own address, past every proxy. */
export async function examineServer(
  setup: Setup,
  reference: Reference,
): Promise<{ readonly state: ServerState; readonly finding: Finding }> {
  const { config } = setup
  if (config.port === 0) return { state: 'silent', finding: unchecked`server: port 0 means any free port` }
  const { origin } = new URL(readinessUrl(config))
  const url = `${origin}${new URL(config.issuer).pathname.replace(/\/$/, '')}/.well-known/openid-configuration`
  try {
    const response = await ask(url)
    const expected = await reference.responseTo(`${config.issuer}/.well-known/openid-configuration`)
    const difference = differenceOf(setup, response, expected)
    if (difference !== undefined)
      return { state: 'another', finding: explainServer(setup, origin, difference) }
    const named = await ask(url, { headers: { host: 'another.example' } })
    if (named.body === response.body) {
      const finding = ok`server: runs at ${origin} with these options, and ignores the Host header`
      return { state: 'runs', finding }
    }
    const finding = problem`server: follows the Host header
      change  restart the server with this version: its documents depend on the issuer alone`
    return { state: 'another', finding }
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    const said = `nothing listens at ${upstreamOf(setup)}: the server does not run here`
    return { state: 'silent', finding: unchecked`server: ${said}` }
  }
}

function explainServer({ origins }: Setup, origin: string, difference: Difference): Finding {
  const isOurs = ['rewritten', 'issuer', 'members'].includes(difference.kind)
  const who = isOurs
    ? `the server at ${origin} runs with other options`
    : `another server listens at ${origin}`
  const names = ['issuer', 'port'].flatMap((name) => origins.get(name)?.name ?? [])
  const restart = `restart the server with the options that were examined (${names.join(', ') || 'defaults'})`
  return problem`server: ${who}: its document ${difference.said}
    expected  ${difference.expected}
    found  ${difference.found}
    change  ${isOurs ? restart : setting('port', '9401')}`
}

/**
 * Fetches every document that a client may start with, at each of its addresses: RFC 8414 §3.1, RFC 9728 §3.1,
 * OpenID Connect Discovery §4. `isReached` is whether the issuer responds as this server.
 */
export async function examineIssuer(
  setup: Setup,
  server: ServerState,
  reference: Reference,
): Promise<{ readonly isReached: boolean; readonly findings: readonly Finding[] }> {
  const { issuer, resources } = setup.config
  const { origin } = new URL(issuer)
  const names = ['openid-configuration', 'oauth-authorization-server', 'oauth-protected-resource']
  const urls = names.flatMap((name) => [`${issuer}/.well-known/${name}`, wellKnownUrl(issuer, name)])
  const others = resources
    .filter(({ identifier }) => URL.parse(identifier)?.origin === origin)
    .map(({ identifier }) => wellKnownUrl(identifier, 'oauth-protected-resource'))
  const findings: Finding[] = []
  for (const url of new Set([...urls, ...others])) {
    let response: HttpResponse
    try {
      response = await ask(url)
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error
      return { isReached: false, findings: [await explainSilence(setup, url, server, error)] }
    }
    const difference = differenceOf(setup, response, await reference.responseTo(url))
    if (difference === undefined) findings.push(ok`issuer: ${url} is as expected`)
    else if (server === 'silent' && difference.kind === 'status' && response.status >= 500) {
      const said = `the proxy at ${origin} responds with ${response.status}, as it does while the server does not run`
      return { isReached: false, findings: [unchecked`issuer: ${said}`] }
    } else {
      const { kind, said, expected, found, change } = difference
      const finding = (kind === 'type' ? warning : problem)`issuer: ${url} ${said}
        expected  ${expected}
        found  ${found}
        change  ${change}`
      findings.push(finding)
      // The same error for the other documents would add nothing.
      if (url === urls[0]) return { isReached: ['rewritten', 'members', 'type'].includes(kind), findings }
    }
  }
  return { isReached: true, findings }
}

async function explainSilence(
  setup: Setup,
  url: string,
  server: ServerState,
  error: NoResponse,
): Promise<Finding> {
  const { issuer } = setup.config
  const { origin, host } = new URL(issuer)
  const tls = await explainTls(issuer, error)
  if (tls !== undefined) return tls
  if (server === 'silent' && isDirect(setup)) return unchecked`issuer: the server does not run`
  if (['ENOTFOUND', 'EAI_AGAIN'].includes(error.code)) {
    return problem`issuer: the name ${host} has no address
      expected  a response at ${url}
      found  ${error.message} (${error.code})
      change  add ${host} to the DNS, or to /etc/hosts for a trial
      change  ${setting('issuer', issuer)}`
  }
  return problem`issuer: nothing responds at ${origin}
    expected  a response at ${url}
    found  ${error.message} (${error.code})
    change  start the proxy and open its port; it passes requests on to ${upstreamOf(setup)}`
}

/** Explains a TLS error by the certificate of the issuer; undefined if TLS is not what failed. */
async function explainTls(issuer: string, { code, message }: NoResponse): Promise<Finding | undefined> {
  const { hostname } = new URL(issuer)
  if (/^(ERR_SSL|EPROTO)/.test(code)) {
    return problem`issuer: does not use TLS
      expected  TLS, as the issuer is https
      found  ${message.split('\n')[0]?.slice(0, 120) ?? code}
      change  listen 443 ssl;   (in nginx; the server itself uses plain http behind it)`
  }
  const isExpired = code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
  const isWrongName = code === 'ERR_TLS_CERT_ALTNAME_INVALID'
  const isUnknown = /^(DEPTH_ZERO_)?SELF_SIGNED_CERT|^UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)/.test(code)
  if (!isExpired && !isWrongName && !isUnknown) return undefined
  const certificate = await readCertificate(issuer)
  if (isExpired) {
    const { valid_from: from, valid_to: until } = certificate ?? {}
    return problem`issuer: the certificate is not valid at this time
      expected  a certificate that is valid now
      found  ${certificate === undefined ? code : `valid from ${from} until ${until}`}
      change  renew the certificate and reload the proxy: certbot renew (or look at its log)`
  }
  if (isWrongName) {
    return problem`issuer: the certificate is for another name
      expected  ${hostname}
      found  ${certificate === undefined ? message : (certificate.subjectaltname ?? String(certificate.subject.CN))}
      change  certbot certonly -d ${hostname}   (a certificate for this name)`
  }
  const authority = certificate?.issuer.CN ?? certificate?.issuer.O
  return problem`issuer: the certificate is from an unknown authority
    expected  a certificate of a public authority, with the intermediate certificates
    found  ${certificate === undefined ? code : `issued by ${authority} (${code})`}
    change  ssl_certificate …/fullchain.pem;   (in nginx: the whole chain, not cert.pem alone)
    change  NODE_EXTRA_CA_CERTS=<its root>   (for an authority of your own; every client needs it too)`
}

/** Reads the certificate without verifying it. Nothing is sent on this connection. */
async function readCertificate(issuer: string): Promise<PeerCertificate | undefined> {
  const { hostname, port } = new URL(issuer)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const servername = isIP(host) === 0 ? host : ''
  const socket = connect({ host, port: Number(port || 443), servername, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(5000) })
    return socket.getPeerCertificate()
  } catch {
    return undefined
  } finally {
    socket.destroy()
  }
}

/** Compares the keys that clients verify with to the keys of the store. */
export async function examinePublishedKeys(
  setup: Setup,
  ring: readonly StoredKey[],
  now: Seconds,
): Promise<Finding> {
  const { issuer, keys, lifetimes } = setup.config
  const url = `${issuer}/api/oauth/jwks`
  const response = await ask(url)
  const set = membersOf(response)?.['keys']
  if (response.status !== 200 || !Array.isArray(set)) {
    return problem`published keys: ${url} does not return keys
      expected  200 and a JWK Set
      found  ${response.status}: ${excerptOf(response)}
      change  location ${new URL(url).pathname} { proxy_pass ${upstreamOf(setup)}; }   (in nginx)`
  }
  const keyIds = set.map((key: { kid?: unknown }) => String(key?.kid))
  const lag = keys.reloadSeconds + lifetimes.metadataCacheSeconds
  const published = ring.filter((key) => key.kind === 'signing' && !isRetired(key, now))
  const isMissing = published.some(({ id, createdAt }) => !keyIds.includes(id) && createdAt + lag < now)
  const isForeign = keyIds.some((kid) => !ring.some(({ id }) => id === kid))
  if (!isMissing && !isForeign) return ok`published keys: ${url} has the keys of the store`
  return problem`published keys: are not those of this store: another server responds, or an old copy
    expected  ${published.map(({ id }) => id)}
    found  ${keyIds.length === 0 ? 'none' : keyIds}
    change  proxy_pass ${upstreamOf(setup)};   (in nginx: to the server of this store)
    change  proxy_cache off;`
}
