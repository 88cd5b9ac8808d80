import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TokenEndpointResponse } from 'openid-client'

/** What is stored between two runs. */
export interface Login {
  readonly issuer: string
  readonly clientId: string
  /** The user, from the ID Token. */
  readonly sub?: string
  readonly tokens?: TokenEndpointResponse
  /** When the access token expires, in seconds since the epoch. */
  readonly expiresAt?: number
}

const folder = process.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config')
const file = join(folder, 'lychgate-cli-app', 'login.json')

/** What was stored for this issuer. Another issuer must never receive these tokens. */
export function readLogin(issuer: string): Login | undefined {
  try {
    const login: Login = JSON.parse(readFileSync(file, 'utf8'))
    return login.issuer === issuer ? login : undefined
  } catch {
    return undefined
  }
}

/** Stores it for this system user only, RFC 8252 §8.11. Renames a new file, so the file is always complete. */
export function keepLogin(login: Login): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  rmSync(`${file}.new`, { force: true })
  writeFileSync(`${file}.new`, JSON.stringify(login), { mode: 0o600, flag: 'wx' })
  renameSync(`${file}.new`, file)
}

export function forgetLogin(): void {
  rmSync(file, { force: true })
}
