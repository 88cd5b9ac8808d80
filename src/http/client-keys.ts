import fp from 'fastify-plugin'
import { keysOf } from '../clients/keys.ts'
import type { PublicKey } from '../domain/key-set.ts'
import type { Client } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { spenderFor } from '../outbound/budgets.ts'
import { createKeySets, type KeySets } from '../outbound/key-sets.ts'

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

/** Finds the keys of clients, RFC 7591 §2; fetched keys are kept once for all specifications. */
export const clientKeys = fp<Needs<'config' | 'clock' | 'fetchUrl'>>(
  async (app, { config, clock, fetchUrl }) => {
    const create = () =>
      createKeySets({
        fetchUrl,
        bounds: config.fetch,
        clock,
        onFailure: (url, error) => app.log.warn({ err: error, url }, 'a key set could not be fetched'),
      })
    // Strangers neither push out nor hold up the keys of the clients that operators added.
    const ofOperators = create()
    const ofDocuments = { known: create(), unknown: create() }
    app.decorate('clientKeys', {
      keysOfIssuer: ofOperators.keysOfIssuer,
      async keysOf(client, kid) {
        const { jwks_uri: uri, jwks } = client.extra ?? {}
        if (typeof uri !== 'string') return keysOf(jwks)
        const spender = spenderFor(client)
        const { purpose } = spender
        const keySets = purpose === 'known' || purpose === 'unknown' ? ofDocuments[purpose] : ofOperators
        return keySets.keysAt(uri, spender, typeof kid === 'string' ? kid : undefined)
      },
    })
  },
  { name: 'client-keys' },
)
