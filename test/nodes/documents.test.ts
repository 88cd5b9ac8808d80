/** Clients of documents of which nothing is stored: each node has them in memory, or fetches them. */
import t from 'tap'
import { clientDocumentKind } from '../../src/domain/client-document.ts'
import { obtainTokens, refresh } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'
import { json } from '../helpers/wire.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { mode: 'dev', nodes: 2, store: await postgres.createDatabase() })
const site = await startStandInDocuments(t)

t.test('a request that begins at one node is approved at another, which stores the client', async (t) => {
  const { client } = site.publish({})
  let { refresh_token: token } = await obtainTokens(server, client)
  t.ok(site.requests.length <= 2, 'each node fetches the document once')
  t.match(await server.deps.store.find('client', client.id), { published: { digest: /^[\w-]{43}$/ } })
  t.match(await server.deps.store.find(clientDocumentKind, client.id), { id: client.id })
  for (const _ of [1, 2]) {
    const response = await refresh(server, client, token)
    t.equal(response.status, 200, 'and every node knows it')
    token = String((await json(response))['refresh_token'])
  }
  await Promise.all([1, 2, 3, 4].map(() => obtainTokens(server, site.publish({}, '/one.json').client)))
  t.ok(await server.deps.store.find('client', `${site.origin}/one.json`), 'approved at all nodes at once')
})
