import type { Command } from 'commander'
import type { Config } from '../config/schema.ts'
import { resolveConfig, storeUrl } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags } from './flags.ts'
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
The tokens are like any others: they can be refreshed, introspected, revoked and explained. They come from the
development server that answers at the issuer; where none does, from its data folder.

Examples:
  lychgate token --user alice --scope "openid courses:read"
  curl localhost:9400/api/courses -H "authorization: Bearer $(lychgate token --user alice --scope courses:read)"
  lychgate token --user alice --expires-in 5m
  lychgate token --user alice --expires-in -60s        one that has ended a minute ago
  lychgate token --user alice --issued-at 1h --json    one that begins in an hour
`

/** Adds `lychgate token`: tokens of a development server without signing in. */
export function addTokenCommand(program: Command): void {
  const command = program
    .command('token')
    .description('an access token of a development server, without signing in')
    .requiredOption('--user <name>', 'user name, e-mail address or sub')
    .option('--scope <names>', 'as in an authorization request (default: openid profile email)')
    .option('--expires-in <duration>', 'such as 5m; -60s for one that has ended a minute ago')
    .option('--issued-at <when>', 'such as 2027-01-01T00:00:00Z, -2d or 1h')
    .option('--resource <uri>', 'the API it is for; may be repeated', collect)
    .option('--client <id>', "the client it is issued to (default: the development server's own)")
    .option('--nonce <text>', 'what the ID Token carries')
    .option('--issuer <url>', 'of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'the same on localhost (LYCHGATE_PORT)')
    .addHelpText('after', help)
  addLocationFlags(command).option('--json', 'print all of the answer as JSON').action(token)
}

async function token({ config: file, json, ...flags }: TokenFlags): Promise<void> {
  const { data, issuer, port } = flags
  const resolved = resolveConfig({
    mode: 'dev',
    flags: { data, issuer, port },
    environment: process.env,
    file,
  })
  const order = orderOf(flags)
  // A server that is named is asked, whatever this data folder is.
  const isNamed = issuer !== undefined || port !== undefined
  const named = isNamed ? await fromServer(resolved.config, order) : undefined
  const answer = named ?? (await fromServed(withServedIssuer(resolved), order))
  if (json) return printJson(answer)
  if (!process.stdout.isTTY) return void process.stdout.write(`${answer['access_token']}\n`)
  const { issued_at: issuedAt, expires_at: expiresAt, ...members } = answer
  printMembers({ ...members, issued_at: instant(Number(issuedAt)), expires_at: instant(Number(expiresAt)) })
}

type Answer = Readonly<Record<string, unknown>>

function orderOf({ user, scope, client, resource, nonce, expiresIn, issuedAt }: TokenFlags): string {
  return JSON.stringify({
    user,
    scope,
    resource,
    nonce,
    client_id: client,
    expires_in: expiresIn,
    issued_at: issuedAt,
  })
}

async function fromServed(config: Config, order: string): Promise<Answer> {
  return (await fromServer(config, order)) ?? (await fromFolder(config, order))
}

const headers = { 'content-type': 'application/json' }

/** What the running development server answers; undefined when there is none. */
async function fromServer({ issuer }: Config, order: string): Promise<Answer | undefined> {
  const response = await fetch(`${issuer}/_dev/token`, { method: 'POST', headers, body: order }).catch(
    () => undefined,
  )
  if (response === undefined || response.status === 404) return undefined
  return requireAnswer(response.status, await response.text())
}

/** The same from an application that listens nowhere, on the store of the development server. */
async function fromFolder(config: Config, order: string): Promise<Answer> {
  const secret = secretOf(config)
  if (secret === undefined) {
    throw new CommandFailed(
      `no development server answers at ${config.issuer}, and ${storeUrl(config)} is the store of none; start lychgate dev`,
    )
  }
  const store = await openConfiguredStore(config)
  try {
    const { openDevelopmentApp } = await import('../dev/plugin.ts')
    const app = await openDevelopmentApp({ config: { ...config, logLevel: 'silent' }, store, secret })
    const path = `${new URL(config.issuer).pathname.replace(/\/$/, '')}/_dev/token`
    const host = new URL(config.issuer).host
    const { statusCode, body } = await app.inject({
      method: 'POST',
      url: path,
      headers: { ...headers, host },
      payload: order,
    })
    await app.close()
    return requireAnswer(statusCode, body)
  } finally {
    await store.close()
  }
}

function requireAnswer(status: number, body: string): Answer {
  // `as`: every answer of this server to such a request is a JSON object.
  const answer = JSON.parse(body) as Answer
  if (status === 200) return answer
  throw new CommandFailed(String(answer['error_description'] ?? `the server answered ${status}`))
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}
