import t from 'tap'
import { ask, pageOf, place, sentAway } from '../helpers/authorization.ts'
import { newFolder, run } from '../helpers/command.ts'
import { callApi, exchange, refresh, type Tokens } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

t.test(
  '[service-5-https-client-out-of-band] a client with an https callback that `lychgate client add` added to a running server works like any other',
  async (t) => {
    const data = newFolder(t)
    const server = await startServer(t, { store: `sqlite:${data}/lychgate.db` })
    const redirectUri = 'https://portal.example/callback'
    const rejected = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [redirectUri] }),
    })
    t.equal(rejected.status, 400, 'not by registration')
    const flags = ['--name', 'Portal', '--redirect-uri', redirectUri, '--data', data, '--json']
    const { code: ended, stdout } = await run(['client', 'add', ...flags])
    t.equal(ended, 0)
    const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = JSON.parse(stdout)
    const client = { id, secret, method, redirectUri }
    const agent = new UserAgent(server.issuer)
    const consent = await agent.submit(pageOf(await ask(server, client, {}, agent)), alice)
    t.equal(place(consent), '/consent')
    const landing = await agent.submit(pageOf(consent), { decision: 'approve' })
    t.equal(place(landing), 'sent to https://portal.example')
    const { code = '', state, iss } = sentAway(landing)
    t.strictSame({ state, iss }, { state: 'a-state', iss: server.issuer })
    const response = await exchange(server, client, code)
    t.equal(response.status, 200)
    const tokens = (await response.json()) as Tokens
    t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 200)
    t.equal((await refresh(server, client, tokens.refresh_token)).status, 200)
  },
)
