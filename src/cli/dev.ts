import { resolve } from 'node:path'
import { developmentFaults } from '../config/checks.ts'
import { ConfigError } from '../config/error.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { movableClock } from '../dev/clock.ts'
import { systemClock, systemRandom } from '../system.ts'
import { keepDevSecret } from './dev-secret.ts'
import { makeFolder } from './open.ts'
import { readableLog } from './readable-log.ts'
import { findFreePort, runServer } from './run-server.ts'
import { developmentPeople, seedPeople } from './seed.ts'
import type { ServerFlags } from './server-flags.ts'

/** `lychgate dev`: a server to develop against, with people whose passwords everybody knows. */
export async function dev({ config: file, ...flags }: ServerFlags): Promise<void> {
  const config = await settlePort(
    loadConfig({ mode: 'dev', flags: { ...flags }, environment: process.env, file }),
  )
  const faults = [...developmentFaults(config)]
  if (faults.length > 0) throw new ConfigError(faults)
  makeFolder(config.data)
  const secret = config.secret ?? keepDevSecret(config.data, systemRandom)
  const clock = movableClock(systemClock)
  await runServer({ ...config, secret }, seedPeople, { logTo: readableLog(process.stdout) }, clock)
  process.stdout.write(banner(config))
}

/** Every public URL derives from the issuer, so a free port is found before anything is built. */
async function settlePort(config: Config): Promise<Config> {
  if (config.issuer !== 'http://localhost:0') return config
  const port = await findFreePort()
  return { ...config, port, issuer: `http://localhost:${port}` }
}

function banner({ issuer, data }: Config): string {
  const signIns = developmentPeople.map(({ username, password }) => `${username} / ${password}`)
  const registration = JSON.stringify({
    client_name: 'My first client',
    redirect_uris: ['http://127.0.0.1:7777/callback'],
  })
  return `
  Lychgate is ready, for development only.

  issuer      ${issuer}
  discovery   ${issuer}/.well-known/openid-configuration
  sign in as  ${signIns.join('   or   ')}
  data        ${resolve(data)}

  Register a client:
  curl -s ${issuer}/api/oauth/register -H 'content-type: application/json' -d '${registration}'

`
}
