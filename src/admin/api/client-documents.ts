import type { FastifyPluginAsync } from 'fastify'
import { allowDocument, denyDocument, describeDocument, findDocument } from '../../clients/documents.ts'
import { clientDocumentKind, deniedDocumentKind } from '../../domain/client-document.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { knownTo } from '../../feature/known-to.ts'
import { pageOfAll, responding } from '../operations/operation.ts'
import { requireFound } from '../operations/rules.ts'
import { ClientDocumentResource, listQuery, pageOf } from '../operations/schema.ts'
import { operationsOf } from './operation.ts'

/** `/client-documents`: clients that are known by the URL of their metadata document. List, read, refresh and deny. */
export const clientDocumentResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { publishedClients } = app
  if (publishedClients === undefined) return
  const { config, store, declared } = deps
  const { list, read, act } = operationsOf(app, deps, 'clients')
  const known = knownTo(config, declared)
  const describe = (url: string, stored: Parameters<typeof describeDocument>[1]) => ({
    status: 200,
    body: describeDocument(url, stored, known),
    headers: {},
    ...(stored.client && { clientId: url }),
  })
  const response = ClientDocumentResource

  list(
    '/client-documents',
    {
      operationId: 'listClientDocuments',
      summary: 'List the client metadata documents that were fetched or denied, in the order of their URLs',
      response: pageOf(response, 'ClientDocuments'),
      querystring: listQuery({}),
    },
    async (page) => {
      const rows = { prefix: '', after: page.after, limit: page.size }
      const fetched = await store.listFrom(clientDocumentKind, rows)
      const denied = await store.listFrom(deniedDocumentKind, rows)
      const urls = new Set([...fetched, ...denied].map(({ id }) => id))
      return pageOfAll([...urls], (url) => url, page)
    },
    (url) => url,
    async (url) => describeDocument(url, (await findDocument(store, url)) ?? {}, known),
  )
  read(
    '/client-documents/:url',
    { operationId: 'readClientDocument', summary: 'Read what is stored of a document', response },
    async ({ param }) => {
      const url = param('url')
      return { body: describeDocument(url, requireFound(await findDocument(store, url), 'document'), known) }
    },
  )
  act(
    '/client-documents/:url/refresh',
    {
      operationId: 'refreshClientDocument',
      summary: 'Fetch a document now, check it, and store what it says',
      response,
    },
    async ({ param, context, requireMay }, keep) => {
      const url = param('url')
      let kept = describe(url, {})
      await publishedClients.refresh(url, context, (stored) => {
        kept = describe(url, stored)
        return [...requireMay({}), ...keep(kept)]
      })
      return kept
    },
  )
  act(
    '/client-documents/:url/deny',
    {
      operationId: 'denyClientDocument',
      summary: 'Accept a document no longer: the tokens of its client are invalid',
      response,
    },
    async ({ param, context, store: writing }, keep) => {
      const url = param('url')
      const document = await store.find(clientDocumentKind, url)
      return writing.transact('client', url, (client) => {
        const denial = denyDocument(client, url, context)
        return responding(denial, (changed) => describe(url, { document, ...changed }), keep)
      })
    },
  )
  act(
    '/client-documents/:url/allow',
    { operationId: 'allowClientDocument', summary: 'Accept a denied document again', response },
    async ({ param, context, store: writing }, keep) => {
      const url = param('url')
      requireFound(await store.find(deniedDocumentKind, url), 'denied document')
      const document = await store.find(clientDocumentKind, url)
      return writing.transact('client', url, (client) => {
        const permission = allowDocument(client, url, context)
        return responding(permission, (changed) => describe(url, { document, ...changed }), keep)
      })
    },
  )
}
