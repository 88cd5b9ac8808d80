import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TokenEndpointResponse } from 'openid-client'

/** What is kept between two runs. */
export interface Login {
  readonly issuer: string
  readonly clientId: string
  /** Who signed in, by the ID Token. */
  readonly sub?: string
  readonly tokens?: TokenEndpointResponse
  /** When the access token ends, in seconds since the epoch. */
  readonly expiresAt?: number
}

const folder = process.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config')
const file = join(folder, 'lychgate-cli-app', 'login.json')

/** What was kept for this issuer: another one must never see these tokens. */
export function readLogin(issuer: string): Login | undefined {
  try {
    const login: Login = JSON.parse(readFileSync(file, 'utf8'))
    return login.issuer === issuer ? login : undefined
  } catch {
    return undefined
  }
}

/** For this user's eyes only, RFC 8252 §8.11, and whole at any time: written beside, then moved. */
export function keepLogin(login: Login): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  rmSync(`${file}.new`, { force: true })
  writeFileSync(`${file}.new`, JSON.stringify(login), { mode: 0o600, flag: 'wx' })
  renameSync(`${file}.new`, file)
}

export function forgetLogin(): void {
  rmSync(file, { force: true })
}
