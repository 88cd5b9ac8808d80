/** Groups of users: the scope and the claim `groups`. */
import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import { changeGroup, createGroup, deleteGroup, type Group } from '../../src/domain/group.ts'
import type { Client } from '../../src/domain/model.ts'
import { describeService } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { explainToken } from '../../src/observability/explain.ts'
import { systemRandom } from '../../src/system/system.ts'
import {
  addToGroup,
  changeGroups,
  changeGroupsTogether,
  listGroups,
  removeFromGroup,
} from '../../src/users/groups.ts'
import { ask, integrate, pageOf, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { addDeviceClient, openConfirmation, poll, startDevice } from '../helpers/device.ts'
import {
  callApi,
  claimsOf,
  exchange,
  type Fields,
  obtainTokens,
  postAs,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const server = await startServer(t, {
  groups: { mostInClaim: 3 },
  resources: [
    {
      identifier: library,
      name: 'Library',
      scopes: ['pages:read'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 600,
    },
  ],
})
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

async function tokensFor(client: TestClient, fields: Fields, user = alice): Promise<Tokens> {
  const agent = await signedIn(server, client, user)
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

t.test(
  'UserInfo and the ID Token have the groups that the user was added to, and their parents',
  async (t) => {
    const tokens = await tokensFor(portal, { scope: 'openid groups' })
    t.equal(tokens.scope, 'openid groups')
    const response = await userInfo(tokens.access_token)
    t.strictSame(response, { sub: ids.alice, groups: ['staff', 'teachers'] })
    t.strictSame(claimsOf(tokens.id_token)['groups'], ['staff', 'teachers'])
    const other = await tokensFor(portal, { scope: 'openid groups' }, bob)
    t.strictSame((await userInfo(other.access_token))['groups'], ['Students of 2026'])
    t.strictSame(claimsOf(other.id_token)['groups'], ['Students of 2026'])
  },
)

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

const allow = (groups: readonly Group[], members: Readonly<Record<string, unknown>> = {}) => ({
  description: { allowed_groups: groups.map(({ id }) => id), ...members },
})

t.test('several changes are one: all are written, or none', async (t) => {
  const names = async () => (await listGroups(store)).map(({ name }) => name).sort()
  const before = await names()
  type Change = Parameters<typeof changeGroupsTogether>[1]
  const add = (groups: Parameters<Change>[0], name: string, parentId = '') =>
    changeGroups(groups, (known) => createGroup(known, { name, parentId }, systemRandom(16), operator()))
  const together = (change: Change) => changeGroupsTogether(store, change, (decision) => decision)
  const faulty = together(async (groups) => {
    const { id } = await add(groups, 'above')
    await add(groups, 'below', id)
    await add(groups, 'Above')
  })
  await t.rejects(faulty, { message: 'another group has this name' })
  const overtaken = together(async (groups) => {
    await add(groups, 'above')
    await add(store, 'meanwhile')
  })
  await t.rejects(overtaken, { name: 'Outdated' })
  t.strictSame(await names(), [...before, 'meanwhile'].sort())
  await together(async (groups) => {
    const { id } = await add(groups, 'above')
    await add(groups, 'below', id)
  })
  t.strictSame(await names(), [...before, 'meanwhile', 'above', 'below'].sort())
})

t.test('only the members of its groups may use a client', async (t) => {
  const grades = await integrate(server, { consent: 'remember', name: 'Grades', ...allow([staff]) })
  const agent = await signedIn(server, grades, bob)
  const page = pageOf(await ask(server, grades, {}, agent))
  t.equal(page.status, 403)
  t.equal(title(page), 'You cannot use Grades')
  t.match(page.html, 'your account is in none of them')
  t.match(page.html, 'ask the people who run')
  const approved = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.equal(title(approved), 'You cannot use Grades', 'a form that approves changes nothing')
  const response = sentAway(await agent.submit(page, { decision: 'deny' }))
  t.match(response, { error: 'access_denied', state: 'a-state', iss: server.issuer })
  t.match(response['error_description'], 'the user is in none of the groups that may use this client')
  t.notOk('code' in response)
  const silent = sentAway(await ask(server, grades, { prompt: 'none' }, agent))
  t.equal(silent['error'], 'access_denied', 'without a page')
  const [event] = await store.audit({ since: 0, name: 'client-access-denied', limit: 1 })
  t.match(event, { userId: ids.bob, clientId: grades.id, facts: { rule: 'lychgate-group-required' } })
  t.equal(
    (await tokensFor(await integrate(server, { consent: 'skip', ...allow([staff]) }), {})).scope,
    'openid',
  )
})

t.test('a client without consent does not skip the check', async (t) => {
  const client = await integrate(server, { consent: 'skip', ...allow([teachers, students]) })
  t.ok((await tokensFor(client, {})).access_token, 'a member of one of them')
  t.ok((await tokensFor(client, {}, bob)).access_token, 'a member of the other')
  await leave(students, ids.bob)
  const page = pageOf(await ask(server, client, {}, await signedIn(server, client, bob)))
  t.equal(page.status, 403)
  await join(students, ids.bob)
})

t.test('the page names a contact, in the language of the user', async (t) => {
  const client = await integrate(server, { ...allow([staff], { contacts: ['help@grades.example'] }) })
  const agent = await signedIn(server, client, bob)
  t.match(pageOf(await ask(server, client, {}, agent)).html, /ask (<bdi>)?help@grades\.example/)
  const inGerman = pageOf(await ask(server, client, { ui_locales: 'de' }, agent))
  t.equal(title(inGerman), 'Sie können Portal nicht verwenden')
})

t.test('another user of the browser may continue', async (t) => {
  const client = await integrate(server, { consent: 'skip', ...allow([staff]) })
  const agent = await signedIn(server, client, bob)
  const page = pageOf(await ask(server, client, {}, agent))
  const [, url = ''] = /href="([^"]*switch=1)"/.exec(page.html) ?? []
  const login = pageOf(await agent.open(server.origin + url.replaceAll('&amp;', '&')))
  t.ok(sentAway(await agent.submit(login, alice))['code'])
})

t.test('a refresh ends the grant of a user who may no longer use the client', async (t) => {
  const claims = JSON.stringify({ id_token: { groups: null } })
  const client = await integrate(server, { consent: 'skip', ...allow([staff]) })
  const tokens = await tokensFor(client, { scope: 'openid groups', claims })
  const second = (await (await refresh(server, client, tokens.refresh_token)).json()) as Tokens
  t.ok(second.refresh_token, 'a member refreshes')
  await leave(teachers, ids.alice)
  const response = await refresh(server, client, second.refresh_token)
  t.equal(response.status, 400)
  const body = await json(response)
  t.equal(body['error'], 'invalid_grant')
  t.match(body['error_description'], 'the user is in none of the groups that may use this client')
  t.equal((await callApi(server, '/api/oauth/userinfo', second.access_token)).status, 401, 'at once')
  const explained = await explainToken(second.access_token, {
    store,
    keys: server.deps.keys,
    service: describeService(server.deps.config, declared),
    now: clock(),
  })
  t.match(explained, { headline: 'access token, not active', rule: 'lychgate-group-required' })
  const [event] = await store.audit({ since: 0, name: 'revocation', limit: 1 })
  t.match(event, { by: 'server', userId: ids.alice, facts: { rule: 'lychgate-group-required' } })
  await join(teachers, ids.alice)
  t.equal((await refresh(server, client, second.refresh_token)).status, 400, 'and it stays ended')
})

t.test('a code is worth nothing to a user who left the group before it was redeemed', async (t) => {
  const client = await integrate(server, { consent: 'skip', ...allow([staff]) })
  const agent = await signedIn(server, client)
  const { code = '' } = sentAway(await ask(server, client, {}, agent))
  await leave(teachers, ids.alice)
  const response = await exchange(server, client, code)
  t.equal((await json(response))['error'], 'invalid_grant')
  await join(teachers, ids.alice)
  t.equal((await exchange(server, client, code)).status, 400, 'its grant is revoked')
})

t.test('access that an operator narrows ends with the next refresh', async (t) => {
  const client = await integrate(server, { consent: 'skip' })
  const tokens = await tokensFor(client, {}, bob)
  const stored = await store.find('client', client.id)
  await store.write(update('client', { ...(stored as Client), extra: { allowed_groups: [staff.id] } }))
  const response = await refresh(server, client, tokens.refresh_token)
  t.equal((await json(response))['error'], 'invalid_grant')
})

t.test('a group that is deleted lets no user in', async (t) => {
  const team = await create('team')
  await join(team, ids.alice)
  const client = await integrate(server, { consent: 'skip', ...allow([team]) })
  const tokens = await tokensFor(client, {})
  await changeGroups(store, (groups) => deleteGroup(groups, team, operator()))
  t.equal((await refresh(server, client, tokens.refresh_token)).status, 400)
  t.equal(pageOf(await ask(server, client, {}, await signedIn(server, client))).status, 403)
})

t.test('nor does a device of a user who may not use its client get a token', async (t) => {
  const device = await addDeviceClient(server, allow([staff]))
  const started = await startDevice(server, device)
  const agent = new UserAgent(server.issuer)
  const page = await openConfirmation(server, started.user_code, agent, bob)
  const denied = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.equal(denied.status, 403)
  t.equal((await json(await poll(server, device, started)))['error'], 'authorization_pending')
})

t.test('clients that act for themselves are not affected', async (t) => {
  const machine = await integrate(server, {
    redirectUris: [],
    grantTypes: ['client_credentials'],
    scope: ['courses:read'],
    ...allow([staff]),
  })
  const response = await postAs(server, machine, '/api/oauth/token', { grant_type: 'client_credentials' })
  t.equal(response.status, 200)
})

t.test('a client that registers itself cannot set who may use it', async (t) => {
  const client = await register(server, { allowed_groups: [staff.id] })
  t.notOk('allowed_groups' in ((await store.find('client', client.id))?.extra ?? {}))
  t.ok((await obtainTokens(server, client, { user: bob })).access_token)
})

const everywhere = ['userinfo', 'id_token', 'access_token']
const claiming = (...rules: readonly object[]) => ({ description: { token_claims: rules } })

t.test(
  '[rfc9068-2.2.3.1-authorization-claims] an operator adds groups, roles and entitlements',
  async (t) => {
    const client = await integrate(server, {
      consent: 'skip',
      ...claiming(
        { claim: 'groups', in: everywhere, groups: true },
        { claim: 'roles', in: everywhere, roles: { [staff.id]: 'editor', [students.id]: 'reader' } },
        { claim: 'entitlements', in: ['access_token'], value: ['library:basic'] },
        { claim: 'https://school.example/login', copy: 'preferred_username' },
      ),
    })
    const fields = { scope: 'openid pages:read groups', resource: [library, server.issuer] }
    const agent = await signedIn(server, client)
    const { code = '' } = sentAway(await ask(server, client, fields, agent))
    const tokens = (await (await exchange(server, client, code, { resource: library })).json()) as Tokens
    const access = claimsOf(tokens.access_token)
    t.strictSame(access['groups'], ['staff', 'teachers'])
    t.strictSame(access['roles'], ['editor'])
    t.strictSame(access['entitlements'], ['library:basic'])
    t.equal(access['scope'], 'pages:read', 'the scope of the API only')
    t.notOk('https://school.example/login' in access)
    const id = claimsOf(tokens.id_token)
    t.match(id, { groups: ['staff', 'teachers'], roles: ['editor'], 'https://school.example/login': 'alice' })
    t.notOk('entitlements' in id)
    await leave(teachers, ids.alice)
    const next = (await (
      await refresh(server, client, tokens.refresh_token, { resource: library })
    ).json()) as Tokens
    t.strictSame(claimsOf(next.access_token)['roles'], [], 'a refresh has the change')
    t.strictSame(claimsOf(next.access_token)['groups'], [])
    await join(teachers, ids.alice)
  },
)

t.test('UserInfo has what the rules of the client say', async (t) => {
  const rules = claiming(
    { claim: 'roles', roles: { [staff.id]: 'Admin', [teachers.id]: 'Admin' } },
    { claim: 'tenant', in: ['userinfo'], value: 7 },
    { claim: 'groups', groups: true },
  )
  const client = await integrate(server, { consent: 'skip', ...rules })
  const { access_token: token, id_token: idToken } = await tokensFor(client, {})
  t.strictSame(await userInfo(token), { tenant: 7, roles: ['Admin'], sub: ids.alice })
  t.notOk('groups' in claimsOf(idToken), 'the names of groups need the scope')
})

t.test('a token without a user has no claims of a user', async (t) => {
  const machine = await integrate(
    server,
    {
      redirectUris: [],
      grantTypes: ['client_credentials'],
      scope: ['pages:read'],
      ...claiming({ claim: 'roles', in: ['access_token'], value: ['admin'] }),
    },
    { resources: [library] },
  )
  const fields = { grant_type: 'client_credentials', resource: library }
  const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', fields))
  t.notOk('roles' in claimsOf(String(token)), '[rfc9068-2.2.3.1-authorization-claims]')
})

t.test('no rule sets a claim of the protocol', async (t) => {
  const reserved = [
    'iss',
    'sub',
    'aud',
    'exp',
    'iat',
    'nonce',
    'acr',
    'amr',
    'cnf',
    'scope',
    'client_id',
    'email',
  ]
  for (const claim of reserved)
    await t.rejects(integrate(server, claiming({ claim, value: 'x' })), /only the server sets/, claim)
  // One that was stored before it was reserved.
  const client = await integrate(server, { consent: 'skip' })
  const stored = (await store.find('client', client.id)) as Client
  const rules = ['iss', 'sub', 'aud', 'exp', 'scope', 'client_id', 'jti', 'amr'].map((claim) => ({
    claim,
    in: everywhere,
    value: 'evil',
  }))
  await store.write(update('client', { ...stored, extra: { token_claims: rules } }))
  const agent = await signedIn(server, client)
  const fields = { scope: 'openid pages:read', resource: [library, server.issuer] }
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  const tokens = (await (await exchange(server, client, code, { resource: library })).json()) as Tokens
  t.notMatch(JSON.stringify(claimsOf(tokens.access_token)), 'evil')
  const { iss, sub, aud, exp } = claimsOf(tokens.id_token)
  t.notMatch(JSON.stringify([iss, sub, aud, exp]), 'evil')
})

t.test('what is no rule is rejected', async (t) => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ claim: 'x' }, /exactly one of: groups, roles, value, copy/],
    [{ claim: 'x', value: 1, copy: 'y' }, /exactly one of/],
    [{ claim: '', value: 1 }, /must be the name of a claim/],
    [{ claim: '__proto__', value: 1 }, /must be the name of a claim/],
    [{ claim: 'x', in: [], value: 1 }, /in must be a list of/],
    [{ claim: 'x', in: ['code'], value: 1 }, /in must be a list of/],
    [{ claim: 'x', value: { nested: true } }, /must have groups: true/],
    [{ claim: 'x', value: 'a'.repeat(1001) }, /must have groups: true/],
    [{ claim: 'x', roles: { staff: 'admin' } }, /must have groups: true/],
    [{ claim: 'x', script: 'return 1' }, /must have groups: true/],
  ]
  for (const [rule, reason] of wrong) await t.rejects(integrate(server, claiming(rule)), reason)
  const twice = { claim: 'x', value: 1 }
  await t.rejects(integrate(server, claiming(twice, twice)), /has a claim twice/)
  const many = Array.from({ length: 31 }, (_, index) => ({ claim: `x${index}`, value: 1 }))
  await t.rejects(integrate(server, claiming(...many)), /more than 30 claims/)
  const client = await register(server, { token_claims: [{ claim: 'roles', value: ['admin'] }] })
  const { extra = {} } = (await store.find('client', client.id)) ?? {}
  t.notOk('token_claims' in extra, 'a client that registers itself cannot set any')
})
