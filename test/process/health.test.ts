import Database from 'better-sqlite3'
import t from 'tap'
import { callApi, obtainTokens, postAs, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const healthOf = async (url: string) => {
  const response = await fetch(url)
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.json(),
  }
}

t.test('a running server is live and ready, and its responses are not cached', async (t) => {
  const { issuer } = await startServer(t)
  t.match(await healthOf(`${issuer}/livez`), {
    status: 200,
    headers: { 'cache-control': 'no-store' },
    body: { status: 'live' },
  })
  t.match(await healthOf(`${issuer}/readyz`), {
    status: 200,
    headers: { 'cache-control': 'no-store' },
    body: { status: 'ready' },
  })
})

t.test('health is at the root even if the issuer has a path', async (t) => {
  const { origin } = await startServer(t, { issuerPath: '/t' })
  t.equal((await fetch(`${origin}/livez`)).status, 200)
  t.equal((await fetch(`${origin}/readyz`)).status, 200)
})

t.test('health checks are not logged', async (t) => {
  const server = await startServer(t)
  await fetch(`${server.issuer}/livez`)
  await fetch(`${server.issuer}/readyz`)
  t.strictSame(
    server.log.filter((line) => /livez|readyz/.test(line)),
    [],
  )
})

t.test(
  '[rfc7009-2.2.1-unavailable-503] while another process locks the database the server is live, not ready, responds 503, and recovers',
  async (t) => {
    const file = `${t.testdir()}/lychgate.db`
    const server = await startServer(t, { store: `sqlite:${file}` })
    const client = await register(server)
    const { access_token: access, refresh_token: token } = await obtainTokens(server, client)
    const other = new Database(file)
    t.teardown(() => other.close())
    other.exec('begin immediate')

    t.equal((await fetch(`${server.issuer}/livez`)).status, 200)
    const unavailable = {
      status: 503,
      headers: { 'retry-after': '1', 'content-type': /^application\/json/ },
      body: { error: 'temporarily_unavailable', error_description: String },
    }
    t.match(await healthOf(`${server.issuer}/readyz`), unavailable)
    const rejected = [
      await refresh(server, client, token),
      await postAs(server, client, '/api/oauth/revoke', { token }),
    ]
    for (const response of rejected) {
      t.equal(response.status, 503, response.url)
      t.equal(response.headers.get('retry-after'), '1')
      t.match(await response.json(), { error: 'temporarily_unavailable' })
    }
    t.equal(
      (await callApi(server, '/api/oauth/userinfo', access)).status,
      200,
      'and so are reads: the token lives',
    )
    t.equal((await fetch(`${server.issuer}/api/oauth/jwks`)).status, 200, 'what needs no write is served')

    other.exec('rollback')
    t.equal((await fetch(`${server.issuer}/readyz`)).status, 200)
    t.equal((await refresh(server, client, token)).status, 200, 'the refused rotation did not happen')
    t.equal((await postAs(server, client, '/api/oauth/revoke', { token })).status, 200)
    t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 401)
  },
)
