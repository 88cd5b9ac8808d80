import {
  allowDocument,
  denyDocument,
  describeDocument,
  findDocument,
  type StoredDocument,
} from '../../clients/documents.ts'
import { clientDocumentKind, deniedDocumentKind } from '../../domain/client-document.ts'
import type { Decision } from '../../domain/decision.ts'
import { vocabularyOf } from '../../feature/client-vocabulary.ts'
import type { Declared } from '../../feature/deps.ts'
import { type Call, type Keep, listed, type Operation, pageOfAll, responding } from './operation.ts'
import { requireFound } from './rules.ts'
import { ClientDocumentResource, listQuery, pageOf } from './schema.ts'

/** What an operator does with clients that are known by the URL of their metadata document. */
export function documentOperations(declared: Declared) {
  const common = { area: 'clients', delegates: false, response: ClientDocumentResource } as const
  const describe = ({ deps }: Call, url: string, stored: StoredDocument) =>
    describeDocument(url, stored, vocabularyOf(deps.config, declared))
  const respond = (call: Call, url: string, stored: StoredDocument) => ({
    status: 200,
    body: describe(call, url, stored),
    headers: {},
    ...(stored.client && { clientId: url }),
  })
  /** Decides about the client of a document, which may be stored or not. */
  const decided = async (call: Call, keep: Keep, decide: Decide) => {
    const url = call.param('url')
    const document = await call.deps.store.find(clientDocumentKind, url)
    return call.store.transact('client', url, (client) =>
      responding(
        decide(client, url, call.context),
        (changed) => respond(call, url, { document, ...changed }),
        keep,
      ),
    )
  }

  return {
    list: {
      ...common,
      operationId: 'listClientDocuments',
      kind: 'list',
      url: '/client-documents',
      summary: 'List the client metadata documents that were fetched or denied, in the order of their URLs',
      response: pageOf(ClientDocumentResource, 'ClientDocuments'),
      querystring: listQuery({}),
      perform: (call) => {
        const { store } = call.deps
        return listed(
          call,
          async (page) => {
            const rows = { prefix: '', after: page.after, limit: page.size }
            const fetched = await store.listFrom(clientDocumentKind, rows)
            const denied = await store.listFrom(deniedDocumentKind, rows)
            const urls = new Set([...fetched, ...denied].map(({ id }) => id))
            return pageOfAll([...urls], (url) => url, page)
          },
          (url) => url,
          async (url) => describe(call, url, (await findDocument(store, url)) ?? {}),
        )
      },
    },
    read: {
      ...common,
      operationId: 'readClientDocument',
      kind: 'read',
      url: '/client-documents/:url',
      summary: 'Read what is stored of a document',
      perform: async (call) => {
        const url = call.param('url')
        return {
          body: describe(call, url, requireFound(await findDocument(call.deps.store, url), 'document')),
        }
      },
    },
    refresh: {
      ...common,
      operationId: 'refreshClientDocument',
      kind: 'act',
      url: '/client-documents/:url/refresh',
      summary: 'Fetch a document now, check it, and store what it says',
      perform: async (call, keep) => {
        const url = call.param('url')
        let result = respond(call, url, {})
        await (await call.server.openDocuments()).refresh(url, call.context, (stored) => {
          result = respond(call, url, stored)
          return [...call.requireMay({}), ...keep(result)]
        })
        return result
      },
    },
    deny: {
      ...common,
      operationId: 'denyClientDocument',
      kind: 'act',
      url: '/client-documents/:url/deny',
      summary: 'Accept a document no longer: the tokens of its client are invalid',
      perform: (call, keep) => decided(call, keep, denyDocument),
    },
    allow: {
      ...common,
      operationId: 'allowClientDocument',
      kind: 'act',
      url: '/client-documents/:url/allow',
      summary: 'Accept a denied document again',
      perform: async (call, keep) => {
        requireFound(await call.deps.store.find(deniedDocumentKind, call.param('url')), 'denied document')
        return decided(call, keep, allowDocument)
      },
    },
  } as const satisfies Readonly<Record<string, Operation>>
}

type Decide = (...about: Parameters<typeof denyDocument>) => Decision<StoredDocument>
