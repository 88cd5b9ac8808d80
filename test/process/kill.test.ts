import t, { type Test } from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { newFolder } from '../helpers/command.ts'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { type Proven, postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import type { TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

/** A server that is killed without warning and started again. */
async function mortal(t: Test) {
  const [data, port] = [newFolder(t), await freePort()]
  const begin = () => startProcess(t, data, { port, LYCHGATE_LOG_LEVEL: 'fatal' })
  let running = await begin()
  return {
    server: running.server,
    killed: async () => {
      const { code } = await running.stop('SIGKILL')
      if (code !== null) throw new Error('it ended by itself')
      running = await begin()
    },
  }
}

const works = async (server: TestServer, token: string) =>
  (await callApi(server, '/api/oauth/userinfo', token)).status === 200

t.test('everything acknowledged before the process was killed is true afterwards', async (t) => {
  const { server, killed } = await mortal(t)
  const user = devAlice
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const revoked = await obtainTokens(server, client, { agent, user })
  const single = await obtainTokens(server, client, { agent, user })
  const rotated = await obtainTokens(server, client, { agent, user })
  const redeemed = await obtainCode(server, client, { agent, user })
  const open = await obtainCode(server, client, { agent, user })

  // All at once, so that they share a commit; the process is killed once they are acknowledged.
  const [revocation, ended, refreshed, exchanged] = await Promise.all([
    postAs(server, client, '/api/oauth/revoke', { token: revoked.refresh_token }),
    postAs(server, client, '/api/oauth/revoke', { token: single.access_token }),
    refresh(server, client, rotated.refresh_token),
    exchange(server, client, redeemed),
  ])
  await killed()
  t.strictSame([revocation.status, ended.status, refreshed.status, exchanged.status], [200, 200, 200, 200])
  const [successor, tokens] = [(await refreshed.json()) as Tokens, (await exchanged.json()) as Tokens]

  t.notOk(await works(server, revoked.access_token), 'revoked')
  t.equal((await refresh(server, client, revoked.refresh_token)).status, 400)
  t.notOk(await works(server, single.access_token), 'revoked alone')
  t.ok(await works(server, successor.access_token))
  t.equal((await refresh(server, client, successor.refresh_token)).status, 200, 'rotated')
  t.ok(await works(server, tokens.access_token))
  t.equal((await exchange(server, client, open)).status, 200, 'a code nobody used')
  t.equal((await exchange(server, client, redeemed)).status, 400, 'a code that was used')
  t.notOk(await works(server, tokens.access_token), 'and its replay still revokes')
  t.equal((await obtainTokens(server, client, { agent, user })).token_type, 'Bearer', 'the login lives')
})

t.test('[rfc9449-11.1-jti-replay] a proof that was used is known after the process was killed', async (t) => {
  const { server, killed } = await mortal(t)
  const [client, key] = [await register(server), makeClientKey('ES256')]
  const code = await obtainCode(server, client, { user: devAlice })
  const proofFor = (path: string, more: Partial<Proven>) =>
    signProof(key, { url: server.issuer + path, now: Math.floor(Date.now() / 1000), ...more })
  const fields = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  const response = await postProven(server, client, tokenPath, fields, proofFor(tokenPath, {}))
  const { access_token: token } = (await response.json()) as Tokens
  const userInfo = '/api/oauth/userinfo'
  const proof = proofFor(userInfo, { method: 'GET', token })
  const call = async (dpop: string) =>
    (await fetch(server.issuer + userInfo, { headers: { authorization: `DPoP ${token}`, dpop } })).status
  t.equal(await call(proof), 200)
  await killed()
  t.equal(await call(proof), 401, '[rfc9449-11.1-jti-replay] the same again')
  t.equal(await call(proofFor(userInfo, { method: 'GET', token })), 200, 'another')
})

t.test('killed in the middle of refreshes, the family continues with the token the client has', async (t) => {
  const { server, killed } = await mortal(t)
  const client = await register(server)
  let { refresh_token: held } = await obtainTokens(server, client, { user: devAlice })
  for (let round = 0; round < 2; round += 1) {
    const lost = refresh(server, client, held).catch(() => undefined)
    await killed()
    await lost
    // Whether or not the lost refresh was committed: the same token gets a successor.
    const again = await refresh(server, client, held)
    t.equal(again.status, 200, `round ${round}`)
    held = ((await again.json()) as Tokens).refresh_token
  }
})
