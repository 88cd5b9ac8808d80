import { useOf } from '../../clients/use.ts'
import { mintGrantId } from '../../domain/grant.ts'
import { every, single } from '../../domain/parameters.ts'
import type { Plugin } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { issueToClient } from './rules.ts'

/**
 * RFC 6749 §4.4.2: the token request of grant type `client_credentials`. Each response has a grant of its own, so
 * that its token can be revoked and introspected like any other.
 */
export const clientCredentials: Plugin<'store' | 'clock' | 'random' | 'service'> = async (
  app,
  { service, store, clock, random },
) => {
  app.seams.grantTypes.add('client_credentials', async (client, parameters, { ip, confirmation }) => {
    const now = clock()
    const request = {
      scope: single(parameters, 'scope'),
      resource: every(parameters, 'resource'),
      from: addressPrefix(ip),
    }
    const fresh = { id: mintGrantId(random(8), now), secret: random(16).toString('base64url') }
    // An operator may have removed or changed the client since it authenticated: it is read again in the transaction, or
    // compared, where reading it is a trip.
    const issued = await store.transact(
      'actingClient',
      client.id,
      (acting) => issueToClient(acting?.client, request, service, fresh, now, acting?.owners),
      store.isFar ? Promise.resolve({ client }) : undefined,
    )
    // Apart, because the transaction shares the client with others: each would wait for the rest to end.
    const use = useOf(client, now)
    if (use !== undefined) await store.write(use)
    return app.issueTokens(issued, { client, now, confirmation })
  })
}
