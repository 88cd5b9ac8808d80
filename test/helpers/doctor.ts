import { chmodSync } from 'node:fs'
import { setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { type Examination, examine } from '../../src/cli/doctor/examine.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { type Certificates, makeCertificates } from './certificates.ts'
import { newFolder } from './command.ts'
import { freePort } from './free-port.ts'
import { startProxy, type TestProxy } from './proxy.ts'
import { type ServerOptions, startServer, type TestServer } from './server.ts'

export const secret = 'a secret for tests that is long enough'

type Environment = Readonly<Record<string, string>>

/** A server behind a TLS proxy, as production has it, and its doctor. */
export interface ProxiedSetup {
  readonly issuer: string
  readonly data: string
  readonly server: TestServer
  readonly proxy: TestProxy
  readonly environment: Environment
  readonly certificates: Certificates
  /** Findings that are not `ok`, with the proxy behaving this way and these other settings. */
  faults(behaviour?: TestProxy['behaviour'], more?: Environment): Promise<readonly Finding[]>
}

/** Starts one; the proxy's authority is known to this process. */
export async function startProxied(t: Test, options: ServerOptions = {}): Promise<ProxiedSetup> {
  const [data, folder, port] = [newFolder(t), newFolder(t), await freePort()]
  chmodSync(data, 0o700)
  const certificates = makeCertificates(folder)
  setDefaultCACertificates([certificates.authority])
  const proxy = await startProxy(t, () => port, certificates.localhost)
  const issuer = `https://localhost:${proxy.port}${options.issuerPath ?? ''}`
  const store = `sqlite:${data}/lychgate.db`
  const server = await startServer(t, { trustProxy: ['127.0.0.1', '::1'], port, store, issuer, ...options })
  const environment = {
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: String(port),
    LYCHGATE_DATA: data,
    LYCHGATE_SECRET: secret,
    LYCHGATE_TRUST_PROXY: server.deps.config.trustProxy.join(','),
  }
  const faults: ProxiedSetup['faults'] = async (behaviour = {}, more = {}) => {
    proxy.behaviour = behaviour
    return faultsOf({ ...environment, ...more })
  }
  return { issuer, data, server, proxy, environment, certificates, faults }
}

/** What the doctor has to say against these settings. */
export async function faultsOf(
  environment: Environment,
  more: Partial<Examination> = {},
): Promise<readonly Finding[]> {
  const findings = await examine({ mode: 'serve', environment, isContainer: false, ...more })
  return findings.filter(({ level }) => level !== 'ok')
}
