import { resolve } from 'node:path'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { type MovableClock, movableClock } from '../dev/clock.ts'
import { changeOf } from '../dev/clock-routes.ts'
import { development } from '../dev/plugin.ts'
import { assertListed } from '../dev/shortcuts.ts'
import { type DevelopmentUser, developmentUsers, passwordOf, seedUsers } from '../dev/users.ts'
import { OAuthError } from '../domain/errors.ts'
import { findFreePort } from '../http/listen.ts'
import { developmentFaults } from '../settings/checks.ts'
import { resolveConfig } from '../settings/load.ts'
import type { Store } from '../storage/store.ts'
import { isoInstant, systemClock, systemRandom } from '../system/system.ts'
import type { ServerFlags } from './flags.ts'
import { keepDevSecret, makeFolder } from './open.ts'
import { readableLog } from './readable-log.ts'
import { runServer } from './serve.ts'
import { startedAs } from './started-as.ts'

/** Flags of a development server alone. */
export interface DevFlags extends ServerFlags {
  readonly users?: string
  readonly time?: string
  readonly autoSignIn?: string
  readonly autoConsent?: true
}

/** `lychgate dev`: runs a development server, with users whose passwords are public. */
export async function dev({
  config: file,
  users: usersFile,
  time,
  autoSignIn,
  autoConsent,
  ...flags
}: DevFlags): Promise<void> {
  const shortcuts = { 'dev.autoSignIn': autoSignIn, 'dev.autoConsent': autoConsent && 'on' }
  const sources = { mode: 'dev', flags: { ...flags, ...shortcuts }, environment: process.env, file } as const
  const { config: given, origins } = resolveConfig(sources)
  const config = await settlePort(given)
  const faults = [...developmentFaults(config)]
  if (faults.length > 0) throw new ConfigError(faults)
  const users = await usersOf(usersFile, config)
  const clock = await clockAt(time)
  makeFolder(config.data)
  const secret = config.secret ?? keepDevSecret(config.data, systemRandom)
  let taken: readonly string[] = []
  const seed = async (store: Store) => {
    taken = await seedUsers(store, clock, users, config.accounts.attributes)
    await assertListed(config, store)
  }
  const logTo = readableLog(process.stdout, config.issuer)
  await runServer({ ...config, secret }, seed, { development, logTo, origins }, clock)
  process.stdout.write(banner(config, { users, taken, clock }))
}

async function usersOf(file: string | undefined, { accounts }: Config): Promise<readonly DevelopmentUser[]> {
  if (file === undefined) return developmentUsers
  // Loaded late: it needs a YAML parser.
  const { readUsers } = await import('../dev/read-users.ts')
  return readUsers(file, accounts.attributes)
}

/** @throws {ConfigError} unless `time` is an instant, or a duration from now. */
async function clockAt(time: string | undefined): Promise<MovableClock> {
  const clock = movableClock(systemClock)
  if (time === undefined) return clock
  try {
    await clock.move(changeOf(/^[-+]/.test(time) ? { advance: time } : { set: time }, clock))
  } catch (cause) {
    if (!(cause instanceof OAuthError)) throw cause
    const wanted = 'must be an instant, such as 2027-01-01T00:00:00Z, or a duration from now, such as +31d'
    throw new ConfigError(`--time: ${wanted}`, { cause })
  }
  return clock
}

/** Chooses a free port before anything is built, because every public URL derives from the issuer. */
async function settlePort(config: Config): Promise<Config> {
  if (config.issuer !== 'http://localhost:0') return config
  const port = await findFreePort()
  return { ...config, port, issuer: `http://localhost:${port}` }
}

/** What the banner shows. */
interface Scene {
  readonly users: readonly DevelopmentUser[]
  /** User names that are already taken by other users. */
  readonly taken: readonly string[]
  readonly clock: MovableClock
}

function banner({ issuer, data }: Config, { users, taken, clock }: Scene): string {
  const own = users.filter(({ username }) => !taken.includes(username))
  const signIns = own.slice(0, mostShown).map((user) => `${user.username} / ${passwordOf(user)}`)
  const more = own.length > mostShown ? `   and ${own.length - mostShown} more` : ''
  const registration = JSON.stringify({
    client_name: 'My first client',
    redirect_uris: ['http://127.0.0.1:7777/callback'],
  })
  const time = clock.offsetSeconds === 0 ? '' : `  time        ${isoInstant(clock())}\n`
  return `
  Lychgate is ready, for development only.

  issuer      ${issuer}
  discovery   ${issuer}/.well-known/openid-configuration
  try it      ${issuer}/
  sign in as  ${signIns.join('   or   ')}${more}
${time}  data        ${resolve(data)}

  A token:
  ${startedAs()} token --issuer ${issuer} --user ${own[0]?.username ?? 'alice'}

  Register a client:
  curl -s ${issuer}/api/oauth/register -H 'content-type: application/json' -d '${registration}'

`
}

/** How many users the banner names. */
const mostShown = 4
