/** The admin pages: who may open each of them and send its form, and what the forms do. */
import { generateKeyPairSync } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { TOTP } from 'otpauth'
import t from 'tap'
import { type Issued, lossOf } from '../../src/admin/pages/key-loss.ts'
import { buildApp } from '../../src/app/app.ts'
import { accept, insert, put, update } from '../../src/domain/decision.ts'
import { createGroup, type Group } from '../../src/domain/group.ts'
import type { PublicKey } from '../../src/domain/key-set.ts'
import { type KeyState, stateOf } from '../../src/domain/key-term.ts'
import type { AuditEvent, StoredKey, User } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, groupsOf, removeFromGroup } from '../../src/users/groups.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import {
  idOfPersonalToken,
  mintPersonalToken,
  personalTokenKind,
} from '../../src/users/rules/personal-token.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { failuresOf, throttleKind } from '../../src/users/rules/throttle.ts'
import { upstreamPresets } from '../../src/users/upstream-presets.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { inBetween } from '../helpers/in-between.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { passkey } from '../storage/samples.ts'

const level = { name: 'level', type: 'number', visible: 'administrator', editable: 'administrator' } as const
const server = await startServer(t, { accounts: { attributes: [level] } })
const { store, keys, clock } = server.deps
const root = `${server.issuer}/admin`
const operator = () => ({ by: 'operator', at: clock() }) as const
const subOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await subOf('alice'), bob: await subOf('bob') }
const totp = new TOTP()

async function group(name: string): Promise<Group> {
  return changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))
}
const admins = await group('Admins')
await addToGroup(store, admins, ids.alice, operator())

/** Opens the overview in a new browser, and signs in. */
async function enter(user = alice): Promise<UserAgent> {
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(root)), user)
  return agent
}

/** The same with a code, too. */
async function twoFactors(): Promise<UserAgent> {
  // A code is used once.
  server.advance(30)
  const agent = new UserAgent(server.issuer)
  const second = await agent.submit(pageOf(await agent.open(root)), alice)
  await agent.submit(pageOf(second), { code: totp.generate({ timestamp: server.now() * 1000 }) })
  return agent
}

const weak = await enter()
const other = await enter(bob)
const withoutFactor = await weak.send(`${root}/users/invite`)
await store.write(
  put(secondFactorKind, {
    userId: ids.alice,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), ids.alice, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }),
)
const stale = await twoFactors()

/** The routes below /admin, as the application has them. */
async function routes(): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>()
  const app = await buildApp(server.deps, {
    logTo: { write: () => undefined },
    observe: async (observed) => {
      observed.addHook('onRoute', ({ method, url }) => {
        if (!/^\/admin(?:\/|$)/.test(url)) return
        found.set(url, [...(found.get(url) ?? []), ...[method].flat()])
      })
    },
  })
  await app.close()
  return found
}

let count = 0
async function invited(): Promise<string> {
  count += 1
  const agent = await fresh()
  const username = `user${count}`
  await send(agent, '/users/invite', { email: `${username}@example.test`, username })
  return subOf(username)
}

const words = { group: 'Bills', access: 'read', description: 'All bills' }
const ofApi = { name: 'Bills', scope: 'courses:read', format: 'opaque' }

async function aScope(): Promise<string> {
  const name = `${systemRandom(8).toString('hex')}:read`
  await send(await fresh(), '/apis/scopes/add', { name, ...words })
  return name
}

async function aResource(): Promise<string> {
  const identifier = `https://${systemRandom(8).toString('hex')}.example`
  await send(await fresh(), '/apis/resources/add', { identifier, ...ofApi })
  return identifier
}

let strong: UserAgent | undefined
let strongUntil = 0
/** The browser of an administrator with a recent second factor. */
async function fresh(): Promise<UserAgent> {
  if (strong === undefined || server.now() > strongUntil) {
    strong = await twoFactors()
    strongUntil = server.now() + 300
  }
  return strong
}

/** The hidden fields of a page. */
function hiddenIn({ forms }: Page): Readonly<Record<string, string>> {
  const own = forms.find(({ method }) => method === 'post')
  return Object.fromEntries(
    own?.fields.flatMap(({ name, value, type }) => (type === 'hidden' ? [[name, value]] : [])) ?? [],
  )
}

async function open(agent: UserAgent, path: string): Promise<Page> {
  return pageOf(await agent.open(root + path))
}

function post(agent: UserAgent, path: string, fields: object, headers: object = {}): Promise<Response> {
  const body = new URLSearchParams(Object.entries(fields))
  return agent.send(root + path, { method: 'POST', body, headers: { ...headers } })
}

/** Opens a page and sends its form. */
async function send(agent: UserAgent, path: string, fields: object): Promise<Response> {
  return post(agent, path, { ...hiddenIn(await open(agent, path)), ...fields })
}

interface Sample {
  readonly path: string
  /** What the form sends in addition to its hidden fields. */
  readonly form?: object
  /** The status, if the form of an administrator is rejected. */
  readonly rejected?: number
}

const ofUser =
  (act: string, typed = true) =>
  async (): Promise<Sample> => {
    const id = await invited()
    const { username = '' } = (await store.find('user', id)) ?? {}
    return { path: `/users/${id}/${act}`, form: typed ? { confirm: username } : {} }
  }

const newName = (what: string) => `${what} ${systemRandom(6).toString('hex')}`
const webApp = () => ({ name: newName('App'), redirect_uris: 'https://app.example.test/callback' })

/** A new public key, as PEM. */
function publicKey(): string {
  const { publicKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return key.export({ type: 'spki', format: 'pem' }).toString()
}

/** Adds a client, and returns its id. */
async function client(form: object = webApp(), kind = 'web'): Promise<string> {
  const agent = await fresh()
  const html = await (await send(agent, `/clients/add?kind=${kind}`, form)).text()
  return /client_[\w-]{22}/.exec(html)?.[0] ?? html
}

/** What the form of a new upstream sends. */
function anUpstream() {
  const id = `work-${systemRandom(4).toString('hex')}`
  const issuer = `https://${id}.example.com`
  return { upstream_id: id, name: 'Work', issuer, client_id: 'lychgate', client_secret: 'a secret' }
}

/** Adds an upstream. */
async function upstream(): Promise<{ readonly id: string; readonly name: string }> {
  const form = anUpstream()
  await send(await fresh(), '/add-upstream', form)
  return { id: form.upstream_id, name: form.name }
}

const ofClient =
  (act: string, typed = true) =>
  async (): Promise<Sample> => {
    const id = await client()
    const { name = '' } = (await store.find('client', id)) ?? {}
    return { path: `/clients/${id}/${act}`, form: typed ? { confirm: name } : {} }
  }

async function keyOf(algorithm: string, state: KeyState): Promise<StoredKey | undefined> {
  const ring = await store.list('key')
  return ring.find((key) => key.algorithm === algorithm && stateOf(key, ring, clock()) === state)
}

/** How each page is opened, and its form sent. A new page has to be added here. */
const samples: Readonly<Record<string, () => Promise<Sample>>> = {
  '': async () => ({ path: '' }),
  '/users': async () => ({ path: '/users' }),
  '/users/factors': async () => ({ path: '/users/factors' }),
  '/users/invite': async () => ({
    path: '/users/invite',
    form: { email: `new${systemRandom(8).toString('hex')}@example.test` },
  }),
  '/users/invite-list': async () => ({
    path: '/users/invite-list',
    form: { list: `new${systemRandom(8).toString('hex')}@example.test` },
  }),
  '/users/:id': async () => ({ path: `/users/${await invited()}`, form: { join: 'ADMINS' } }),
  '/users/:id/access': async () => ({ path: `/users/${await invited()}/access` }),
  '/users/:id/link': ofUser('link', false),
  '/users/:id/tokens': async () => {
    const [id, described] = [await invited(), { name: 'CI', scope: ['admin:users:read'], seconds: 9000 }]
    const { record } = mintPersonalToken(described, id, systemRandom(32), clock())
    await store.write(insert(personalTokenKind, record))
    return { path: `/users/${id}/tokens`, form: { revoke: idOfPersonalToken(record) } }
  },
  '/users/:id/edit': async () => ({
    path: `/users/${await invited()}/edit`,
    form: { given_name: 'Dora', 'attribute.level': '3' },
  }),
  '/users/:id/password': async () => ({
    path: `/users/${await invited()}/password`,
    form: { password: 'a new and long password', repeated: 'a new and long password' },
  }),
  '/users/:id/lock': ofUser('lock'),
  '/users/:id/unlock': ofUser('unlock', false),
  '/users/:id/sign-out': ofUser('sign-out', false),
  '/users/:id/revoke': ofUser('revoke'),
  '/users/:id/remove-codes': ofUser('remove-codes'),
  '/users/:id/remove-passkeys': ofUser('remove-passkeys'),
  '/users/:id/remove': ofUser('remove'),
  '/groups': async () => ({ path: '/groups', form: { name: newName('group') } }),
  '/groups/:id': async () => ({
    path: `/groups/${(await group(newName('group'))).id}`,
    form: { join: 'bob' },
  }),
  '/groups/:id/delete': async () => {
    const { id, name } = await group(newName('group'))
    return { path: `/groups/${id}/delete`, form: { confirm: name } }
  },
  '/upstreams': async () => ({ path: '/upstreams' }),
  '/add-upstream': async () => ({ path: '/add-upstream', form: anUpstream() }),
  '/upstreams/:id': async () => ({ path: `/upstreams/${(await upstream()).id}`, form: { name: 'Home' } }),
  '/upstreams/:id/delete': async () => {
    const { id, name } = await upstream()
    return { path: `/upstreams/${id}/delete`, form: { confirm: name } }
  },
  '/clients': async () => ({ path: '/clients' }),
  '/clients/add': async () => ({ path: '/clients/add?kind=web', form: webApp() }),
  '/clients/:id': async () => ({ path: `/clients/${await client()}`, form: { allow: 'admins' } }),
  '/clients/:id/edit': async () => ({ path: `/clients/${await client()}/edit`, form: webApp() }),
  '/clients/:id/keys': async () => ({ path: `/clients/${await client()}/keys`, form: { add: publicKey() } }),
  '/clients/:id/try': async () => ({ path: `/clients/${await client()}/try` }),
  '/clients/:id/lock': ofClient('lock'),
  '/clients/:id/unlock': ofClient('unlock', false),
  '/clients/:id/secret': ofClient('secret', false),
  '/clients/:id/leaked-secret': ofClient('leaked-secret'),
  '/clients/:id/remove': ofClient('remove'),
  '/apis': async () => ({ path: '/apis' }),
  '/apis/scopes/add': async () => ({
    path: '/apis/scopes/add',
    form: { name: `${systemRandom(8).toString('hex')}:read`, ...words },
  }),
  '/apis/scopes/:id': async () => ({
    path: `/apis/scopes/${encodeURIComponent(await aScope())}`,
    form: words,
  }),
  '/apis/scopes/:id/delete': async () => {
    const scope = await aScope()
    return { path: `/apis/scopes/${encodeURIComponent(scope)}/delete`, form: { confirm: scope } }
  },
  '/apis/resources/add': async () => ({
    path: '/apis/resources/add',
    form: { identifier: `https://${systemRandom(8).toString('hex')}.example`, ...ofApi },
  }),
  '/apis/resources/:id': async () => ({
    path: `/apis/resources/${encodeURIComponent(await aResource())}`,
    form: ofApi,
  }),
  '/apis/resources/:id/delete': async () => {
    const resource = await aResource()
    return { path: `/apis/resources/${encodeURIComponent(resource)}/delete`, form: { confirm: resource } }
  },
  '/keys': async () => ({ path: '/keys' }),
  '/keys/rotate': async () => ({ path: '/keys/rotate', form: { algorithm: 'ES256' } }),
  '/keys/:id/retire': async () => {
    const id = (await keyOf('EdDSA', 'active'))?.id ?? ''
    return { path: `/keys/${id}/retire`, form: { confirm: id.slice(0, 8) } }
  },
  '/audit': async () => ({ path: '/audit' }),
  '/audit/export': async () => ({ path: '/audit/export' }),
  // There is no mail server.
  '/settings': async () => ({ path: '/settings', form: {}, rejected: 409 }),
  '/errors': async () => ({ path: '/errors', form: { text: 'lyc_access_x' } }),
}

const isSignIn = ({ status, headers }: Response) =>
  status === 303 &&
  headers.get('location')?.startsWith(`${new URL(root).pathname.replace('/admin', '')}/login`)

t.test(
  'every page is for administrators, and every form for those with a recent second factor',
  async (t) => {
    const found = await routes()
    t.strictSame(
      [...found.keys()].map((url) => url.replace(/^\/admin/, '')).toSorted(),
      Object.keys(samples).toSorted(),
    )
    for (const [route, methods] of found) {
      await t.test(route, async (t) => {
        const sample = samples[route.replace(/^\/admin/, '')]
        const { path, form, rejected }: Sample = (await sample?.()) ?? { path: '' }
        t.equal(methods.includes('POST'), form !== undefined, 'the sample has a form if the page has')
        const agent = await fresh()
        const page = await open(agent, path)
        t.equal(page.status, 200)
        t.equal(page.headers.get('cache-control'), 'no-store')
        if (page.headers.get('content-type')?.startsWith('text/html'))
          t.match(
            page.headers.get('content-security-policy'),
            // The page of an app copies values, and that of tokens a new one.
            ['/admin/clients/:id', '/admin/users/:id/tokens'].includes(route)
              ? /default-src 'none'; script-src 'self'/
              : /default-src 'none'; script-src 'none'/,
          )
        t.ok(isSignIn(await new UserAgent(server.issuer).send(root + path)), 'not signed in')
        t.equal((await other.send(root + path)).status, 403, 'not an administrator')
        const byWeak = await weak.send(root + path)
        t.ok(byWeak.status === 200 || isSignIn(byWeak), 'a sign-in with one factor')
        if (form === undefined) return
        const hidden = hiddenIn(page)
        const sent = { ...hidden, ...form }
        t.ok(isSignIn(await post(new UserAgent(server.issuer), path, sent)), 'not signed in')
        t.equal((await post(other, path, sent)).status, 403, 'not an administrator')
        if (byWeak.status === 200)
          t.ok(isSignIn(await send(weak, path, form)), 'the form of a sign-in with one factor')
        t.equal((await post(agent, path, form)).status, 403, 'no CSRF token')
        t.equal((await post(agent, path, { ...sent, csrf: `${hidden['csrf']}x` })).status, 403, 'a wrong one')
        t.equal((await post(weak, path, sent)).status, 403, 'that of another browser')
        for (const site of ['cross-site', 'same-site'])
          t.equal((await post(agent, path, sent, { 'sec-fetch-site': site })).status, 403, site)
        const allowed = await post(agent, path, sent)
        t.ok((rejected ? [rejected] : [200, 303]).includes(allowed.status), `allowed: ${allowed.status}`)
        t.notOk(isSignIn(allowed))
      })
    }
  },
)

t.test('an administrator without a second factor sees how to set one up', async (t) => {
  t.equal(withoutFactor.status, 403)
  const html = await withoutFactor.text()
  t.match(html, 'href="/account/passkeys"')
  t.match(html, 'href="/account/one-time-codes"')
})

t.test('a second factor gets old, for the page and for its form', async (t) => {
  const prepared: [string, object][] = []
  const agent = await twoFactors()
  for (const sample of Object.values(samples)) {
    const { path, form } = await sample()
    if (form !== undefined) prepared.push([path, { ...hiddenIn(await open(agent, path)), ...form }])
  }
  const filled = await open(agent, '/users/invite')
  server.advance(601)
  t.ok(prepared.length > 5)
  for (const [path, sent] of prepared) {
    t.ok(isSignIn(await post(agent, path, sent)), `${path}: its form`)
    const page = await agent.send(root + path)
    t.ok(page.status === 200 || isSignIn(page), path)
  }
  t.ok(isSignIn(await stale.send(`${root}/users/invite`)))
  const typed = { ...hiddenIn(filled), email: 'dora@example.com', given_name: 'Dora' }
  const body = new URLSearchParams(typed)
  const again = pageOf(await agent.open(`${root}/users/invite`, { method: 'POST', body }))
  t.match(again.url, '/login')
  server.advance(30)
  const second = pageOf(await agent.submit(again, alice))
  const back = await agent.submit(second, { code: totp.generate({ timestamp: server.now() * 1000 }) })
  t.match(pageOf(back).url, `${root}/users/invite?done=kept&form=`, 'and leads back')
  t.match(pageOf(back).html, 'value="Dora"', 'to what was typed')
  t.equal(await store.find('userByLogin', 'dora@example.com'), undefined)
})

t.test('who is an administrator is read at every request', async (t) => {
  const agent = await fresh()
  t.equal((await agent.send(`${root}/users`)).status, 200)
  await addToGroup(store, admins, ids.bob, operator())
  t.equal((await other.send(`${root}/users`)).status, 200)
  await removeFromGroup(store, admins, ids.bob, operator())
  t.equal((await other.send(`${root}/users`)).status, 403)
})

t.test('white-box: an administrator who leaves in the middle of a form changes nothing', async (t) => {
  const direct = { ...store }
  const leave = () => removeFromGroup(direct, admins, ids.alice, operator())
  for (const [route, sample] of Object.entries(samples)) {
    const { path, form, rejected } = await sample()
    // It writes nothing.
    if (form === undefined || rejected !== undefined || route === '/errors') continue
    const agent = await fresh()
    const sent = { ...hiddenIn(await open(agent, path)), ...form }
    const keysBefore = await store.list('key')
    const response = await inBetween(t, store, leave, () => post(agent, path, sent))
    t.equal(response.status, 403, route)
    t.match(await response.text(), 'This page is for administrators', route)
    t.same(await store.list('key'), keysBefore, route)
    const { events } = await store.auditPage({ limit: 1 })
    t.equal(events[0]?.name, 'group-member-removed', `${route}: nothing else`)
    await addToGroup(store, admins, ids.alice, operator())
  }
})

/** The newest audit event about a user. */
async function lastOf(userId: string): Promise<AuditEvent | undefined> {
  return (await store.audit({ since: 0, userId, limit: 1 })).at(-1)
}

t.test('an invitation adds a user, and shows the link once', async (t) => {
  const agent = await fresh()
  const response = await send(agent, '/users/invite', {
    email: 'Carol@Example.test',
    given_name: 'Carol',
    family_name: '<Cooper>',
  })
  const html = await response.text()
  const [link = ''] = /http\S+\/link\?code=lyc_link_[\w-]{43}/.exec(html) ?? []
  t.equal((await new UserAgent(server.issuer).send(link)).status, 200)
  const user = await store.find('userByLogin', 'carol@example.test')
  t.equal(user?.claims['name'], 'Carol <Cooper>')
  const event = await lastOf(user?.id ?? '')
  t.match(event, { name: 'link-made', by: 'operator', facts: { actor: ids.alice } })
  t.match(event?.facts['request'], /^[\da-f-]{36}$/)
  const taken = await send(agent, '/users/invite', { email: 'carol@example.test' })
  t.equal(taken.status, 400)
  t.match(await taken.text(), 'Another user has this user name or email address.')
  const wrong = await send(agent, '/users/invite', { email: 'no address', given_name: 'Dora' })
  t.equal(wrong.status, 400)
  const shown = await wrong.text()
  t.match(shown, 'role="alert"')
  t.match(shown, 'value="Dora"', 'what was typed stays')
})

t.test('what cannot be undone needs the name to be typed', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const wrong = await send(agent, `/users/${id}/lock`, { confirm: 'someone else' })
  t.equal(wrong.status, 400)
  t.equal((await store.find('user', id))?.lockedAt, undefined)
  const { username = '' } = (await store.find('user', id)) ?? {}
  const locked = await send(agent, `/users/${id}/lock`, { confirm: ` ${username} ` })
  t.equal(locked.headers.get('location'), `/admin/users/${id}?done=user-locked`)
  t.ok((await store.find('user', id))?.lockedAt)
  t.match(await lastOf(id), { name: 'user-locked', by: 'operator', facts: { actor: ids.alice } })
  const key = failuresOf(id, 'all')
  await store.write(put(throttleKind, { key, failures: 7, expiresAt: server.now() + 60 }))
  const { html } = pageOf(await agent.open(`${root}/users/${id}`))
  t.match(html, '7 failed sign-ins are counted.')
  await send(agent, `/users/${id}/unlock`, {})
  t.equal((await store.find('user', id))?.lockedAt, undefined)
  t.equal(await store.find(throttleKind, key), undefined, 'failed sign-ins are forgotten')
  await send(agent, `/users/${id}/remove`, { confirm: username })
  t.equal(await store.find('user', id), undefined)
  for (const act of ['lock', 'remove']) {
    const own = await send(agent, `/users/${ids.alice}/${act}`, { confirm: 'alice' })
    t.equal(own.status, 409, `not oneself: ${act}`)
  }
  t.ok(await store.find('user', ids.alice))
})

t.test('the page of a user changes their groups', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const staff = await group('staff')
  await send(agent, `/users/${id}`, { join: ' STAFF ' })
  t.strictSame(
    (await groupsOf(store, id)).map(({ name }) => name),
    ['staff'],
  )
  t.match(await lastOf(id), { name: 'group-member-added', facts: { actor: ids.alice, group: staff.id } })
  t.match((await open(agent, `/users/${id}`)).html, 'staff')
  await send(agent, `/users/${id}`, { leave: staff.id })
  t.strictSame(await groupsOf(store, id), [])
  t.equal((await send(agent, `/users/${id}`, { join: 'no such group' })).status, 400)
})

t.test('users are found by name and address, and listed by pages', async (t) => {
  const agent = await fresh()
  for (let index = 0; index < 3; index += 1) await invited()
  const found = await open(agent, '/users?search=BOB')
  t.match(found.html, `/admin/users/${ids.bob}`)
  t.notMatch(found.html, `/admin/users/${ids.alice}`)
  const many = (await open(agent, '/users?search=BO')).html
  t.match(many, `/admin/users/${ids.bob}`, 'by the beginning of the name')
  t.match((await open(agent, '/users?search=%3Cscript%3E')).html, 'There is nothing here.')
  t.equal((await agent.send(`${root}/users?after=x`)).status, 400)
  t.equal((await agent.send(`${root}/users/user_none`)).status, 404)
})

t.test('an app is added once, with a secret that is shown once', async (t) => {
  const agent = await fresh()
  t.match((await open(agent, '/clients/add')).html, 'href="/admin/clients/add?kind=web"')
  const page = await open(agent, '/clients/add?kind=web')
  const form = { ...hiddenIn(page), ...webApp(), consent: 'skip', scope: 'openid' }
  const added = await (await post(agent, '/clients/add', form)).text()
  const [id = ''] = /client_[\w-]{22}/.exec(added) ?? []
  const [secret = ''] = /lyc_secret_[\w-]{43}|lyc_client_secret_[\w-]{43}|lyc_\w+_[\w-]{43}/.exec(added) ?? []
  const known = await store.find('client', id)
  t.match(known, { name: form.name, consent: 'skip', scope: ['openid'], origin: 'integration' })
  t.equal(known?.secretHash, hashSecret(secret))
  t.match((await store.audit({ since: 0, clientId: id, limit: 1 })).at(-1), {
    name: 'client-added',
    by: 'operator',
    facts: { actor: ids.alice },
  })
  const again = await post(agent, '/clients/add', form)
  t.equal(again.headers.get('location'), `/admin/clients/${id}?done=client-added`, 'once')
  const wrong = await send(agent, '/clients/add?kind=web', {
    name: 'Wrong',
    redirect_uris: 'http://app.example.test/',
  })
  t.equal(wrong.status, 400)
  const html = await wrong.text()
  t.match(html, 'must be an https or http loopback URI')
  t.match(html, 'value="Wrong"', 'what was typed stays')
  t.notMatch((await open(agent, `/clients/${id}`)).html, secret)
})

t.test('each kind of app is added as what it is', async (t) => {
  const added = async (kind: string, form: object) =>
    store.find('client', await client({ name: kind, ...form }, kind))
  const { origin: _, ...native } =
    (await added('native', { redirect_uris: 'http://127.0.0.1/callback' })) ?? {}
  t.match(native, { authenticationMethod: 'none', consent: 'always' })
  const machine = await added('machine', { scope: 'courses:read' })
  t.match(machine, { grantTypes: ['client_credentials'], scope: ['courses:read'] })
  t.ok(machine?.secretHash)
  const device = await added('device', {})
  t.match(device, { authenticationMethod: 'none', redirectUris: [] })
  t.match(device?.grantTypes[0], 'device_code')
  const api = await added('api', { resource: server.issuer })
  t.match(api, { origin: 'resource-server', introspects: [server.issuer] })
})

t.test('an app is changed, gets other secrets, and is found', async (t) => {
  const agent = await fresh()
  const id = await client()
  const before = await store.find('client', id)
  const changed = {
    name: 'Renamed Portal',
    redirect_uris: 'https://a.example.test/\nhttps://b.example.test/cb',
  }
  await send(agent, `/clients/${id}/edit`, changed)
  t.match(await store.find('client', id), {
    name: 'Renamed Portal',
    redirectUris: ['https://a.example.test/', 'https://b.example.test/cb'],
    secretHash: before?.secretHash,
  })
  t.match((await open(agent, '/clients?search=renamed%20PORT')).html, id)
  t.match((await open(agent, `/clients?search=${id}`)).html, 'Renamed Portal')
  t.notMatch((await open(agent, '/clients?only=registered')).html, id)
  t.notMatch((await open(agent, '/clients?only=unused')).html, id)
  await send(agent, `/clients/${id}/secret`, {})
  const rotated = await store.find('client', id)
  t.equal(rotated?.previousSecret?.hash, before?.secretHash)
  await send(agent, `/clients/${id}/leaked-secret`, { confirm: 'Renamed Portal' })
  t.equal((await store.find('client', id))?.previousSecret, undefined)
  await send(agent, `/clients/${id}/lock`, { confirm: 'Renamed Portal' })
  t.ok((await store.find('client', id))?.lockedAt)
})

t.test('the keys of an app are added, replaced by a URL and removed', async (t) => {
  const agent = await fresh()
  const id = await client()
  const keysOf = async () => {
    const { jwks } = ((await store.find('client', id))?.extra ?? {}) as { jwks?: { keys: PublicKey[] } }
    return jwks?.keys ?? []
  }
  const change = (form: object) => send(agent, `/clients/${id}/keys`, form)
  const first = publicKey()
  t.equal((await change({ add: first })).headers.get('location'), `/admin/clients/${id}?done=saved`)
  const [{ kid = '' } = {}] = await keysOf()
  t.match((await store.audit({ since: 0, clientId: id, limit: 10 })).at(-1), {
    name: 'client-changed',
    by: 'operator',
    facts: { actor: ids.alice, changed: /jwks/ },
  })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  for (const [form, text] of [
    [{ add: first }, `has a key with kid ${kid}`],
    [{ add: privateKey.export({ type: 'pkcs8', format: 'pem' }) }, 'has a private or symmetric key'],
    [{ add: '{}' }, 'is not a JWK set'],
    [{ remove: 'none' }, 'no key with this kid'],
    [{ remove: kid }, 'it is the only key'],
    [{ uri: 'http://app.example.test/keys' }, 'jwks_uri'],
  ] as const) {
    const response = await change(form)
    t.equal(response.status, 400, text)
    t.match(await response.text(), text)
  }
  t.equal((await keysOf()).length, 1)
  await change({
    add: JSON.stringify({
      ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }),
      kid: 'next',
    }),
  })
  await change({ remove: ` ${kid} ` })
  t.strictSame(
    (await keysOf()).map((key) => key.kid),
    ['next'],
  )
  const page = await open(agent, `/clients/${id}`)
  t.match(page.html, '<code>next</code> EdDSA')
  t.match(page.html, `/admin/clients/${id}/keys`)
  await change({ uri: 'https://app.example.test/keys' })
  t.strictSame(await keysOf(), [], 'the one replaces the other')
  t.match((await open(agent, `/clients/${id}`)).html, '<code>https://app.example.test/keys</code>')
  await change({ add: first })
  t.equal((await store.find('client', id))?.extra?.['jwks_uri'], undefined)
})

t.test('which groups may use an app is changed, and never opened by removing the last one', async (t) => {
  const agent = await fresh()
  const id = await client()
  const teachers = await group(newName('teachers'))
  await send(agent, `/clients/${id}`, { allow: teachers.name.toUpperCase() })
  t.strictSame((await store.find('client', id))?.extra?.['allowed_groups'], [teachers.id])
  const last = await send(agent, `/clients/${id}`, { deny: teachers.id })
  t.equal(last.status, 400)
  t.strictSame((await store.find('client', id))?.extra?.['allowed_groups'], [teachers.id])
  await send(agent, `/clients/${id}`, { everyone: '1' })
  t.equal((await store.find('client', id))?.extra?.['allowed_groups'], undefined)
})

t.test('a group gets members and another name, and the last administrator stays', async (t) => {
  const agent = await fresh()
  const parent = await group(newName('parent'))
  const member = await invited()
  const { username = '' } = (await store.find('user', member)) ?? {}
  const { id } = await group(newName('child'))
  await send(agent, `/groups/${id}`, { join: username })
  await send(agent, `/groups/${id}`, { name: 'Tutors', description: 'They help', parent: parent.name })
  t.strictSame(
    (await groupsOf(store, member)).map(({ name }) => name).toSorted(),
    ['Tutors', parent.name].toSorted(),
  )
  t.match((await open(agent, '/groups?search=tut')).html, 'They help')
  await send(agent, `/groups/${id}`, { leave: member })
  t.strictSame(await groupsOf(store, member), [])
  for (const [path, form] of [
    [`/groups/${admins.id}`, { leave: ids.alice }],
    [`/users/${ids.alice}`, { leave: admins.id }],
    [`/groups/${admins.id}/delete`, { confirm: 'Admins' }],
    [`/groups/${admins.id}`, { name: 'Others' }],
  ] as const) {
    const response = await send(agent, path, form)
    t.equal(response.status, 409, path)
    t.match(await response.text(), 'no administrator would be left')
  }
})

t.test('the last passkey of a last administrator without a password stays', async (t) => {
  const agent = await fresh()
  const known = (await store.find('user', ids.alice)) as User
  const { passwordHash: _, ...without } = known
  await store.transact('user', ids.alice, () => accept(undefined, update('user', without)))
  await store.write(put(passkeyKind, { ...passkey, userId: ids.alice }))
  const path = `/users/${ids.alice}/remove-passkeys`
  const response = await send(agent, path, { confirm: 'alice' })
  t.equal(response.status, 409)
  t.match(await response.text(), 'no administrator would be left')
  t.equal((await store.listOf(passkeyKind, ids.alice)).length, 1)
  await store.transact('user', ids.alice, () => accept(undefined, update('user', known)))
  await send(agent, path, { confirm: 'alice' })
  t.strictSame(await store.listOf(passkeyKind, ids.alice), [])
  strongUntil = 0 // The sessions have ended.
})

/** The newest audit event with this name. */
async function lastEvent(name: string): Promise<AuditEvent | undefined> {
  return (await store.audit({ since: 0, limit: 500 })).findLast((event) => event.name === name)
}

t.test('the overview shows what doctor finds inside, and the ages of the keys', async (t) => {
  const agent = await fresh()
  const { html } = await open(agent, '')
  t.match(html, 'rate limits: are off: one client can send any number of requests')
  t.match(html, '<code>LYCHGATE_RATE_LIMITS=on</code>')
  t.notMatch(html, 'settings: valid', 'nothing that is in order')
  t.match(html, 'Not checked here: whether the database is sound and fast')
  t.match(html, 'href="/admin/keys"')
  for (const name of ['ES256', 'EdDSA', 'RS256']) t.match(html, name)
})

t.test('the overview shows findings about apps, which no page waits for', async (t) => {
  const another = await startServer(t, { admin: { secondFactor: 'off' } })
  const mine = another.deps.store
  const found = await mine.find('userByLogin', 'alice')
  const context = () => ({ by: 'operator', at: another.deps.clock() }) as const
  const created = await changeGroups(mine, (groups) =>
    createGroup(groups, { name: 'Admins' }, systemRandom(16), context()),
  )
  await addToGroup(mine, created, found?.id ?? '', context())
  const agent = new UserAgent(another.issuer)
  const signIn = pageOf(await agent.open(`${another.issuer}/admin`))
  t.match(pageOf(await agent.submit(signIn, alice)).html, 'The apps are being checked')
  const lax = { redirectUris: ['https://app.example.test/cb'], pkce: 'optional' } as const
  const { id } = await integrate(another, lax)
  const short = { redirectUris: ['myapp:/cb'], description: { any_redirect_scheme: true } }
  const { id: shared } = await integrate(another, short)
  const overview = async () => pageOf(await agent.open(`${another.issuer}/admin`)).html
  let html = await overview()
  while (!html.includes('The apps were checked')) html = await overview()
  t.notMatch(html, id, 'not yet read again')
  another.advance(300)
  await overview()
  html = await overview()
  while (!html.includes(id)) html = await overview()
  t.match(html, 'PKCE is optional for a client')
  t.match(html, `${shared}: myapp`, 'a scheme that another app can take')
  t.match(html, `${id} (0 of 0 recent requests had one)`)
  t.notMatch(html, `lychgate client set ${id} --pkce required`, 'its app may send none')
})

t.test('keys get successors, which sign later or at once', async (t) => {
  const agent = await fresh()
  const before = await keyOf('RS256', 'active')
  await send(agent, '/keys/rotate', { algorithm: 'RS256' })
  const waiting = await keyOf('RS256', 'waiting')
  t.equal((await keyOf('RS256', 'active'))?.id, before?.id)
  t.match(await lastEvent('key-made'), { by: 'operator', facts: { actor: ids.alice, key: waiting?.id } })
  t.match((await lastEvent('key-made'))?.facts['request'], /^[\da-f-]{36}$/)
  await send(agent, '/keys/rotate', { algorithm: 'RS256', now: '1' })
  t.equal((await keyOf('RS256', 'active'))?.id, waiting?.id, 'the one that waited')
  const { html } = await open(agent, '/keys')
  for (const key of [before, waiting]) t.match(html, `>${key?.id}</code>`)
  t.match(html, 'verifies only, until')
  t.equal((await send(agent, '/keys/rotate', { algorithm: 'none' })).status, 400)
})

t.test('a key is retired once, and its page says what ends with it', async (t) => {
  const agent = await fresh()
  const key = await keyOf('ES256', 'active')
  const path = `/keys/${key?.id}/retire`
  const page = await open(agent, path)
  t.match(page.html, 'ID Tokens that it signed become invalid. The last of them would have expired')
  t.notMatch(page.html, 'JWT access tokens that it signed', 'no API takes them')
  t.match(page.html, 'With one signed by this key, sign-in fails')
  t.match(page.html, 'refresh tokens stay valid')
  const hint = await keys.sign('ES256', 'JWT', { iss: server.issuer, sub: ids.alice, aud: 'an-app' })
  const isHintUsed = async () => {
    const response = await fetch(`${server.issuer}/oauth/logout?id_token_hint=${hint}`)
    return response.headers.get('x-request-id') === null
  }
  t.equal(await isHintUsed(), true)
  t.match(page.html, 'Another key takes its place at once.')
  const form = { ...hiddenIn(page), confirm: key?.id.slice(0, 8) }
  t.equal((await post(agent, path, { ...form, confirm: 'ES256' })).status, 400)
  t.equal((await keyOf('ES256', 'active'))?.id, key?.id)
  t.equal((await post(agent, path, form)).headers.get('location'), '/admin/keys?done=key-retired')
  const ring = await store.list('key')
  t.ok(ring.find(({ id }) => id === key?.id)?.retiredAt)
  t.match(await lastEvent('key-retired'), { by: 'operator', facts: { actor: ids.alice, key: key?.id } })
  t.equal((await post(agent, path, form)).headers.get('location'), '/admin/keys?done=gone', 'twice')
  t.strictSame(await store.list('key'), ring, 'its successor stays')
  t.equal(await isHintUsed(), false, 'as its page said')
  t.notMatch((await open(agent, '/keys')).html, path)
  t.equal((await agent.send(`${root}/keys/none/retire`)).status, 404)
  const waiting = await keyOf('ES256', 'waiting')
  if (waiting === undefined) await send(agent, '/keys/rotate', { algorithm: 'ES256' })
  const unused = (await keyOf('ES256', 'waiting'))?.id
  t.match((await open(agent, `/keys/${unused}/retire`)).html, 'Nothing ends: it has not been used yet.')
  t.match((await open(agent, '/keys/1/retire')).html, 'users have to sign in to their apps again')
})

t.test('white-box: the page of a key says until when what it signed or sealed would be valid', async (t) => {
  const { lifetimes, keys: settings } = server.deps.config
  const { reloadSeconds } = settings
  const key = (id: string, activeAt: number, kind: StoredKey['kind'] = 'signing') =>
    ({
      id,
      kind,
      algorithm: kind === 'signing' ? 'RS256' : 'HS256',
      createdAt: activeAt,
      activeAt,
    }) as StoredKey
  const loss = (ring: readonly StoredKey[], now: number, more: Partial<Issued> = {}) =>
    lossOf(ring[0] as StoredKey, ring, now, { lifetimes, reloadSeconds, resources: [], ...more }).map(
      (text) => [text.key.replace('admin.keys.retire.', ''), ...Object.values(text.with ?? {})],
    )
  const signing = [key('old', 1000), key('new', 9000)]
  const jwt = [
    { tokenFormat: 'jwt', accessTokenSeconds: 20_000 },
    { tokenFormat: 'opaque', accessTokenSeconds: 90_000 },
  ] as const
  const [idTokens, accessTokens] = loss(signing, 8000, { resources: jwt })
  t.strictSame(idTokens, ['idTokens', { moment: 8000 + lifetimes.idTokenSeconds }])
  t.strictSame(accessTokens, ['jwt', { moment: 28_000 }], 'one that is issued now')
  const later = loss(signing, 25_000, { resources: jwt })
  t.strictSame(later[0], ['idTokensOver'])
  t.strictSame(later[1], ['jwt', { moment: 29_000 }], 'one that was issued until its successor came')
  t.equal(loss(signing, 29_000, { resources: jwt })[1]?.[0], 'hints')
  const handles = [key('1', 1000, 'handle'), key('2', 9000, 'handle')]
  const names = (now: number) => loss(handles, now, { activeGrants: 7 }).map(([name]) => name)
  t.strictSame(names(8000), ['handle', 'grants', 'browsers', 'sealedStay', 'successor'])
  t.strictSame(loss(handles, 9500)[1], ['handleOld', { moment: 9000 }])
})

t.test('an address is marked as verified, unless another one came since', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const { email = '' } = (await store.find('user', id)) ?? {}
  t.match((await open(agent, `/users/${id}`)).html, `name="verify" value="${email}"`)
  t.equal((await send(agent, `/users/${id}`, { verify: 'old@example.test' })).status, 409)
  const claims = async () => (await store.find('user', id))?.claims
  t.equal((await claims())?.['email_verified'], false)
  t.equal((await send(agent, `/users/${id}`, { verify: email })).status, 303)
  t.equal((await claims())?.['email_verified'], true)
  t.match(await lastOf(id), { name: 'user-changed', by: 'operator', facts: { actor: ids.alice } })
  t.notMatch((await open(agent, `/users/${id}`)).html, 'name="verify"')
})

t.test('the profile of a user is changed, and the user signs in by the new name', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const other = await store.find('user', await invited())
  const path = `/users/${id}/edit`
  const { username = '', email } = (await store.find('user', id)) ?? {}
  const renamed = `${username}-renamed`
  const typed = { username: ` ${renamed.toUpperCase()}`, email, given_name: 'Ada', family_name: 'Byron' }
  t.equal((await send(agent, path, typed)).headers.get('location'), `/admin/users/${id}?done=saved`)
  t.equal(await subOf(renamed), id)
  t.equal(await subOf(username), '', 'the old name is free')
  t.match((await store.find('user', id))?.claims, { preferred_username: renamed, name: 'Ada Byron' })
  const { facts } = (await lastOf(id)) ?? {}
  t.strictSame(String(facts?.['changed']).split(' ').toSorted(), [
    'family_name',
    'given_name',
    'name',
    'username',
  ])
  for (const wrong of [{ username: other?.username }, { email: other?.email }]) {
    const html = await (await send(agent, path, { ...typed, username: renamed, ...wrong })).text()
    t.match(html, 'Another user has this user name or email address.')
  }
  t.equal((await send(agent, path, { ...typed, username: 'someone@else.test' })).status, 400)
  const bad = await send(agent, path, { ...typed, username: renamed, website: 'javascript:alert(1)' })
  t.equal(bad.status, 400)
  t.match(await bad.text(), 'id="website-fault"')
  t.match(await store.find('user', id), { username: renamed, email })
})

t.test('a new address is verified only if the form says so of it', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const saved = async (typed: object) => {
    t.equal((await send(agent, `/users/${id}/edit`, typed)).status, 303)
    return (await store.find('user', id))?.claims
  }
  const email = `${id.slice(-8).toLowerCase().replaceAll(/[_-]/g, '0')}@example.test`
  t.match(await saved({ email, email_verified: '1' }), { email, email_verified: true })
  t.match(await saved({ email, email_verified: '1' }), { email_verified: true })
  // The box was ticked for the address before.
  t.match(await saved({ email: `a${email}`, email_verified: '1' }), { email_verified: false })
  t.match(await saved({ email: `b${email}`, email_verified: '1' }), { email_verified: true })
  t.match(await saved({ email: `b${email}` }), { email_verified: false })
  t.notHas(await saved({ email: '', email_verified: '1' }), { email_verified: true })
})

t.test('a new password ends the sessions of a user, and is in no response', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const path = `/users/${id}/password`
  for (const [password, repeated] of [
    ['short', 'short'],
    ['a new and long password', 'another long password'],
  ]) {
    const html = await (await send(agent, path, { password, repeated })).text()
    t.match(html, 'role="alert"')
    t.notMatch(html, password)
  }
  const password = 'a new and long password'
  t.equal((await send(agent, path, { password, repeated: password })).status, 303)
  t.match(await lastOf(id), { name: 'user-password-changed', facts: { actor: ids.alice } })
  const user = { username: (await store.find('user', id))?.username ?? '', password }
  const own = new UserAgent(server.issuer)
  await own.submit(pageOf(await own.open(`${server.issuer}/account`)), user)
  t.equal((await own.send(`${server.issuer}/account`)).status, 200, 'the user signs in with it')
  t.equal((await send(agent, path, { password, repeated: password })).status, 303)
  t.ok(isSignIn(await own.send(`${server.issuer}/account`)), 'and is signed out by the next one')
})

t.test('the log is filtered, followed without a script, and downloaded', async (t) => {
  const agent = await fresh()
  const id = await invited()
  const page = await open(agent, `/audit?user=${id}&event=user-invited`)
  t.match(page.html, '<strong>user-invited</strong>')
  t.notMatch(page.html, '<strong>link-made</strong>')
  t.equal(page.headers.get('refresh'), null)
  t.equal((await open(agent, '/audit?follow=1')).headers.get('refresh'), '5')
  const file = await agent.send(`${root}/audit/export?user=${id}`)
  t.equal(file.headers.get('content-disposition'), 'attachment; filename="audit.jsonl"')
  const events = (await file.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  t.strictSame(
    events.map(({ event }) => event),
    ['link-made', 'user-invited'],
  )
  t.match(events[1], { sub: id, actor: ids.alice, by: 'operator' })
  // The events are of now, and the field has minutes.
  const [at] = events.map((event) => String(event['at']))
  const minute = at?.slice(0, 16) ?? ''
  for (const [query, isShown] of [
    [`since=${minute}&until=${minute}`, true],
    ['until=2001-01-01T00:00', false],
    ['since=2999-01-01T00:00', false],
    ['since=yesterday', true],
  ] as const) {
    const { html } = await open(agent, `/audit?user=${id}&${query}`)
    t.equal(html.includes('<strong>user-invited</strong>'), isShown, query)
  }
  const csv = await agent.send(`${root}/audit/export?user=${id}&format=csv&event=user-invited`)
  t.equal(csv.headers.get('content-disposition'), 'attachment; filename="audit.csv"')
  const [head, line = '', end] = (await csv.text()).split('\r\n')
  t.strictSame([head, end], ['at,event,by,from,sub,client_id,facts', ''])
  t.match(
    line,
    new RegExp(`^"[\\dTZ:.-]+","user-invited","operator","[^"]*","${id}","","\\{""actor"":""${ids.alice}""`),
  )
  const { clientId = '' } = (await lastEvent('client-added')) ?? {}
  const { name = '' } = (await store.find('client', clientId)) ?? {}
  t.match(
    (await open(agent, `/audit?client=${name.toUpperCase()}`)).html,
    `<bdi title="${clientId}">${name}</bdi>`,
  )
  const all = await open(agent, '/audit')
  const [, next = ''] = /href="\/admin\/audit(\?after=\w+)"/.exec(all.html) ?? []
  t.notMatch((await open(agent, `/audit${next}`)).html, id, 'older ones')
})

t.test('the settings are shown with where they come from, and without secrets', async (t) => {
  const { html } = await open(await fresh(), '/settings')
  t.match(html, '<code>lifetimes.codeSeconds</code> <code class="issuer">60</code>')
  t.match(html, /0\.1\.0 \((?:commit |outside git)/)
  const { secret } = server.deps.config
  t.ok(secret)
  t.notMatch(html, String(secret))
  t.equal((await other.send(`${root}/settings`)).status, 403)
})

t.test('an error is explained by its request id, and a token by itself', async (t) => {
  const agent = await fresh()
  const rejected = await fetch(`${server.issuer}/api/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams(),
  })
  const id = rejected.headers.get('x-request-id') ?? ''
  // Rejections are stored after the response.
  while ((await store.find('rejection', id)) === undefined) await nextTurn()
  t.match((await open(agent, '/errors')).html, `/admin/errors?request=${id}`)
  t.match((await open(agent, `/errors?request=${id}`)).html, 'was rejected with 400 invalid_request')
  const byForm = await (await send(agent, '/errors', { text: ` ${id} ` })).text()
  t.match(byForm, 'was rejected with 400 invalid_request')
  const token = await (await send(agent, '/errors', { text: 'lyc_access_none' })).text()
  t.match(token, 'unknown token, not active')
  t.equal((await send(agent, '/errors', { text: id.replace(/^./, '0').replace(/.$/, '0') })).status, 400)
})

t.test('a wrong password is in a list of its own, and not among the errors of apps', async (t) => {
  const agent = await fresh()
  const visitor = new UserAgent(server.issuer)
  const login = pageOf(await visitor.open(`${server.issuer}/account`))
  const failed = pageOf(await visitor.submit(login, { username: 'alice', password: 'not hers' }))
  const id = failed.headers.get('x-request-id') ?? ''
  while ((await store.find('rejection', id)) === undefined) await nextTurn()
  for (const path of ['/errors', '']) t.notMatch((await open(agent, path)).html, id)
  const signIns = (await open(agent, '/errors?only=sign-ins')).html
  t.match(signIns, `/admin/errors?request=${id}`)
  t.notMatch(signIns, 'oauth/token', 'and nothing else is there')
})

t.test('the account page of an administrator leads here', async (t) => {
  const agent = await fresh()
  const account = async (of: UserAgent) => pageOf(await of.open(`${server.issuer}/account`)).html
  t.match(await account(agent), 'href="/admin"')
  t.notMatch(await account(other), 'href="/admin"')
})

t.test('admin.pages off removes them', async (t) => {
  const off = await startServer(t, { admin: { pages: 'off' } })
  t.equal((await fetch(`${off.issuer}/admin`)).status, 404)
})

t.test('the form of an upstream is filled in for a well-known server, and for no other', async (t) => {
  const agent = await fresh()
  const open = async (query: string) => pageOf(await agent.open(`${root}/add-upstream${query}`))
  const plain = await open('')
  t.match(plain.html, /name="issuer"[^>]* value=""/)
  for (const [id, { name, issuer, advice, members }] of Object.entries(upstreamPresets)) {
    t.match(plain.html, `href="/admin/add-upstream?preset=${id}">${name}</a>`)
    const { html } = await open(`?preset=${id}`)
    t.match(html, `value="${issuer}"`)
    t.match(html, `value="${name}"`)
    t.match(html, `lang="en" dir="ltr">${advice}</p>`)
    for (const value of Object.values(members ?? {})) t.match(html, `value="${value}"`)
  }
  for (const id of ['github', 'constructor', '__proto__', ''])
    t.match((await open(`?preset=${id}`)).html, /name="issuer"[^>]* value=""/, id)
})
