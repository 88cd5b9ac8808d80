/** Logout tokens on four nodes that share only a PostgreSQL: one of them sends each, once. */

import t from 'tap'
import { finishedDeliveryKind, logoutDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { claimsOf, exchange, refresh, type Tokens } from '../helpers/flow.ts'
import { startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { startServer } from '../helpers/server.ts'
import type { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { mode: 'dev', nodes: 4, store: await postgres.createDatabase() })
const { store } = server.deps
const receiver = await startLogoutReceiver(t)
const client = await integrate(server, {
  consent: 'skip',
  description: { backchannel_logout_uri: receiver.uri, refresh_tokens: 'session' },
})

async function tokensIn(agent: UserAgent): Promise<Tokens> {
  const { code = '' } = sentAway(await ask(server, client, {}, agent))
  return (await (await exchange(server, client, code)).json()) as Tokens
}

async function signOut(agent: UserAgent): Promise<void> {
  const page = pageOf(await agent.open(`${server.issuer}/oauth/logout`))
  await agent.submit(page, { decision: 'logout' })
}

t.test(
  '[oidc-bcl-2.3-remembers-clients] the client gets one logout token for each session that ends',
  async (t) => {
    const browsers: UserAgent[] = []
    // One after the other: the sign-in throttle counts what is typed at the same time as guesses.
    for (let count = 0; count < 8; count += 1) browsers.push(await signedIn(server, client))
    const tokens = await Promise.all(browsers.map(tokensIn))
    const sids = tokens.map(({ id_token: token }) => String(claimsOf(token)['sid']))
    await Promise.all(browsers.map(signOut))
    const told: unknown[] = []
    for (const _ of sids) {
      const { claims } = await verifyLogoutToken(server, client, await receiver.next())
      told.push(claims['sid'])
    }
    t.strictSame(told.sort(), sids.sort())
    for (const sid of sids) {
      while ((await store.find(finishedDeliveryKind, sid)) === undefined)
        await new Promise((resolve) => setTimeout(resolve, 50))
      t.equal(await store.find(logoutDeliveryKind, sid), undefined)
      t.match(await store.find(finishedDeliveryKind, sid), { outcome: 'delivered', tries: 1 })
    }
    t.equal(receiver.requests.length, sids.length)
  },
)

t.test('a refresh and the end of the session at the same time leave no usable token', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const agent = await signedIn(server, client)
    const { refresh_token: token } = await tokensIn(agent)
    const [response] = await Promise.all([refresh(server, client, token), signOut(agent)])
    const next = ((await response.json()) as Partial<Tokens>).refresh_token ?? token
    const late = await refresh(server, client, next)
    t.equal(late.status, 400)
    t.match(await late.json(), { error: 'invalid_grant' })
  }
})
