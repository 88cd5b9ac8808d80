/** Which version of a document a consent stores, where no page was shown or an operator denies it in between. */
import t from 'tap'
import { deniedDocumentKind } from '../../src/domain/client-document.ts'
import { insert } from '../../src/domain/decision.ts'
import { bodyOf, pageOf, signedIn } from '../helpers/authorization.ts'
import { authorizationUrl, authorize } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'
import { textOf } from './account/sections.ts'

const server = await startServer(t, { mode: 'dev', nodes: 1 })
const site = await startStandInDocuments(t)

t.test('a form without what its page showed is for the requested version of a document alone', async (t) => {
  const { client, document } = site.publish({})
  const agent = await signedIn(server, client)
  const page = pageOf(await agent.open(authorizationUrl(server, client)))
  const body = bodyOf(page, { decision: 'approve' })
  body.delete('shown')
  document.body = { ...(document.body as object), software_version: '2' }
  server.advance(301)
  await authorize(server, client)
  const landing = await agent.open(new URL('/consent', page.url).href, { method: 'POST', body })
  t.match(textOf(pageOf(landing)), 'has changed its details')
  t.equal(await server.deps.store.find('client', client.id), undefined)
})

t.test('a document that an operator denies is not stored by a consent at the same time', async (t) => {
  const { client } = site.publish({})
  const clients = server.app.publishedClients
  if (clients === undefined) throw new Error('clients are known by documents')
  const approved = await clients.current(client.id, '127.0.0.0/24')
  await server.deps.store.write(insert(deniedDocumentKind, { id: client.id, deniedAt: server.now() }))
  await t.rejects(clients.keep(approved), { code: 'invalid_client' })
  t.equal(await server.deps.store.find('client', client.id), undefined)
})
