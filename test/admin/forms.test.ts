/** Forms of the admin pages in the hands of two administrators: no change is overwritten by one who did not see it. */
import t from 'tap'
import type { Config } from '../../src/config/schema.ts'
import { createGroup, groupKind } from '../../src/domain/group.ts'
import { recordKind } from '../../src/domain/record.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const hidden = { visible: 'administrator', editable: 'administrator' } as const
const attributes: Config['accounts']['attributes'] = [
  { name: 'department', type: 'choice', values: ['physics', 'biology'], label: 'Department', ...hidden },
  { name: 'level', type: 'number', ...hidden },
  { name: 'tutor', type: 'boolean', ...hidden },
]
const server = await startServer(t, { admin: { secondFactor: 'off' }, accounts: { attributes } })
const { store, clock } = server.deps
const root = `${server.issuer}/admin`
const operator = () => ({ by: 'operator', at: clock() }) as const
const idOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await idOf('alice'), bob: await idOf('bob') }
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))

const admins = await group('Admins')
for (const id of Object.values(ids)) await addToGroup(store, admins, id, operator())

async function enter(user: typeof alice): Promise<UserAgent> {
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(root)), user)
  return agent
}
const [one, other] = [await enter(alice), await enter(bob)]

/** Opens the form of a page, and returns what sends it later. */
async function opened(agent: UserAgent, path: string) {
  const { html, forms } = pageOf(await agent.open(root + path))
  const fields = forms.find(({ method }) => method === 'post')?.fields ?? []
  const kept = fields.flatMap(({ name, value, type }) => (type === 'hidden' ? [[name, value]] : []))
  const send = (form: object) => {
    const body = new URLSearchParams({ ...Object.fromEntries(kept), ...form })
    return agent.send(root + path, { method: 'POST', body })
  }
  return { html, send }
}

const clientOf = async () => (await integrate(server, { redirectUris: ['https://app.example.test/cb'] })).id
const form = (name: string) => ({ name, redirect_uris: 'https://app.example.test/cb' })
const keyUrl = (name: string) => ({ uri: `https://${name}.example.test/keys` })

/** A page, what two administrators type there, and what is stored then. */
const pages = {
  'an app': async () => {
    const id = await clientOf()
    return {
      path: `/clients/${id}/edit`,
      typed: form,
      stored: async () => (await store.find('client', id))?.name,
    }
  },
  'the keys of an app': async () => {
    const id = await clientOf()
    const stored = async () => String((await store.find('client', id))?.extra?.['jwks_uri'])
    return {
      path: `/clients/${id}/keys`,
      typed: keyUrl,
      stored: async () => /https:..(\w+)/.exec(await stored())?.[1],
    }
  },
  'a group': async () => {
    const { id } = await group(`group ${systemRandom(6).toString('hex')}`)
    return {
      path: `/groups/${id}`,
      typed: (name: string) => ({ name: `${name} ${id}` }),
      stored: async () => (await store.find(groupKind, id))?.name.split(' ')[0],
    }
  },
  'the attributes of a user': async () => {
    const id = (await store.find('user', ids.bob))?.attributes === undefined ? ids.bob : ids.alice
    return {
      path: `/users/${id}/edit`,
      typed: (department: string) => ({ 'attribute.department': department }),
      stored: async () => (await store.find('user', id))?.attributes?.['department'],
    }
  },
}

for (const [what, prepare] of Object.entries(pages)) {
  t.test(`${what}: a form does not overwrite what it did not show`, async (t) => {
    const { path, typed, stored } = await prepare()
    const [first, second] = [await opened(one, path), await opened(other, path)]
    t.equal((await first.send(typed('physics'))).status, 303)
    t.equal(await stored(), 'physics')
    const late = await second.send(typed('biology'))
    t.equal(late.status, 409)
    const html = await late.text()
    t.match(html, 'Someone else changed this after you opened it, so nothing was saved.')
    t.match(html, 'physics', 'it shows the current values')
    t.match(html, /What you had typed(?:.|\n)*<bdi>.*biology/, 'and what was typed')
    t.equal(await stored(), 'physics')
    t.equal((await (await opened(other, path)).send(typed('biology'))).status, 303, 'with the new form')
    t.equal(await stored(), 'biology')
  })

  t.test(`${what}: of two forms at once, one is saved`, async (t) => {
    const { path, typed, stored } = await prepare()
    const forms = [await opened(one, path), await opened(other, path)]
    const values = ['physics', 'biology']
    const responses = await Promise.all(forms.map(({ send }, index) => send(typed(values[index] ?? ''))))
    const statuses = responses.map(({ status }) => status)
    t.strictSame(statuses.toSorted(), [303, 409])
    t.equal(await stored(), values[statuses.indexOf(303)])
  })
}

t.test('an administrator sees and changes every attribute of a user', async (t) => {
  const path = `/users/${ids.alice}/edit`
  const wrong = await (await opened(one, path)).send({ 'attribute.level': 'high', 'attribute.tutor': 'true' })
  t.equal(wrong.status, 400)
  const html = await wrong.text()
  t.match(html, 'id="attribute-level-fault"')
  t.match(html, 'value="high"', 'what was typed stays')
  t.equal((await store.find('user', ids.alice))?.attributes?.['tutor'], undefined)
  const { send } = await opened(one, path)
  const right = { 'attribute.department': 'physics', 'attribute.level': '3', 'attribute.tutor': 'true' }
  t.equal((await send(right)).headers.get('location'), `/admin/users/${ids.alice}?done=saved`)
  t.match((await store.find('user', ids.alice))?.attributes, { department: 'physics', level: 3, tutor: true })
  const event = (await store.audit({ since: 0, userId: ids.alice, limit: 500 })).at(-1)
  t.match(event, { name: 'user-changed', by: 'operator', facts: { actor: ids.alice } })
  t.match(event?.facts['changed'], /attributes\.level/)
  t.match((await opened(one, `/users/${ids.alice}`)).html, '<dt><bdi>level</bdi></dt><dd><bdi>3</bdi></dd>')
  const removal = await (await opened(one, path)).send({ ...right, 'attribute.level': '' })
  t.equal(removal.status, 303)
  t.notHas((await store.find('user', ids.alice))?.attributes, { level: 3 })
})

const invitation = {
  email: 'carol@example.com',
  given_name: 'Carol',
  family_name: 'Cooper',
  username: 'carol',
}

/** Sends the form of a page after the session has ended, and signs in. */
async function signedInAgain(path: string, typed: Record<string, string>, agent: UserAgent) {
  const body = new URLSearchParams(typed)
  const late = pageOf(await agent.open(root + path, { method: 'POST', body }))
  t.match(late.url, '/login')
  return pageOf(await agent.submit(late, alice))
}

/** Ends every session by its time. */
const endSessions = () => server.advance(server.deps.config.lifetimes.sessionIdleSeconds)

t.test('what was typed is there after a sign-in, to the browser that typed it', async (t) => {
  const agent = await enter(alice)
  const { forms } = pageOf(await agent.open(`${root}/users/invite`))
  const csrf = forms[0]?.fields.find(({ name }) => name === 'csrf')?.value ?? ''
  endSessions()
  const back = await signedInAgain('/users/invite', { csrf, ...invitation }, agent)
  t.match(back.url, /\/admin\/users\/invite\?done=kept&form=[\w-]{22}$/)
  t.match(back.html, 'What you typed is still here.')
  const fields = new Map(back.forms[0]?.fields.map(({ name, value }) => [name, value]))
  for (const [name, value] of Object.entries(invitation)) t.equal(fields.get(name), value)
  t.equal(await store.find('userByLogin', 'carol'), undefined, 'nothing was done')
  const stranger = await enter(alice)
  t.notMatch(pageOf(await stranger.open(back.url)).html, 'Carol', 'another browser')
  const elsewhere = back.url.replace('users/invite', 'groups')
  t.notMatch(pageOf(await agent.open(elsewhere)).html, 'Carol', 'another page')
  t.match(pageOf(await agent.submit(back, {})).html, 'carol', 'it is sent again')
  t.ok(await store.find('userByLogin', 'carol'))
  server.advance(server.deps.config.lifetimes.interactionSeconds)
  t.notMatch(pageOf(await agent.open(back.url)).html, 'Carol', 'later')
})

t.test('what was typed into a form is not in that of another page', async (t) => {
  const { id } = await group('gardeners')
  const agent = await enter(alice)
  const { forms } = pageOf(await agent.open(`${root}/groups`))
  const fields = forms.flatMap((form) => form.fields)
  const csrf = fields.find(({ name }) => name === 'csrf')?.value ?? ''
  endSessions()
  const back = await signedInAgain('/groups', { csrf, name: 'carpenters', description: '' }, agent)
  t.match(back.html, 'value="carpenters"')
  const elsewhere = pageOf(await agent.open(back.url.replace('/groups?', `/groups/${id}?`)))
  t.match(elsewhere.html, 'value="gardeners"')
  t.notMatch(elsewhere.html, 'carpenters')
})

t.test('a form that is not of this browser and session is not kept', async (t) => {
  const agent = await enter(alice)
  const { forms } = pageOf(await agent.open(`${root}/users/invite`))
  const csrf = forms[0]?.fields.find(({ name }) => name === 'csrf')?.value ?? ''
  endSessions()
  for (const token of ['', 'other', csrf.replace(/./, (first) => (first === 'a' ? 'b' : 'a'))]) {
    const back = await signedInAgain('/users/invite', { csrf: token, ...invitation }, agent)
    t.match(back.url, /\/admin\/users\/invite\?done=again$/)
    t.notMatch(back.html, 'carol')
    endSessions()
  }
})

t.test('a form that comes back late still overwrites nothing', async (t) => {
  const { id } = await group('late group')
  const agent = await enter(alice)
  const path = `/groups/${id}`
  const { forms } = pageOf(await agent.open(root + path))
  const fields = forms.find(({ fields }) => fields.some(({ name }) => name === 'description'))?.fields ?? []
  const kept = Object.fromEntries(fields.flatMap(({ name, value }) => (value === '' ? [] : [[name, value]])))
  endSessions()
  const back = await signedInAgain(path, { ...kept, name: 'mine' }, agent)
  t.match(back.html, 'value="mine"')
  const colleague = await enter(bob)
  t.equal((await (await opened(colleague, path)).send({ name: 'theirs' })).status, 303)
  const form = back.forms.find(({ fields }) => fields.some(({ name }) => name === 'description'))
  const response = pageOf(await agent.submit(back, {}, form))
  t.equal(response.status, 409)
  t.match(response.html, 'value="theirs"')
  t.match(response.html, '<bdi>mine</bdi>')
})

t.test('what may be a secret is not kept', async (t) => {
  const secret = 'lyc_access_that_was_pasted'
  const id = await clientOf()
  const before = { errors: '/errors', keys: `/clients/${id}/keys` }
  for (const [path, name] of [
    [before.errors, 'text'],
    [before.keys, 'add'],
  ] as const) {
    const agent = await enter(alice)
    const { forms } = pageOf(await agent.open(root + path))
    const csrf = forms[0]?.fields.find((field) => field.name === 'csrf')?.value ?? ''
    endSessions()
    const back = await signedInAgain(path, { csrf, [name]: secret }, agent)
    t.match(back.url, /done=(?:again|kept)/)
    t.notMatch(back.html, secret)
    const rows = await store.listKind(recordKind<object>('admin-form', { id: () => '' }), {
      madeUntil: Number.MAX_SAFE_INTEGER,
      limit: 1000,
    })
    t.notMatch(JSON.stringify(rows), secret)
  }
})
