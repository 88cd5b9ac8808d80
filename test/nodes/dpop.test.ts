/** Proofs at four nodes that share only a PostgreSQL: what one node accepted, no other accepts once more. */
import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { startServer, type TestNode } from '../helpers/server.ts'
import { addClient } from '../helpers/wire.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { nodes: 4, store: await postgres.createDatabase() })
const key = makeClientKey('ES256')
const client = await addClient(server, {
  authenticationMethod: 'client_secret_post',
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['courses:read'],
})
const proof = () => signProof(key, { url: server.issuer + tokenPath, now: server.now() })
const ask = (node: Pick<TestNode, 'issuer'>, dpop: string) =>
  postProven(node, client, tokenPath, { grant_type: 'client_credentials' }, dpop)

t.test('[rfc9449-11.1-jti-replay] a proof is accepted by one of four nodes, once', async (t) => {
  for (const round of [1, 2, 3]) {
    const one = proof()
    const requests = Array.from({ length: 20 }, (_, at) => ask(server.nodes[at % 4] ?? server, one))
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    t.equal(statuses.filter((status) => status === 200).length, 1, `[rfc9449-11.1-jti-replay] round ${round}`)
    t.equal(statuses.filter((status) => status === 400).length, 19)
    for (const node of server.nodes) t.equal((await ask(node, one)).status, 400, 'later')
  }
})
