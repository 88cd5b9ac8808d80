/** What an exchanged grant is among the others of its user: counted apart, and ended with the token that it came from. */
import t from 'tap'
import { integrate, signedIn } from '../helpers/authorization.ts'
import { obtainTokens, postAs, refresh } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const limit = 10
const server = await startServer(t, { admin: { api: 'on' }, limits: { grantsPerUserAndClient: limit } })
const app = await integrate(server, { grantTypes: ['authorization_code', 'refresh_token', grantType] })
const agent = await signedIn(server, app)
const exchange = async (subject: string) => {
  const subjectType = 'urn:ietf:params:oauth:token-type:access_token'
  const fields = { grant_type: grantType, subject_token: subject, subject_token_type: subjectType }
  const response = await postAs(server, app, '/api/oauth/token', fields)
  t.equal(response.status, 200)
}

t.test('tokens that a client exchanges never push out the sign-ins of its user', async (t) => {
  const { access_token: token, refresh_token: refreshToken = '' } = await obtainTokens(server, app, { agent })
  for (let turn = 0; turn < 2 * limit; turn += 1) {
    server.advance(1)
    await exchange(token)
  }
  t.equal((await refresh(server, app, refreshToken)).status, 200)
  const { grants } = await server.deps.store.grantsFrom({ clientId: app.id, after: undefined, limit: 100 })
  t.equal(grants.filter(({ exchangedFrom }) => exchangedFrom !== undefined).length, limit)
})

t.test('an exchanged grant is shown as revoked when what it was exchanged for was', async (t) => {
  const scope = ['admin:users:read']
  const machine = await integrate(server, { grantTypes: ['client_credentials'], redirectUris: [], scope })
  const own = { grant_type: 'client_credentials' }
  const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', own))
  const read = async (path: string) =>
    json(
      await fetch(`${server.issuer}/api/admin/v1/grants${path}`, {
        headers: { authorization: `Bearer ${token}` },
      }),
    )
  const newest = async (query = '') => {
    const { items } = await read(`?client_id=${app.id}&limit=100${query}`)
    return (items as Record<string, unknown>[]).at(-1) // a list, as the schema says
  }
  server.advance(1)
  const subject = await obtainTokens(server, app, { agent })
  server.advance(1)
  await exchange(subject.access_token)
  const alive = await newest()
  t.match(alive, { state: 'active', exchanged_from: { client_id: app.id } })
  await postAs(server, app, '/api/oauth/revoke', { token: subject.access_token })
  const ended = { ...alive, state: 'revoked', revoked_by: 'lychgate-subject-token-valid' }
  t.strictSame(await read(`/${alive?.['grant']}`), ended)
  t.strictSame(await newest(), ended)
  t.strictSame(await newest('&state=revoked'), ended)
  t.not((await newest('&state=active'))?.['grant'], alive?.['grant'])
})
