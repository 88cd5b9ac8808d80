import t from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { ForeignKeys } from '../../src/keys/seal.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import { callApi, postAs, refresh } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const [development, production] = await Promise.all([startServer(t, { mode: 'dev' }), startServer(t)])

interface Minted {
  readonly access_token: string
  readonly refresh_token: string
  readonly client_id: string
}

async function mint(): Promise<Minted> {
  const response = await fetch(`${development.issuer}/_dev/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'alice', scope: 'openid' }),
  })
  return (await response.json()) as Minted
}

t.test(
  'a production server with the data and the secret of a development server accepts none of its tokens',
  async (t) => {
    const minted = await mint()
    const { keys = [] } = await production.deps.store.contents()
    await production.deps.store.replace({ ...(await development.deps.store.contents()), keys })
    const client = { id: minted.client_id, method: 'none', redirectUri: '' }
    t.ok(await production.deps.store.find('client', client.id), 'it knows the client')
    t.equal((await callApi(development, '/api/oauth/userinfo', minted.access_token)).status, 200)
    t.equal((await callApi(production, '/api/oauth/userinfo', minted.access_token)).status, 401)
    const told = await postAs(production, client, '/api/oauth/introspect', { token: minted.access_token })
    t.strictSame(await told.json(), { active: false })
    const rejected = await refresh(production, client, minted.refresh_token)
    t.match(await rejected.json(), { error: 'invalid_grant' })
  },
)

t.test(
  'a production server does not start with the keys of a development server, nor the other way round',
  async (t) => {
    for (const [server, mode] of [
      [development, 'serve'],
      [production, 'dev'],
    ] as const) {
      const url = `sqlite:${t.testdir()}/${mode}.db`
      const store = await openStore(url)
      await store.replace(await server.deps.store.contents())
      await store.close()
      await t.rejects(startServer(t, { mode, store: url }), ForeignKeys)
    }
  },
)

t.test('no setting makes a production server a development server', async (t) => {
  const secret = 'a secret for tests that is long enough'
  t.throws(() => loadConfig({ mode: 'serve', values: { secret, mode: 'dev' } }), ConfigError)
  t.throws(
    () => loadConfig({ mode: 'serve', values: { secret }, environment: { LYCHGATE_MODE: 'dev' } }),
    ConfigError,
  )
  t.equal(loadConfig({ mode: 'serve', values: { secret } }).mode, 'serve')
})
