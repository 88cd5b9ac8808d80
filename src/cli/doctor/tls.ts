import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { NoAnswer } from './ask.ts'
import { type Finding, problem } from './finding.ts'

/** What a certificate says of itself. */
interface Certificate {
  readonly names: string
  readonly issuer: string
  readonly from: string
  readonly until: string
}

const unknownAuthority = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]

/** What is wrong with the certificate of this server; undefined when TLS is not what failed. */
export async function explainTls(issuer: string, { code, message }: NoAnswer): Promise<Finding | undefined> {
  const { hostname } = new URL(issuer)
  if (/^(ERR_SSL|EPROTO)/.test(code)) {
    return problem('issuer', 'no TLS is spoken there', {
      expected: 'TLS, as the issuer is https',
      found: message.split('\n')[0]?.slice(0, 120) ?? code,
      change: ['listen 443 ssl;   (in nginx; the server itself speaks plain http behind it)'],
    })
  }
  const isExpired = code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
  const isWrongName = code === 'ERR_TLS_CERT_ALTNAME_INVALID'
  if (!isExpired && !isWrongName && !unknownAuthority.includes(code)) return undefined
  const certificate = await readCertificate(issuer)
  if (isExpired) {
    return problem('issuer', 'the certificate is not valid at this time', {
      expected: 'a certificate that is valid now',
      found: certificate === undefined ? code : `valid from ${certificate.from} until ${certificate.until}`,
      change: ['renew the certificate and reload the proxy: certbot renew (or look at its log)'],
    })
  }
  if (isWrongName) {
    return problem('issuer', 'the certificate is for another name', {
      expected: hostname,
      found: certificate?.names ?? message,
      change: [`certbot certonly -d ${hostname}   (a certificate for this name)`],
    })
  }
  return problem('issuer', 'the certificate is from an authority nobody here knows', {
    expected: 'a certificate of a public authority, with the ones in between',
    found: certificate === undefined ? code : `issued by ${certificate.issuer} (${code})`,
    change: [
      'ssl_certificate …/fullchain.pem;   (in nginx: the whole chain, not cert.pem alone)',
      'NODE_EXTRA_CA_CERTS=<its root>   (for an authority of your own; every client needs it too)',
    ],
  })
}

/** Only looks: nothing is sent on this connection, and nothing it says is believed. */
function readCertificate(issuer: string): Promise<Certificate | undefined> {
  const { hostname, port } = new URL(issuer)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const options = { host, port: Number(port || 443), rejectUnauthorized: false, timeout: 5000 }
    const socket = connect({ ...options, ...(isIP(host) === 0 && { servername: host }) })
    const end = (certificate?: Certificate) => {
      socket.destroy()
      resolve(certificate)
    }
    socket.on('error', () => end())
    socket.on('timeout', () => end())
    socket.on('secureConnect', () => {
      const { subject, subjectaltname, issuer: authority, valid_from, valid_to } = socket.getPeerCertificate()
      if (subject === undefined) return end()
      end({
        names: subjectaltname ?? String(subject.CN),
        issuer: String(authority.CN ?? authority.O),
        from: valid_from,
        until: valid_to,
      })
    })
  })
}
