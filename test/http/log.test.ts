import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { authorizationUrl, exchange, obtainTokens, post, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t, { logLevel: 'debug' })
const client = await register(server)
const agent = new UserAgent(server.issuer)

t.test(
  '[rfc9700-4.9.2-rs-token-hygiene] a secret sent in a wrong place is in no log line, only its kind',
  async (t) => {
    const {
      access_token: access,
      refresh_token: token,
      id_token: idToken,
    } = await obtainTokens(server, client, { agent })
    const from = server.log.length
    const open = (path: string) => fetch(server.issuer + path, { redirect: 'manual' })
    const statuses = [
      await open(`/${access}`),
      await open(`/api/${token}?a=b`),
      await open(`/api/oauth/register/${access}`),
      await open(`/oauth/authorize?client_id=${access}`),
      await fetch(authorizationUrl(server, client, { scope: token }), { redirect: 'manual' }),
      await fetch(authorizationUrl(server, client, { response_type: access }), { redirect: 'manual' }),
      await fetch(authorizationUrl(server, client, { resource: `https://${access}` }), {
        redirect: 'manual',
      }),
      await fetch(authorizationUrl(server, client, { redirect_uri: `https://a.example/${access}` })),
      await post(server, '/api/oauth/token', { client_id: client.id, grant_type: token }),
      await post(server, '/api/oauth/token', { client_id: access, grant_type: 'refresh_token' }),
      await refresh(server, client, token, { scope: access }),
      await exchange(server, client, token),
      await open(`/api/${idToken}`),
      await post(server, '/api/oauth/token', { client_id: client.id, grant_type: idToken }),
    ].map(({ status }) => status)
    t.same(statuses, [404, 404, 401, 400, 303, 303, 303, 400, 400, 400, 400, 400, 404, 400])
    for (let attempt = 0; attempt < 3000 && server.log.length < from + statuses.length; attempt += 1)
      await wait(10)
    const lines = server.log.slice(from)
    t.equal(lines.length, statuses.length, 'one line a request')
    for (const line of lines) {
      for (const secret of [access, token, idToken]) {
        t.notOk(line.includes(secret), line)
        t.notOk(line.includes(secret.slice(-20)), line)
      }
    }
    t.match(lines[0], '"path":"/lyc_access_…"')
  },
)
