import type { Command } from 'commander'
import { ConfigError, readSecret } from '../../config/error.ts'
import { tokenVariable } from '../../settings/environment.ts'
import { WrongUsage } from '../failure.ts'
import { addOperatorFlags, type ForceFlag, type OperatorFlags } from '../flags.ts'
import type { AdminApi, Credentials, Use } from './admin-api.ts'

/** Flags that name a running server, and what its admin API is called with. */
export interface ServerFlags extends OperatorFlags, ForceFlag {
  readonly print?: true
  readonly server?: string
  readonly api?: string
  readonly clientId?: string
  readonly secretFile?: string
  readonly secretEnv?: string
  readonly keyFile?: string
  readonly tokenFile?: string
}

/** What the help of these flags says. */
export const serverHelp = `
With --server it works on a running server, by its admin API (admin.api: on), and needs no store. The personal token or
access token is in --token-file or LYCHGATE_TOKEN, or one is requested for a client that has client_credentials and scopes of the admin API: --client-id with
--secret-file, --secret-env or --key-file. --api says where the API is if not at the issuer (admin.listener). A change
that someone else made at the same time ends it with exit code 75: run it again.
`

/** Adds the flags of a command that works on a store or on a running server, and its help. */
export function addAnywhereFlags(command: Command, help: string): Command {
  return addServerFlags(addOperatorFlags(command, serverHelp + help))
}

/** Adds these flags. */
export function addServerFlags(command: Command): Command {
  return command
    .option('--server <url>', 'the issuer of a running server, to use its admin API instead of a store')
    .option('--api <url>', 'where its admin API is, if that is at the management listener')
    .option('--client-id <id>', 'the client that calls the admin API')
    .option('--secret-file <file>', 'the file with its secret')
    .option('--secret-env <name>', 'the environment variable with its secret')
    .option('--key-file <file>', 'the file with its private key, PEM or JWK (private_key_jwt)')
    .option('--token-file <file>', 'a file with a personal token or an access token (LYCHGATE_TOKEN)')
}

/**
 * Returns the admin API of the server that the flags name; undefined if the command works on a store.
 * @param use The scopes that the command needs, or what they follow from.
 */
export async function connect(
  flags: ServerFlags,
  use: Use | readonly string[],
): Promise<AdminApi | undefined> {
  const { server, api, clientId, secretFile, secretEnv, keyFile, tokenFile } = flags
  if (server === undefined) {
    if ([api, clientId, secretFile, secretEnv, keyFile, tokenFile].some((flag) => flag !== undefined))
      throw new WrongUsage('--api, --client-id, --secret-…, --key-file and --token-file need --server')
    return undefined
  }
  const excluded = ['config', 'data', 'force'] as const
  for (const name of excluded)
    if (flags[name] !== undefined) throw new WrongUsage(`--${name} is for a store, and not for --server`)
  // Loaded late: a store needs no requests.
  const { connectAdminApi, scopesFor } = await import('./admin-api.ts')
  const scopes = 'length' in use ? use : scopesFor(use)
  return connectAdminApi({ issuer: server, api }, await credentialsOf(flags), scopes)
}

async function credentialsOf(flags: ServerFlags): Promise<Credentials> {
  const { clientId, secretFile, secretEnv, keyFile, tokenFile } = flags
  const proofs = [secretFile, secretEnv, keyFile].filter((flag) => flag !== undefined)
  if (tokenFile !== undefined) {
    if (clientId !== undefined || proofs.length > 0)
      throw new WrongUsage('--token-file and --client-id exclude each other')
    return { token: readSecret(tokenFile, '--token-file').trim() }
  }
  const token = process.env[tokenVariable]?.trim()
  if (clientId === undefined && proofs.length === 0 && token) return { token }
  if (clientId === undefined)
    throw new WrongUsage(`--server needs --client-id or --token-file, or the variable ${tokenVariable}`)
  if (proofs.length !== 1)
    throw new WrongUsage('--client-id needs one of --secret-file, --secret-env and --key-file')
  if (keyFile !== undefined) {
    const { readPrivateKey } = await import('./private-key.ts')
    return { clientId, key: readPrivateKey(readSecret(keyFile, '--key-file')) }
  }
  if (secretFile !== undefined) return { clientId, secret: readSecret(secretFile, '--secret-file') }
  const secret = process.env[secretEnv ?? '']
  if (!secret) throw new ConfigError(`--secret-env: the variable ${secretEnv} is not set`)
  return { clientId, secret }
}
