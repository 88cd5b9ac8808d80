import type { Config } from '../../config/schema.ts'
import { keyPolicy } from '../../settings/key-policy.ts'
import { systemClock, systemRandom } from '../../system.ts'
import type { Answer } from './ask.ts'

/** A server of the same configuration in this process: what arrives is compared with what it says. */
export interface Reference {
  /** What a server of this configuration answers at the path of this URL. */
  answer(url: string): Promise<Answer>
  close(): Promise<void>
}

/** It listens nowhere, and keeps nothing: its store is in memory and its keys are its own. */
export async function startReference(given: Config): Promise<Reference> {
  const [{ buildApp }, { openStore }, { loadKeyRing }] = await Promise.all([
    import('../../app.ts'),
    import('../../storage/open.ts'),
    import('../../keys/key-ring.ts'),
  ])
  // Paths that only a development server has are not checked.
  const config: Config = { ...given, mode: 'serve', logLevel: 'silent' }
  const [clock, random] = [systemClock, systemRandom]
  const store = await openStore('sqlite::memory:')
  const secret = random(32).toString('base64url')
  const keys = await loadKeyRing({ store, secret, policy: keyPolicy(config), clock, random })
  const app = await buildApp({ config, store, keys, clock, random })
  return {
    answer: async (url) => {
      const { pathname, search } = new URL(url)
      const {
        statusCode: status,
        headers,
        body,
      } = await app.inject({ method: 'GET', url: pathname + search })
      // What a socket would have made of them.
      const texts = Object.entries(headers).map(([name, value]) => [name, received(name, value)])
      return { url, status, headers: Object.fromEntries(texts), body }
    },
    close: async () => {
      await app.close()
      await store.close()
    },
  }
}

function received(name: string, value: number | string | string[] | undefined): string | string[] {
  const texts = [value ?? []].flat().map(String)
  return name === 'set-cookie' ? texts : texts.join(', ')
}
