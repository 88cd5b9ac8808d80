/** What an app would get: computed for an administrator, and not issued. */
import t from 'tap'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { claimsOf, obtainTokens, postAs } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const api = 'https://api.example.test'
const server = await startServer(t, {
  admin: { secondFactor: 'off', api: 'on' },
  resources: [{ identifier: api, name: 'API', scopes: ['courses:read'], tokenFormat: 'jwt' }],
})
const { store, clock } = server.deps
const operator = () => ({ by: 'operator', at: clock() }) as const
const idOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await idOf('alice'), bob: await idOf('bob') }
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))
const admins = await group('Admins')
await addToGroup(store, admins, ids.alice, operator())
const closed = await group('Closed')
const scope = ['openid', 'profile', 'email', 'groups', 'courses:read']
const client = await integrate(server, { scope })
const agent = new UserAgent(server.issuer)
await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), alice)
const open = async (query = '', id = client.id) =>
  (await agent.send(`${server.issuer}/admin/clients/${id}/try${query}`)).text()
const rows = (html: string) =>
  [...html.matchAll(/<dt><code>([^<]*)<\/code><\/dt><dd>(?:<code[^>]*>([^<]*)<\/code>|…)<\/dd>/g)].map(
    ([, name = '', value]) => [name, value] as const,
  )

t.test('what is shown is what the app then gets', async (t) => {
  const shown = await open()
  const [, idToken = ''] = shown.split('<h2><code>id_token</code></h2>')
  const own = new Map(rows(idToken.split('</section>')[0] ?? ''))
  const tokens = await obtainTokens(server, client, { fields: { scope: scope.join(' ') } })
  const varying = ['iat', 'exp', 'at_hash', 'auth_time', 'amr', 'acr', 'sid', 'nonce']
  const real = Object.entries(claimsOf(tokens.id_token ?? '')).filter(([name]) => !varying.includes(name))
  t.ok(real.length > 5)
  for (const [name, value] of real)
    t.equal(
      own.get(name)?.replaceAll('&quot;', '"'),
      typeof value === 'string' ? value : JSON.stringify(value),
      name,
    )
  t.match(shown, `access_token ${api}`)
})

t.test('it issues, stores and sends nothing', async (t) => {
  const before = await store.contents()
  const html = await open()
  t.notMatch(html, /lyc_|eyJ/)
  t.strictSame(await store.contents(), before)
})

t.test('of another user only the names of claims are shown', async (t) => {
  const { email = '' } = (await store.find('user', ids.bob)) ?? {}
  const html = await open('?user=bob')
  const shown = rows(html)
  t.ok(shown.some(([name]) => name === 'email'))
  t.ok(shown.every(([, value]) => value === undefined))
  t.notMatch(html, email)
  t.notMatch(html, ids.bob)
  t.match(await open('?user=nobody'), 'role="alert"')
})

t.test('it says who would get nothing', async (t) => {
  const limited = await integrate(server, { scope, description: { allowed_groups: [closed.id] } })
  t.match(await open('', limited.id), 'This user may not use the app')
  await addToGroup(store, closed, ids.alice, operator())
  t.notMatch(await open('', limited.id), 'This user may not use the app')
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
  })
  t.match(await open('', machine.id), 'The app would get nothing:')
})

t.test('the admin API has it, and of a client without a user only names', async (t) => {
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:clients:read'],
  })
  const form = { grant_type: 'client_credentials' }
  const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', form))
  const call = (query: string) =>
    fetch(`${server.issuer}/api/admin/v1/clients/${client.id}/preview${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  t.match(await json(await call('')), { error: 'not_found' })
  const preview = await json(await call(`?sub=${ids.bob}`))
  t.match(preview, { client_id: client.id, sub: ids.bob, allowed: true, scope: scope.join(' ') })
  t.notMatch(JSON.stringify(preview), bob.username)
  t.notMatch(JSON.stringify(preview), '"claims"')
})
