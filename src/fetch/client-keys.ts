import fp from 'fastify-plugin'
import { keysOf } from '../clients/keys.ts'
import type { AppDeps } from '../deps.ts'
import type { PublicKey } from '../domain/key-set.ts'
import type { Client } from '../domain/model.ts'
import { createKeySets, type KeySets } from './key-sets.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly clientKeys: ClientKeys
  }
}

/** The keys by which signatures of clients are verified. */
export interface ClientKeys extends Pick<KeySets, 'keysOfIssuer'> {
  /**
   * Returns the keys that a client registered, or those at its `jwks_uri`.
   * @param kid What a JWT names; anything but a string names no key.
   * @throws {Error} if they cannot be fetched.
   */
  keysOf(client: Client, kid: unknown): Promise<readonly PublicKey[]>
}

/** Finds the keys of clients, RFC 7591 §2; those that are fetched are kept once for all specifications. */
export const clientKeys = fp<Pick<AppDeps, 'config' | 'clock' | 'fetchUrl'>>(
  async (app, { config, clock, fetchUrl }) => {
    const keySets = createKeySets({
      fetchUrl,
      bounds: config.fetch,
      clock,
      onFailure: (url, error) => app.log.warn({ err: error, url }, 'a key set could not be fetched'),
    })
    app.decorate('clientKeys', {
      keysOfIssuer: keySets.keysOfIssuer,
      async keysOf({ extra }, kid) {
        const uri = extra?.['jwks_uri']
        return typeof uri === 'string'
          ? keySets.keysAt(uri, typeof kid === 'string' ? kid : undefined)
          : keysOf(extra?.['jwks'])
      },
    })
  },
  { name: 'client-keys' },
)
