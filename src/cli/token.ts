import type { Command } from 'commander'
import type { Config } from '../config/schema.ts'
import { shownUrl } from '../domain/server-url.ts'
import { type ResolvedConfig, resolveConfig, storeUrl } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, collect, type LocationFlags } from './flags.ts'
import { openConfiguredStore, secretOf, withServedIssuer } from './open.ts'
import { instant, printJson, printMembers } from './print.ts'

interface TokenFlags extends LocationFlags {
  readonly issuer?: string
  readonly port?: string
  readonly user: string
  readonly scope?: string
  readonly client?: string
  readonly resource?: string[]
  readonly nonce?: string
  readonly expiresIn?: string
  readonly issuedAt?: string
  readonly json?: true
}

const help = `
The tokens are ordinary ones: they can be refreshed, introspected, revoked and explained. The development server at
the issuer issues them; if it does not run, they are made from its data folder.

Examples:
  lychgate token --user alice --scope "openid courses:read"
  curl localhost:9400/api/courses -H "authorization: Bearer $(lychgate token --user alice --scope courses:read)"
  lychgate token --user alice --expires-in 5m
  lychgate token --user alice --expires-in -60s        one that expired a minute ago
  lychgate token --user alice --issued-at 1h --json    one that becomes valid in an hour
`

/** Adds `lychgate token`: tokens of a development server without signing in. */
export function addTokenCommand(program: Command): void {
  const command = program
    .command('token')
    .description('print an access token of a development server, without signing in')
    .requiredOption('--user <name>', 'user name, email address or sub')
    .option('--scope <names>', 'as in an authorization request (default: openid profile email)')
    .option('--expires-in <duration>', 'the lifetime, such as 5m; -60s for a token that expired a minute ago')
    .option('--issued-at <when>', 'when it was issued, such as 2027-01-01T00:00:00Z, -2d or 1h')
    .option('--resource <uri>', 'the API the token is for; may be repeated', collect)
    .option('--client <id>', "the client it is issued to (default: the development server's own)")
    .option('--nonce <text>', 'the nonce of the ID Token')
    .option('--issuer <url>', 'the issuer of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'its port on localhost (LYCHGATE_PORT)')
    .addHelpText('after', help)
  addLocationFlags(command).option('--json', 'print the complete response as JSON').action(token)
}

async function token({ config: file, json, data, issuer, port, ...order }: TokenFlags): Promise<void> {
  const flags = { data, issuer, port }
  const resolved = resolveConfig({ mode: 'dev', flags, environment: process.env, file })
  const { user, scope, client, resource, nonce, expiresIn, issuedAt } = order
  const times = { expires_in: expiresIn, issued_at: issuedAt }
  const body = JSON.stringify({ user, scope, resource, nonce, client_id: client, ...times })
  // A server that is named gets the request, whatever this data folder is.
  const isNamed = issuer !== undefined || port !== undefined
  const tokens = (isNamed && (await fromServer(resolved.config, body))) || (await fromServed(resolved, body))
  if (json) return printJson(tokens)
  if (!process.stdout.isTTY) return void process.stdout.write(`${tokens['access_token']}\n`)
  const { issued_at: issued, expires_at: expires, ...members } = tokens
  printMembers({ ...members, issued_at: instant(Number(issued)), expires_at: instant(Number(expires)) })
}

type TokenResponse = Readonly<Record<string, unknown>>

async function fromServed(resolved: ResolvedConfig, body: string): Promise<TokenResponse> {
  const config = withServedIssuer(resolved)
  return (await fromServer(config, body)) ?? (await fromFolder(config, body))
}

const headers = { 'content-type': 'application/json' }

/** Gets the tokens from the running development server; undefined if there is none. */
async function fromServer({ issuer }: Config, body: string): Promise<TokenResponse | undefined> {
  const request = { method: 'POST', headers, body }
  const response = await fetch(`${issuer}/_dev/token`, request).catch(() => undefined)
  if (response === undefined || response.status === 404) return undefined
  return requireTokens(response.status, await response.text())
}

/** Gets them from an application that does not listen, on the store of the development server. */
async function fromFolder(config: Config, payload: string): Promise<TokenResponse> {
  const secret = secretOf(config)
  if (secret === undefined) {
    throw new CommandFailed(
      `no development server responds at ${config.issuer}, and ${shownUrl(storeUrl(config))} is not the store of one; start lychgate dev`,
    )
  }
  const store = await openConfiguredStore(config)
  try {
    const { openDevelopmentApp } = await import('../dev/plugin.ts')
    const app = await openDevelopmentApp({ config: { ...config, logLevel: 'silent' }, store, secret })
    const { host, pathname } = new URL(config.issuer)
    const url = `${pathname.replace(/\/$/, '')}/_dev/token`
    const response = await app.inject({ method: 'POST', url, headers: { ...headers, host }, payload })
    await app.close()
    return requireTokens(response.statusCode, response.body)
  } finally {
    await store.close()
  }
}

function requireTokens(status: number, body: string): TokenResponse {
  // `as`: the response to such a request is a JSON object.
  const tokens = JSON.parse(body) as TokenResponse
  if (status === 200) return tokens
  throw new CommandFailed(String(tokens['error_description'] ?? `the server responded with ${status}`))
}
