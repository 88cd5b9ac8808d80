import { hash } from 'node:crypto'
import { addIntegration } from '../clients/integration.ts'
import type { AppDeps } from '../deps.ts'
import { insert } from '../domain/decision.ts'
import type { Client } from '../domain/model.ts'
import { RecordExists } from '../storage/store.ts'

/** Nothing has to listen there: no browser is ever sent to it. */
const redirectUri = 'http://127.0.0.1/lychgate-token'

/** The client of tokens that are asked for without naming one: public, with every scope, the same in every store. */
export function tokenClient({ store, clock }: Pick<AppDeps, 'store' | 'clock'>): () => Promise<Client> {
  const asked = {
    name: 'lychgate token',
    redirectUris: [redirectUri],
    postLogoutRedirectUris: [],
    authenticationMethod: 'none',
    pkce: 'required',
    idTokenSignedResponseAlg: 'RS256',
    introspects: [],
  } as const
  const fresh = { id: hash('sha256', 'lychgate token', 'buffer').subarray(0, 16), secret: Buffer.alloc(32) }

  return async () => {
    const { client } = addIntegration(asked, { scopes: [], resources: [] }, fresh, clock())
    const known = await store.find('client', client.id)
    if (known !== undefined) return known
    try {
      await store.write(insert('client', client))
    } catch (error) {
      // Another request has made it in the meantime.
      if (!(error instanceof RecordExists)) throw error
    }
    return client
  }
}
