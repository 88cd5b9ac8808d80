/**
 * Every form of every page is submitted as a browser would: the server never rejects what its own page sends. Pages are
 * found by following links and forms; a form of a view that is not reached fails the test.
 */
import { generateKeyPairSync } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { accept, put, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import type { User } from '../../src/domain/model.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { type StoredUpstream, upstreamKind } from '../../src/users/rules/upstream.ts'
import { insertUpstreamLink } from '../../src/users/rules/upstream-link.ts'
import { Authenticator, askedOf } from '../helpers/authenticator.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { addDeviceClient, startDevice } from '../helpers/device.ts'
import { authorizationUrl, obtainTokens, register, type TestClient } from '../helpers/flow.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import {
  type Control,
  decode,
  everyMark,
  formsTowardClients,
  formsTowardUpstreams,
  markViews,
  type PageForm,
} from '../helpers/page-forms.ts'
import { walkPages } from '../helpers/page-walk.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { startStandInUpstream, upstreamOf } from '../helpers/stand-in-upstream.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

markViews()
const mailbox = await startMailbox(t)
const own = { visible: 'user', editable: 'user' } as const
const upstreams = [await startStandInUpstream(t), await startStandInUpstream(t)].map(({ issuer }, at) =>
  upstreamOf(t, issuer, { id: `work-${at}`, name: `Work ${at}` }),
)
const server = await startServer(t, {
  mode: 'dev',
  upstreams,
  mail: { url: mailbox.url, from: 'id@example.test' },
  accounts: {
    attributes: [
      { name: 'room', type: 'string', ...own },
      { name: 'house', type: 'choice', values: ['north', 'south'], ...own },
      { name: 'tutor', type: 'boolean', visible: 'administrator', editable: 'administrator' },
    ],
  },
})
const { store, keys, clock } = server.deps
const stored = { ...upstreams[0], id: 'store', issuer: 'https://login.example.com', enabled: false }
await store.write(put(upstreamKind, { ...stored, createdAt: 1, updatedAt: 1 } as StoredUpstream))
const operator = () => ({ by: 'operator', at: clock() }) as const
const idOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const to = (path: string) => server.issuer + path
const ids = { alice: await idOf('alice'), bob: await idOf('bob') }
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))

await addToGroup(store, await group('Admins'), ids.alice, operator())
const staff = await group('Staff')
await addToGroup(store, staff, ids.bob, operator())
const goodbye = 'https://portal.example/goodbye'
const portal = await integrate(server, { consent: 'always', postLogoutRedirectUris: [goodbye] })
const closed = await integrate(server, { name: 'Closed', description: { allowed_groups: [staff.id] } })
const soon = { extra: { required_sign_in: 'passkey from 2999-01-01' } }
const vault = await integrate(server, { name: 'Vault' }, soon)
const registered = await register(server)
for (const client of [portal, portal, registered]) await obtainTokens(server, client)
// Its page offers to let it leave PKCE out.
const old = await integrate(server, { name: 'Old app' })
await fetch(authorizationUrl(server, old, { code_challenge: undefined }), { redirect: 'manual' })
while (!(await store.rejections({ limit: 100 })).some(({ row }) => row.client === old.id))
  await server.maintain()
const tv = await addDeviceClient(server)
const { user_code: userCode } = await startDevice(server, tv, { scope: 'openid profile courses:read' })

/** Signs in on the account page. */
async function enter(user: typeof alice): Promise<UserAgent> {
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(`${server.issuer}/account`)), user)
  return agent
}
const authenticator = new Authenticator(server.issuer)
const ofAlice = await enter(alice)
for (const { issuer, id } of upstreams.slice(0, 1))
  await store.write(...insertUpstreamLink({ userId: ids.alice, issuer, sub: 'alice' }, id, operator()))
const passkeys = pageOf(await ofAlice.open(`${server.issuer}/account/passkeys`))
const credential = JSON.stringify(authenticator.create(askedOf(passkeys)))
const creation = passkeys.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))
await ofAlice.submit(passkeys, { credential }, creation)

// Of a development server, an unverified address, and one-time codes.
const totp = new TOTP()
await store.transact('user', ids.bob, (user) =>
  accept(undefined, update('user', { ...(user as User), seeded: true, claims: { email_verified: false } })),
)
await store.write(
  put(secondFactorKind, {
    userId: ids.bob,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), ids.bob, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }),
)
const halfway = new UserAgent(server.issuer)
const second = pageOf(await halfway.open(authorizationUrl(server, portal)))
const secondUrl = pageOf(await halfway.submit(second, bob)).url
const code = () => totp.generate({ timestamp: server.now() * 1000 })
const ofBob = new UserAgent(server.issuer)
const asked = pageOf(await ofBob.submit(pageOf(await ofBob.open(to('/account'))), bob))
await ofBob.submit(asked, { code: code() })
// A code is used once.
server.advance(30)

// Has codes, and is asked to set up a passkey.
const enrolling = new UserAgent(server.issuer)
const first = pageOf(await enrolling.open(authorizationUrl(server, vault)))
const enrol = pageOf(await enrolling.submit(pageOf(await enrolling.submit(first, bob)), { code: code() }))
server.advance(30)

// A run of the client on the development pages, after its callback.
const runner = await enter(alice)
const begun = await runner.open(to('/_dev/try'), {
  method: 'POST',
  body: new URLSearchParams({ user: 'alice' }),
})
const run = pageOf(begun).url.replace(/#.*/, '')
const body = new URLSearchParams({ step: 'discover', rest: '1' })
const ready = pageOf(await runner.open(run, { method: 'POST', body }))
const [, away = ''] = /<a class="button primary" href="([^"]+)"/.exec(ready.html) ?? []
const callback = await runner.submit(pageOf(await runner.open(decode(away))), { decision: 'approve' })
if (callback.at === 'redirect') await new UserAgent(callback.location.origin).open(callback.location.href)

const stranger = (path: string) => ({ of: 'a stranger', agent: new UserAgent(server.issuer), url: to(path) })
const ask = (client: TestClient, fields = {}) => {
  const url = authorizationUrl(server, client, { scope: 'openid profile courses:read', ...fields })
  return url.slice(server.issuer.length)
}
const starts = [
  { of: 'bob', agent: enrolling, url: enrol.url },
  ...[
    '/',
    '/account',
    '/oauth/logout',
    ask(portal),
    ask(portal, { response_mode: 'form_post', prompt: 'none' }),
  ].map(stranger),
  { of: 'bob', agent: halfway, url: secondUrl },
  ...[
    '/account',
    '/admin',
    `/device?user_code=${userCode}`,
    `/oauth/logout?${new URLSearchParams({ client_id: portal.id, post_logout_redirect_uri: goodbye })}`,
    ask(portal),
    ask(closed),
    ask(portal, { prompt: 'select_account' }),
  ].map((path) => ({ of: 'alice', agent: ofAlice, url: to(path) })),
  { of: 'alice', agent: runner, url: run },
  { of: 'bob', agent: ofBob, url: to('/account') },
]

/** What a user types. */
function type({ name, attributes, label }: Control, form: PageForm, { html }: Page): string {
  if (name === 'credential') {
    const [request, create] = ['data-request', 'data-create'].map((key) => form.attributes.get(key))
    return JSON.stringify(create ? authenticator.create(create) : authenticator.get(request ?? ''))
  }
  const completes = attributes.get('autocomplete')
  if (completes === 'new-password') return 'a new and long password'
  if (completes === 'current-password') return alice.password
  if (completes === 'one-time-code') {
    const [, secret] = /<code>([A-Z2-7 ]{32,})<\/code>/.exec(html) ?? []
    const app = secret ? new TOTP({ secret: Secret.fromBase32(secret.replaceAll(' ', '')) }) : totp
    return app.generate({ timestamp: server.now() * 1000 })
  }
  const [, wanted] = /<bdi>([^<]*)<\/bdi>/.exec(label) ?? []
  if (wanted !== undefined) return decode(wanted)
  return texts[name] ?? 'some text'
}

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const texts: Readonly<Record<string, string>> = {
  username: alice.username,
  user_code: userCode,
  email: 'new@example.test',
  redirect_uris: 'https://app.example.test/callback',
  add: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  join: 'Staff',
  list: 'listed@example.test',
  group: 'Staff',
  allow: 'Staff',
}

t.test('the server accepts what the forms of its pages send', async (t) => {
  const { marks, towardClients, submissions, faults } = await walkPages({ server, mailbox, starts, type })
  t.comment(`${submissions} submissions`)
  t.strictSame(faults, [])
  t.strictSame(
    everyMark().filter((mark) => !marks.has(mark)),
    [],
    'every form of every view was submitted',
  )
  // The choice of a language leads back to the page.
  t.strictSame(
    [...towardClients].toSorted(),
    [...formsTowardClients, ...formsTowardUpstreams, 'layout.eta 1'].toSorted(),
  )
})
