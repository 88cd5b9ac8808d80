import { ConfigError } from '../config/error.ts'
import { loadConfig } from '../settings/load.ts'
import type { Store } from '../storage/store.ts'
import { linkForFirstUser, sayWhereToBegin } from './first-user.ts'
import type { ServerFlags } from './flags.ts'
import { readDevSecret } from './open.ts'
import { runServer } from './run-server.ts'

/** `lychgate serve`: the server for real users. It rejects whatever belongs to development. */
export async function serve({ config: file, ...flags }: ServerFlags): Promise<void> {
  const config = loadConfig({ mode: 'serve', flags: { ...flags }, environment: process.env, file })
  // loadConfig demands one of `serve`; the type does not know.
  const { secret = '' } = config
  if (secret === readDevSecret(config.data)) {
    throw new ConfigError('secret: is the one of the development server in this data folder; make a new one')
  }
  let link: string | undefined
  await runServer({ ...config, secret }, async (store, clock, random) => {
    await rejectDevelopmentUsers(store)
    link = await linkForFirstUser(config, store, clock, random)
  })
  if (link !== undefined) sayWhereToBegin(link, config.lifetimes.firstPersonSeconds)
}

async function rejectDevelopmentUsers(store: Store): Promise<void> {
  const { seeded: people } = await store.population()
  const [first] = people
  if (first === undefined) return
  throw new ConfigError(
    `store: made by the development server, with known passwords: ${people.join(', ')}; lychgate user remove ${first}`,
  )
}
