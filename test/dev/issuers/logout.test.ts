/** Issuers that send wrong logout tokens, and two clients: one checks nothing, and one checks what the document says. */
import t from 'tap'
import { profiles } from '../../../src/dev/issuers/catalogue.ts'
import { integrate, pageOf } from '../../helpers/authorization.ts'
import { claimsOf, obtainTokens } from '../../helpers/flow.ts'
import { type LogoutRequest, startLogoutReceiver, verifyLogoutToken } from '../../helpers/logout-receiver.ts'
import { startServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { issuerOf, reportOf } from './results.ts'

const server = await startServer(t, { mode: 'dev' })
const receiver = await startLogoutReceiver(t)
const client = await integrate(server, {
  consent: 'skip',
  description: { backchannel_logout_uri: receiver.uri },
})

/** Signs in and out at an issuer: the sid of the session, and the logout request. */
async function signOutAt(id: string): Promise<{ readonly sid: unknown; readonly request: LogoutRequest }> {
  const issuer = issuerOf(server, id)
  const agent = new UserAgent(issuer)
  const tokens = await obtainTokens({ issuer }, client, { agent })
  await agent.submit(pageOf(await agent.open(`${issuer}/oauth/logout`)), { decision: 'logout' })
  return { sid: claimsOf(tokens.id_token)['sid'], request: await receiver.next() }
}

async function verdictOf(id: string) {
  const found = (await reportOf(server)).profiles.find((one) => one.id === id)
  if (found === undefined) throw new Error(`no ${id}`)
  return found
}

/** Waits for the verdict: it follows the response of the client. */
async function judged(id: string) {
  for (;;) {
    const found = await verdictOf(id)
    if (found.wrong > 0) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** What is wrong in the claims of each. */
const faults: Readonly<Record<string, (claims: Record<string, unknown>, sid: unknown) => boolean>> = {
  'logout-token-with-nonce': ({ nonce }) => nonce !== undefined,
  'logout-token-without-event': ({ events }) => events === undefined,
  'logout-token-other-audience': ({ aud }) => aud !== client.id,
  'logout-token-wrong-sid': (claims, sid) => claims['sid'] !== sid,
}

t.test('each issuer has one fault, and the correct one has none', async (t) => {
  const wrong = profiles.filter(({ alterLogout }) => alterLogout !== undefined)
  t.strictSame(wrong.map(({ id }) => id).toSorted(), Object.keys(faults).toSorted())
  for (const id of ['reference', ...Object.keys(faults)]) {
    const { sid, request } = await signOutAt(id)
    const claims = claimsOf(request.form.get('logout_token') ?? '')
    const found = Object.keys(faults).filter((name) => faults[name]?.(claims, sid))
    t.strictSame(found, id === 'reference' ? [] : [id])
    if (id === 'reference') await verifyLogoutToken({ issuer: issuerOf(server, id) }, client, request)
  }
})

t.test('a client that accepts every logout token was fooled', async (t) => {
  for (const id of ['logout-token-with-nonce', 'logout-token-without-event', 'logout-token-other-audience']) {
    t.match(await judged(id), { verdict: 'fooled', evidence: /^POST .* 200$/ })
  }
  const id = 'logout-token-wrong-sid'
  t.match(await judged(id), { verdict: 'not reached' }, 'only the client knows which session it ended')
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ outcome: 'fooled', reason: 'ended every session of the user' })
  await fetch(`${issuerOf(server, id)}/outcome`, { method: 'POST', headers, body })
  t.match(await verdictOf(id), { verdict: 'fooled' })
})

t.test('a client that checks them rejects each', async (t) => {
  await fetch(`${server.issuer}/_dev/issuers/report`, { method: 'DELETE' })
  receiver.conduct = 400
  for (const id of ['logout-token-with-nonce', 'logout-token-without-event', 'logout-token-other-audience']) {
    const { request } = await signOutAt(id)
    await t.rejects(verifyLogoutToken({ issuer: issuerOf(server, id) }, client, request), id)
    t.match(await judged(id), { verdict: 'rejected' })
  }
})
