/** Assertions on four nodes that share only a PostgreSQL: what one node accepted, no other accepts once more. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { post } from '../helpers/flow.ts'
import { startServer, type TestNode } from '../helpers/server.ts'
import { startStandInIssuer } from '../helpers/stand-in-issuer.ts'
import { addClient, json } from '../helpers/wire.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { nodes: 4, store: await postgres.createDatabase(), mode: 'dev' })
const platform = await startStandInIssuer(t)
const key = makeClientKey('ES256')
const subject = 'system:serviceaccount:courses:import'
const client = await addClient(server, {
  authenticationMethod: 'private_key_jwt',
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['courses:read'],
  description: {
    jwks: { keys: [key.jwk] },
    trusted_issuers: [
      { issuer: platform.issuer, subject },
      { issuer: platform.issuer, subject: 'reusable', reusable: true },
    ],
  },
})

const [own, ofPlatform] = [
  () => signAssertion(key, { id: client.id, issuer: server.issuer, now: server.now() }),
  (sub = subject) => platform.sign({ sub, aud: server.issuer, now: server.now() }),
]

function ask(node: Pick<TestNode, 'issuer'>, assertion: string): Promise<Response> {
  return post(node, '/api/oauth/token', { grant_type: 'client_credentials', ...withAssertion(assertion) })
}

/** Asserts that one of 48 simultaneous requests over all nodes succeeds, and none at any node afterwards. */
async function isUsedOnce(t: Test, assertion: string, about: string): Promise<void> {
  const requests = Array.from({ length: 48 }, (_, at) => ask(server.nodes[at % 4] ?? server, assertion))
  const responses = await Promise.all(requests)
  t.equal(responses.filter(({ status }) => status === 200).length, 1, about)
  for (const rejected of responses.filter(({ status }) => status !== 200)) {
    t.equal(rejected.status, 400, about)
    t.equal((await json(rejected))['error'], 'invalid_client', about)
  }
  for (const node of server.nodes) t.equal((await ask(node, assertion)).status, 400, `${about}, later`)
}

t.test('[rfc7523-3-jti-replay] an assertion is accepted by one of four nodes, once', async (t) => {
  for (const round of [1, 2, 3]) await isUsedOnce(t, own(), `round ${round}`)
  const jti = randomUUID()
  const again = () =>
    signAssertion(
      key,
      { id: client.id, issuer: server.issuer, now: server.now() },
      { claims: { jti, note: randomUUID() } },
    )
  const [first, second] = server.nodes
  if (!first || !second) throw new Error('four nodes were asked for')
  t.equal((await ask(first, again())).status, 200)
  t.equal((await ask(second, again())).status, 400, 'another assertion with the same jti, at another node')
})

t.test('[rfc7523-3-jti-replay] and so is a token of a trusted issuer, unless it is reusable', async (t) => {
  for (const round of [1, 2]) await isUsedOnce(t, ofPlatform(), `round ${round}`)
  const projected = ofPlatform('reusable')
  for (const node of server.nodes) t.equal((await ask(node, projected)).status, 200)
})

t.test(
  'what was used is forgotten once it has expired, and the assertion is rejected for that',
  async (t) => {
    const assertion = own()
    t.equal((await ask(server, assertion)).status, 200)
    server.advance(80)
    await server.maintain()
    for (const node of server.nodes) t.equal((await ask(node, assertion)).status, 400)
  },
)
