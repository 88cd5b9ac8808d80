import { chmodSync } from 'node:fs'
import { setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { type Examination, examine } from '../../src/cli/doctor/examine.ts'
import type { Finding } from '../../src/domain/finding.ts'
import { type Certificates, makeCertificates } from './certificates.ts'
import { newFolder } from './command.ts'
import { freePort } from './free-port.ts'
import { startProxy, type TestProxy } from './proxy.ts'
import { type ServerOptions, startServer, type TestServer } from './server.ts'

export const secret = 'a secret for tests that is long enough'

type Environment = Readonly<Record<string, string>>

/** A server in production behind a TLS proxy, and what its doctor needs. */
export interface BehindSetup {
  readonly issuer: string
  readonly data: string
  readonly server: TestServer
  readonly environment: Environment
}

/** The same with its proxy, and its doctor. */
export interface ProxiedSetup extends BehindSetup {
  readonly proxy: TestProxy
  readonly certificates: Certificates
  /** The findings that are not `ok`, with this behaviour of the proxy and these other settings. */
  faults(behaviour?: TestProxy['behaviour'], more?: Environment): Promise<readonly Finding[]>
}

/** Starts one; this process trusts the authority of the proxy. */
export async function startProxied(t: Test, options: ServerOptions = {}): Promise<ProxiedSetup> {
  const port = await freePort()
  const certificates = makeKnownCertificates(t)
  const proxy = await startProxy(t, () => port, certificates.localhost)
  const setup = await startBehind(t, proxy.port, { port, ...options })
  const faults: ProxiedSetup['faults'] = async (behaviour = {}, more = {}) => {
    proxy.behaviour = behaviour
    return faultsOf({ ...setup.environment, ...more })
  }
  return { ...setup, proxy, certificates, faults }
}

/** Certificates of an authority that this process trusts. */
export function makeKnownCertificates(t: Test): Certificates {
  const certificates = makeCertificates(newFolder(t))
  setDefaultCACertificates([certificates.authority])
  return certificates
}

/** Starts the server for a proxy on this port of localhost. */
export async function startBehind(
  t: Test,
  proxyPort: number,
  { port, ...options }: ServerOptions & { readonly port: number },
): Promise<BehindSetup> {
  const data = newFolder(t)
  chmodSync(data, 0o700)
  const issuer = `https://localhost:${proxyPort}${options.issuerPath ?? ''}`
  const store = `sqlite:${data}/lychgate.db`
  const server = await startServer(t, { trustProxy: ['127.0.0.1', '::1'], port, store, issuer, ...options })
  const environment = {
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: String(port),
    LYCHGATE_DATA: data,
    LYCHGATE_SECRET: secret,
    LYCHGATE_TRUST_PROXY: server.deps.config.trustProxy.join(','),
  }
  return { issuer, data, server, environment }
}

/** The findings of the doctor with these settings, without the one about administrators: these stores have none. */
export async function faultsOf(
  environment: Environment,
  more: Partial<Examination> = {},
): Promise<readonly Finding[]> {
  const findings = await examine({ mode: 'serve', environment, isContainer: false, ...more })
  return findings.filter(({ level, check }) => level !== 'ok' && check !== 'administrators')
}
