import fp from 'fastify-plugin'
import { documentDigest, documentDigestOf } from '../../domain/client-document.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client } from '../../domain/model.ts'
import type { ClientResolver } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { publishedClients } from './documents.ts'
import { documentPolicy } from './policy.ts'
import { isDocumentUrl } from './rules.ts'

/**
 * Client ID metadata documents: a client_id that is a URL names the document with the metadata of the client. An
 * authorization request fetches it unless it is fresh, and is rejected if it cannot be used. Nothing of it is stored
 * before a signed-in user approves: until then the request has its URL and digest.
 */
export const clientIdMetadata = fp<Needs<'config' | 'store' | 'keys' | 'clock' | 'declared' | 'fetchUrl'>>(
  async (app, deps) => {
    const clients = publishedClients(deps)
    app.decorate('publishedClients', clients)
    if (documentPolicy(deps).mode !== 'off')
      app.seams.metadata.add({ client_id_metadata_document_supported: true })
    const resolver: ClientResolver = {
      async find(clientId, reason, from) {
        switch (reason) {
          case 'authorization':
            return clients.current(clientId, from)
          case 'push':
            return (await clients.known(clientId)) ?? (await unlessUnusable(clients.current(clientId, from)))
          case 'device':
            return clients.known(clientId)
          case 'authentication':
            return (await clients.known(clientId)) ?? clients.remembered(clientId, from)
          case 'pending':
            return clients.pending(clientId, from)
          case 'seen':
            return (await deps.store.find('client', clientId)) ?? clients.seen(clientId, from)
          case 'display':
            return deps.store.find('client', clientId)
        }
      },
      keep: (client) => clients.keep(client),
    }
    app.seams.clientResolvers.add((clientId) => (isDocumentUrl(clientId) ? resolver : undefined))
    // The user approves what the request was for: its document has this digest.
    app.seams.requestReaders.add((_parameters, extra, { published }) =>
      published?.digest === undefined || documentDigestOf(extra) !== undefined
        ? undefined
        : documentDigest(published.digest),
    )
    app.seams.pushReaders.add(({ client }) =>
      client?.published?.digest === undefined ? undefined : documentDigest(client.published.digest),
    )
  },
  { name: 'client-id-metadata' },
)

/** Returns the client, undefined if its document cannot be used: an authentication fails alike for every reason. */
async function unlessUnusable(loading: Promise<Client>): Promise<Client | undefined> {
  try {
    return await loading
  } catch (error) {
    if (error instanceof OAuthError) return undefined
    throw error
  }
}
