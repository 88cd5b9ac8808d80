import { isIPv6 } from 'node:net'
import { type Command, InvalidArgumentError } from 'commander'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { isObject } from '../domain/is-object.ts'
import { loadConfig } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags } from './flags.ts'
import { printJson } from './print.ts'

interface HealthcheckFlags extends LocationFlags {
  readonly url?: string
  readonly json?: true
}

const timeoutSeconds = 3

const help = `
Sends GET /readyz to the address and port of this configuration, over plain http as a proxy does. The path is the same
if the issuer has a path.

Examples:
  lychgate healthcheck
  lychgate healthcheck --url http://127.0.0.1:9500
`

/** Adds `lychgate healthcheck`, which checks whether the server of this configuration is ready. */
export function addHealthcheckCommand(program: Command): void {
  const command = program
    .command('healthcheck')
    .description('check whether the running server is ready; the exit code is 0 or 1')
    .option('--url <url>', 'the server to check instead', parseUrl)
    .addHelpText('after', help)
  addLocationFlags(command).option('--json', 'print JSON').action(healthcheck)
}

async function healthcheck({ url: asked, json, config: file, data }: HealthcheckFlags): Promise<void> {
  // By the rules of `dev`, because this needs no secret.
  const url =
    asked === undefined
      ? readinessUrl(loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file }))
      : URL.parse('/readyz', asked)?.href
  if (url === undefined)
    throw new ConfigError(`--url: must be an absolute URL, such as http://127.0.0.1:9400`)
  const fault = await readinessFault(url)
  if (json) printJson({ url, ready: fault === undefined, ...(fault !== undefined && { reason: fault }) })
  if (fault !== undefined) throw new CommandFailed(`${url}: not ready: ${fault}`)
  if (!json) process.stdout.write(`${url}: ready\n`)
}

function parseUrl(text: string): string {
  const url = URL.parse('/readyz', text)
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href
  throw new InvalidArgumentError('It must be an http or https URL, such as http://127.0.0.1:9400.')
}

/**
 * Returns the local readiness URL of the server with this configuration.
 * @throws {ConfigError} for port 0: the chosen port is not known here.
 */
export function readinessUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  if (port === 0) throw new ConfigError('port: 0 means any free port; name the server with --url')
  // A server that listens on every address can be reached on the loopback address.
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}/readyz`
}

/** Returns why the server is not ready; undefined if it is. */
async function readinessFault(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(timeoutSeconds * 1000),
      redirect: 'manual',
    })
    const body: unknown = await response.json().catch(() => undefined)
    const { status, error_description: description } = isObject(body) ? body : {}
    if (response.status === 200 && status === 'ready') return undefined
    const why = [status, description].find((text) => typeof text === 'string')
    return `it responds with ${response.status}${why === undefined ? ', unlike Lychgate' : ` (${why})`}`
  } catch (error) {
    return connectionFault(error)
  }
}

function connectionFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no response within ${timeoutSeconds} seconds`
  const { cause } = error
  if (!(cause instanceof Error)) return `no response (${error.message})`
  const code = 'code' in cause ? String(cause.code) : cause.message
  return code === 'ECONNREFUSED' ? 'nothing listens there; is the server running?' : `no response (${code})`
}
