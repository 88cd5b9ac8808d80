import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { publishedClients } from './documents.ts'
import { documentPolicy } from './policy.ts'
import { isDocumentUrl } from './rules.ts'

/**
 * Client ID metadata documents: a client_id that is a URL names the document with the metadata of the client. An
 * authorization request fetches it unless it is fresh, and is rejected if it cannot be used.
 */
export const clientIdMetadata = fp<AppDeps>(
  async (app, deps) => {
    const clients = publishedClients(deps)
    app.decorate('publishedClients', publishedClients({ ...deps, byOperator: true }))
    if (documentPolicy(deps).mode !== 'off') app.advertise({ client_id_metadata_document_supported: true })
    app.addClientResolver({
      owns: isDocumentUrl,
      find(clientId, reason) {
        if (reason === 'authorization') return clients.current(clientId)
        if (reason === 'authentication') return clients.known(clientId)
        return deps.store.find('client', clientId)
      },
    })
  },
  { name: 'client-id-metadata', dependencies: ['client-authentication', 'metadata'] },
)
