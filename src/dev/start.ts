/**
 * `lychgate/dev`: the development server as a library, for tests. Everything is in memory and gone when it stops. The
 * secret for its keys is random, so no slow derivation is needed.
 */
import type { FastifyInstance } from 'fastify'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { findFreePort, listen } from '../http/listen.ts'
import { developmentFaults, isLoopbackIssuer } from '../settings/checks.ts'
import { loadConfig } from '../settings/load.ts'
import { openStore } from '../storage/open.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { seedClients } from './clients.ts'
import { movableClock } from './clock.ts'
import { changeOf } from './clock-routes.ts'
import { objectOf } from './json-body.ts'
import type { DevelopmentServer, IssuedTokens, StartOptions, Time } from './library.ts'
import { openDevelopmentApp } from './plugin.ts'
import { requireUsers } from './read-users.ts'
import { assertListed } from './shortcuts.ts'
import { developmentUsers, seedUsers } from './users.ts'

export type * from './flows/flow.ts'
export type * from './library.ts'

/**
 * Starts a server on this computer, ready for its first request.
 * @throws {ConfigError} for invalid options, users or clients; `faults` has a line for each.
 */
export async function start(options: StartOptions = {}): Promise<DevelopmentServer> {
  const config = await configOf(options)
  const clock = movableClock(typeof options.clock === 'function' ? options.clock : systemClock)
  if (typeof options.clock === 'object') await clock.move(changeOf(options.clock, clock))
  const users =
    options.users === undefined
      ? developmentUsers
      : requireUsers({ users: options.users }, 'start', config.accounts.attributes)
  const store = await openStore('sqlite::memory:')
  const { log } = options
  const secret = Promise.resolve(systemRandom(32))
  const opening = openDevelopmentApp({ config, store, secret, clock, ...(log && { logTo: { write: log } }) })
  const stop = async () => {
    await (await opening).close()
    await store.close()
  }
  try {
    await seedUsers(store, clock, users, config.accounts.attributes)
    await assertListed(config, store)
    const parts = { clock, random: systemRandom }
    const clients = await seedClients(store, options.clients ?? [], config, parts)
    const app = await opening
    await listen(app, config)
    const controls = controlsOf(app, config)
    return { issuer: config.issuer, clients, now: clock, ...controls, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop().catch(() => store.close())
    throw error
  }
}

async function configOf({ port = 0, config: options = {}, log }: StartOptions): Promise<Config> {
  const own = port === 0 ? await findFreePort() : port
  const { issuer = `http://localhost:${own}` } = options
  const values = {
    issuer,
    // A test is faster than any user.
    ...(isLoopbackIssuer(String(issuer)) && { rateLimits: 'off' }),
    drainSeconds: 0,
    logLevel: log === undefined ? 'silent' : 'info',
    ...options,
    port: own,
  }
  const config = loadConfig({ mode: 'dev', values })
  const faults = [...developmentFaults(config)]
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

/** Calls the routes below /_dev. */
function controlsOf(app: FastifyInstance, { issuer }: Config) {
  const { host, pathname } = new URL(issuer)
  const prefix = pathname.replace(/\/$/, '')
  const call = async (
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    payload?: object,
  ): Promise<unknown> => {
    const url = `${prefix}/_dev${path}`
    const response = await app.inject({ method, url, headers: { host }, ...(payload && { payload }) })
    if (response.statusCode < 400) return response.body === '' ? undefined : response.json()
    const { error_description: description = response.body } = objectOf(response.body) ?? {}
    throw new Error(String(description))
  }
  // `as` below: the responses of our own routes.
  return {
    token: async (request) => (await call('POST', '/token', request)) as IssuedTokens,
    advance: async (advance) => (await call('POST', '/clock', { advance })) as Time,
    time: async (change) => (await call('POST', '/clock', change)) as Time,
    fault: async (request) => void (await call('POST', '/faults', request)),
    clearFaults: async () => void (await call('DELETE', '/faults')),
    snapshot: async (name) => void (await call('POST', `/snapshots/${name}`)),
    restore: async (name) => void (await call('POST', `/snapshots/${name}/restore`)),
    fork: async (name, as = name) =>
      (await call('POST', `/snapshots/${name}/fork`, { as })) as { issuer: string },
    flows: () => app.recorder.flows(),
  } satisfies Partial<DevelopmentServer>
}
