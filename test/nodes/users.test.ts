/**
 * Browsers at three nodes that share a PostgreSQL: every request, including redirects and forms, goes to the next
 * node.
 */

import t from 'tap'
import { consentKey, consentKind } from '../../src/domain/connections.ts'
import { remove } from '../../src/domain/decision.ts'
import { bodyOf, integrate, pageOf, place, sentAway } from '../helpers/authorization.ts'
import { authorizationUrl, obtainCode, register } from '../helpers/flow.ts'
import { alice, bob, startServer, type TestNode } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, {
  nodes: 3,
  store: await postgres.createDatabase(),
  signInThrottle: {
    failuresPerAccountAndPrefix: 4,
    failuresPerPrefix: 100,
    failuresPerAccount: 100,
    windowSeconds: 900,
  },
})
const [one, two, three] = server.nodes
if (!one || !two || !three) throw new Error('three nodes were asked for')
const client = await register(one)

/** This browser, using only one node. */
function at(node: TestNode, { cookies }: UserAgent = new UserAgent(node.issuer)): UserAgent {
  const same = new UserAgent(node.issuer)
  for (const [name, value] of cookies) same.cookies.set(name, value)
  return same
}

t.test('one node accepts a form that another rendered, for sign-in and consent', async (t) => {
  const agent = new UserAgent(server.issuer)
  const asked = await agent.send(authorizationUrl(one, client))
  const login = new URL(asked.headers.get('location') ?? '', one.issuer)
  t.equal(login.pathname, '/login')
  const page = pageOf(await agent.open(two.issuer + login.pathname + login.search))
  const signedIn = await agent.send(`${three.issuer}/login`, { method: 'POST', body: bodyOf(page, alice) })
  t.equal(signedIn.status, 303)
  const next = new URL(signedIn.headers.get('location') ?? '', three.issuer)
  const consent = pageOf(await agent.open(one.issuer + next.pathname + next.search))
  t.equal(place({ at: 'page', page: consent }), '/consent')
  const approved = await agent.send(`${two.issuer}/consent`, {
    method: 'POST',
    body: bodyOf(consent, { decision: 'approve' }),
    redirect: 'manual',
  })
  const landed = new URL(approved.headers.get('location') ?? '')
  t.match(Object.fromEntries(landed.searchParams), { code: /^lyc_code_/, iss: server.issuer })

  const forged = await new UserAgent(server.issuer).send(`${three.issuer}/consent`, {
    method: 'POST',
    body: bodyOf(consent, { decision: 'approve' }),
  })
  t.equal(forged.status, 400, 'and another browser cannot answer it anywhere')
  t.equal(forged.headers.get('location'), null)
})

t.test('a sign-in at one node counts at all, and so does a sign-out', async (t) => {
  const agent = at(one)
  await obtainCode(one, client, { agent })
  for (const node of server.nodes) {
    t.equal(place(await at(node, agent).open(authorizationUrl(node, client))), '/consent', 'no sign-in')
    t.equal(place(await at(node, agent).open(`${node.issuer}/account`)), '/account')
  }
  const before = at(one, agent)
  const elsewhere = at(two, agent)
  await elsewhere.submit(pageOf(await elsewhere.open(`${two.issuer}/oauth/logout`)), {})
  for (const node of server.nodes) {
    t.equal(
      place(await at(node, before).open(authorizationUrl(node, client))),
      '/login',
      'the cookie is worth nothing',
    )
  }
})

t.test('a consent given at one node is remembered at all, and deleted at all', async (t) => {
  const portal = await integrate({ ...server, ...two })
  const agent = at(one)
  await obtainCode(one, portal, { agent, user: bob })
  const silent = { prompt: 'none' }
  for (const node of server.nodes) {
    t.match(sentAway(await at(node, agent).open(authorizationUrl(node, portal, silent))), {
      code: /^lyc_code_/,
    })
  }
  const user = await one.deps.store.find('userByLogin', bob.username)
  await three.deps.store.write(remove(consentKind, consentKey(user?.id ?? '', portal.id)))
  for (const node of server.nodes) {
    t.match(sentAway(await at(node, agent).open(authorizationUrl(node, portal, silent))), {
      error: 'consent_required',
    })
  }
})

t.test('failed sign-ins are counted together, whichever node they went to', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(authorizationUrl(server, client)))
  const knock = async (node: typeof one, password: string) => {
    const body = bodyOf(page, { username: 'alice', password })
    return agent.send(`${node.issuer}/login`, { method: 'POST', body })
  }
  for (const node of [one, two, three, one]) t.equal((await knock(node, 'wrong')).status, 400)
  for (const node of server.nodes) {
    const response = await knock(node, alice.password)
    t.equal(response.status, 429, 'not even the right password is looked at')
    t.ok(Number(response.headers.get('retry-after')) > 0)
  }
  server.advance(900)
  t.equal((await knock(two, alice.password)).status, 303)
})

t.test('simultaneous failed sign-ins at all nodes are all counted', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(authorizationUrl(server, client)))
  const statuses = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const body = bodyOf(page, { username: 'bob', password: 'wrong' })
      const { issuer } = server.nodes[index % 3] ?? server
      return (await agent.send(`${issuer}/login`, { method: 'POST', body })).status
    }),
  )
  t.equal(statuses.filter((status) => status === 400).length, 4)
  t.equal(statuses.filter((status) => status === 429).length, 8)
})
