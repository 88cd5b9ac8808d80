/** Groups of users: the scope and the claim `groups`. */
import t from 'tap'
import { changeGroup, createGroup, deleteGroup, type Group } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import {
  callApi,
  claimsOf,
  exchange,
  type Fields,
  obtainTokens,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, { groups: { mostInClaim: 3 } })
const { store, clock } = server.deps
const operator = () => ({ by: 'operator', at: clock(), from: 'op@here' }) as const
const portal = await integrate(server, { consent: 'skip' })

const subOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await subOf('alice'), bob: await subOf('bob') }

const create = (name: string, parentId?: string): Promise<Group> =>
  changeGroups(store, (groups) => createGroup(groups, { name, parentId }, systemRandom(16), operator()))
const join = (group: Group, userId: string) => addToGroup(store, group, userId, operator())
const leave = (group: Group, userId: string) => removeFromGroup(store, group, userId, operator())

const staff = await create('staff')
const teachers = await create('teachers', staff.id)
const students = await create('Students of 2026')
await join(teachers, ids.alice)
await join(students, ids.bob)

async function tokensFor(client: TestClient, fields: Fields, person = alice): Promise<Tokens> {
  const agent = await signedIn(server, client, person)
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  const response = await exchange(server, client, code)
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Tokens
}

const userInfo = async (token: string) => json(await callApi(server, '/api/oauth/userinfo', token))

t.test('the metadata has the scope and the claim', async (t) => {
  const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
  t.ok([metadata['scopes_supported']].flat().includes('groups'))
  t.ok([metadata['claims_supported']].flat().includes('groups'))
})

t.test('UserInfo has the groups that the user was added to, and their parents', async (t) => {
  const tokens = await tokensFor(portal, { scope: 'openid groups' })
  t.equal(tokens.scope, 'openid groups')
  const answer = await userInfo(tokens.access_token)
  t.strictSame(answer, { sub: ids.alice, groups: ['staff', 'teachers'] })
  t.notOk('groups' in claimsOf(tokens.id_token), 'the ID Token has none that nobody asked for')
  const other = await tokensFor(portal, { scope: 'openid groups' }, bob)
  t.strictSame((await userInfo(other.access_token))['groups'], ['Students of 2026'])
  t.notOk('groups' in claimsOf(other.id_token))
})

t.test('without the scope, a client learns nothing of groups', async (t) => {
  const { access_token: token } = await tokensFor(portal, { scope: 'openid profile email' })
  t.notOk('groups' in (await userInfo(token)))
})

t.test('the claims parameter brings them into UserInfo and ID Tokens, after consent', async (t) => {
  const claims = JSON.stringify({ id_token: { groups: null }, userinfo: { groups: { essential: true } } })
  const asking = await integrate(server, { consent: 'always' })
  const agent = await signedIn(server, asking)
  const page = pageOf(await ask(server, asking, { scope: 'openid', claims }, agent))
  t.match(page.html, 'See which groups you belong to', 'the user is asked')
  const approve = { decision: 'approve', scope: ['openid', 'groups'] }
  const { code = '' } = sentAway(await agent.submit(page, approve))
  const tokens = (await (await exchange(server, asking, code)).json()) as Tokens
  t.strictSame(claimsOf(tokens.id_token)['groups'], ['staff', 'teachers'])
  t.strictSame((await userInfo(tokens.access_token))['groups'], ['staff', 'teachers'])
  const again = pageOf(await ask(server, asking, { scope: 'openid', claims }, agent))
  const denied = sentAway(await agent.submit(again, { decision: 'approve', scope: ['openid'] }))
  const without = (await (await exchange(server, asking, denied['code'] ?? '')).json()) as Tokens
  t.notOk('groups' in claimsOf(without.id_token), 'and can clear it')
  t.notOk('groups' in (await userInfo(without.access_token)))
})

t.test('a client that registered itself asks for it on the consent page', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client, { fields: { scope: 'openid groups' } })
  t.strictSame((await userInfo(tokens.access_token))['groups'], ['staff', 'teachers'])
  const narrow = await register(server, { scope: 'openid' })
  const rejected = sentAway(await ask(server, narrow, { scope: 'openid groups' }))
  t.equal(rejected['error'], 'invalid_scope', 'its metadata limits that')
})

t.test('the next UserInfo and the next refresh have every change', async (t) => {
  const claims = JSON.stringify({ id_token: { groups: null } })
  const tokens = await tokensFor(portal, { scope: 'openid groups', claims })
  const admins = await create('admins')
  await join(admins, ids.alice)
  const groupsNow = async () => (await userInfo(tokens.access_token))['groups']
  t.strictSame(await groupsNow(), ['admins', 'staff', 'teachers'])
  await changeGroups(store, (groups) => changeGroup(groups, admins, { name: 'Admins' }, operator()))
  t.strictSame(await groupsNow(), ['Admins', 'staff', 'teachers'], 'a new name')
  await leave(teachers, ids.alice)
  t.strictSame(await groupsNow(), ['Admins'])
  const next = (await (await refresh(server, portal, tokens.refresh_token)).json()) as Tokens
  t.strictSame(claimsOf(next.id_token)['groups'], ['Admins'])
  await changeGroups(store, (groups) => deleteGroup(groups, { ...admins, name: 'Admins' }, operator()))
  t.strictSame(await groupsNow(), [], 'a user without groups has an empty list, not none')
  await join(teachers, ids.alice)
})

t.test('the claim has a limit, and says when it is reached', async (t) => {
  const more = await Promise.all(['a1', 'a2', 'a3', 'a4'].map((name) => create(name)))
  for (const group of more) await join(group, ids.bob)
  const { access_token: token } = await tokensFor(portal, { scope: 'openid groups' }, bob)
  const { groups, groups_truncated: isTruncated } = await userInfo(token)
  t.strictSame(groups, ['Students of 2026', 'a1', 'a2'])
  t.equal(isTruncated, true)
  for (const group of more) await changeGroups(store, (all) => deleteGroup(all, group, operator()))
  t.notOk('groups_truncated' in (await userInfo(token)))
})

t.test('every change is in the audit log', async (t) => {
  const events = (await store.audit({ since: 0, limit: 1000 })).filter(({ name }) =>
    name.startsWith('group-'),
  )
  t.ok(events.every(({ by, from }) => by === 'operator' && from === 'op@here'))
  const added = events.filter(({ name }) => name === 'group-member-added')
  t.match(added[0], { userId: ids.alice, facts: { group: teachers.id, name: 'teachers' } })
  for (const name of ['group-created', 'group-changed', 'group-deleted', 'group-member-removed'])
    t.ok(
      events.some((event) => event.name === name),
      name,
    )
})

t.test('changes at the same time make no circle, and no name twice', async (t) => {
  const [one, two] = [await create('one'), await create('two')]
  const under = (group: Group, parentId: string) =>
    changeGroups(store, (groups) => changeGroup(groups, group, { parentId }, operator()))
  const results = await Promise.allSettled([under(one, two.id), under(two, one.id)])
  t.strictSame(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const names = await Promise.allSettled([create('Same'), create('same'), create('SAME')])
  t.equal(names.filter(({ status }) => status === 'fulfilled').length, 1)
})
