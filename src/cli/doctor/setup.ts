import { existsSync } from 'node:fs'
import type { Environment } from '../../settings/environment.ts'
import type { ResolvedConfig } from '../../settings/load.ts'

/** What is examined: the settings and where they come from. */
export interface Setup extends ResolvedConfig {
  readonly environment: Environment
  /** Whether this process runs in a container: no other machine reaches its loopback address. */
  readonly isContainer: boolean
}

/** Whether Docker, Podman or Kubernetes started this process. */
export function detectContainer(environment: Environment): boolean {
  return (
    existsSync('/.dockerenv') ||
    existsSync('/run/.containerenv') ||
    environment['KUBERNETES_SERVICE_HOST'] !== undefined
  )
}

/** Where a proxy finds this server, for lines that name it. */
export function upstreamOf({ config: { host, port } }: Pick<Setup, 'config'>): string {
  const everywhere = ['0.0.0.0', '::'].includes(host)
  return `http://${everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Whether the issuer is this very process: http, on its own port. All else has a proxy in between. */
export function isDirect({ config: { issuer, port } }: Pick<Setup, 'config'>): boolean {
  const url = new URL(issuer)
  return url.protocol === 'http:' && Number(url.port || 80) === port
}
