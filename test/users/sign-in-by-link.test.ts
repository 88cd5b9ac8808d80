/** Links by which users set a passkey or a password, over the wire: they end signed in, and get around no other factor. */
import { TOTP } from 'otpauth'
import t from 'tap'
import { insert, put, removeUser, update } from '../../src/domain/decision.ts'
import type { OneTimeLink, User } from '../../src/domain/model.ts'
import { groupsOf } from '../../src/users/groups.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { Authenticator, askedOf } from '../helpers/authenticator.ts'
import { ask, integrate, pageOf, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { claimsOf, exchange, type TestClient, type Tokens } from '../helpers/flow.ts'
import { alice, startServer, type TestServer } from '../helpers/server.ts'
import { type Form, type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const { store, random, keys } = server.deps
const password = 'a password nobody else has'
const portal = await integrate(server, { consent: 'skip' })
const vault = await integrate(server, { consent: 'skip' }, { extra: { required_sign_in: 'passkey' } })

type Recipient = Pick<OneTimeLink, 'purpose' | 'userId' | 'email'>
const give = async (recipient: Recipient, { deps }: TestServer = server) =>
  (await makeLink(deps, recipient, { by: 'operator', at: server.now() })).url

async function add(username: string, members: Partial<User> = {}): Promise<User> {
  const email = `${username}@example.test`
  const user = { ...createUser({ username, email }, random(16), server.now()), ...members }
  await store.write(insert('user', user))
  return user
}

async function userOf({ id }: Pick<User, 'id'>): Promise<User> {
  const user = await store.find('user', id)
  if (user === undefined) throw new Error('the user is there')
  return user
}
const passkeysOf = ({ id }: User) => store.listOf(passkeyKind, id)
const problemOf = ({ html }: Page) => /id="problem" role="alert">([^<]*)</.exec(html)?.[1]
const credentialForm = ({ forms }: Page): Form | undefined =>
  forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))

/** Sets a passkey of the device on the page of a link. */
const setPasskey = (agent: UserAgent, page: Page, device: Authenticator, fields = {}): Promise<Landing> =>
  agent.submit(page, { credential: JSON.stringify(device.create(askedOf(page))), ...fields })

/** Signs in with the passkey of the device on the sign-in page. */
const usePasskey = (agent: UserAgent, page: Page, device: Authenticator): Promise<Landing> =>
  agent.submit(page, { credential: JSON.stringify(device.get(askedOf(page))) }, credentialForm(page))

const claimsAt = async (client: TestClient, landing: Landing) =>
  claimsOf(
    ((await (await exchange(server, client, sentAway(landing)['code'] ?? '')).json()) as Tokens).id_token,
  )

const giveCodes = async ({ id: userId }: User, totp = new TOTP()) => {
  const sealedSecret = keys.seal(Buffer.from(totp.secret.bytes), userId, secondFactorKind)
  const times = { createdAt: server.now(), confirmedAt: server.now() }
  await store.write(put(secondFactorKind, { userId, sealedSecret, recoveryHashes: [], ...times }))
  return () => totp.generate({ timestamp: server.now() * 1000 })
}

t.test('an invited user creates a passkey, and is signed in without a password', async (t) => {
  const carol = await add('carol')
  const url = await give({ purpose: 'invitation', userId: carol.id })
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(url))
  t.match(page.html, 'Continue with a passkey')
  const { user, excludeCredentials } = JSON.parse(askedOf(page))
  t.match(user, { id: Buffer.from(carol.id).toString('base64url'), name: 'carol' })
  t.strictSame(excludeCredentials, [])
  const device = new Authenticator(server.issuer)
  const landing = await setPasskey(agent, page, device, { given_name: 'Carol', family_name: 'Cooper' })
  t.match(pageOf(landing).url, `${server.issuer}/account?done=passkey-added`)
  const after = await userOf(carol)
  t.equal(after.passwordHash, undefined)
  t.match(after.claims, { name: 'Carol Cooper', email_verified: false })
  t.match(await passkeysOf(carol), [{ userId: carol.id, name: 'Passkey' }])
  t.match(await claimsAt(vault, await ask(server, vault, {}, agent)), {
    sub: carol.id,
    acr: 'phr',
    amr: ['pop', 'user', 'mfa'],
  })
  t.equal(pageOf(await agent.open(url)).status, 404, 'the link works once')
  const events = await store.audit({ since: 0, userId: carol.id, limit: 10 })
  t.match(events.slice(0, 3), [
    { name: 'link-made' },
    { name: 'passkey-added', by: 'user', facts: { name: 'Passkey', link: 'invitation' } },
    { name: 'sign-in', by: 'user', facts: { methods: 'pop user mfa', link: 'invitation' } },
  ])
})

t.test('a link that was sent by email is worth a password at most', async (t) => {
  const dora = await add('dora')
  const { id: userId, email = '' } = dora
  const agent = new UserAgent(server.issuer)
  const device = new Authenticator(server.issuer)
  const page = pageOf(await agent.open(await give({ purpose: 'invitation', userId, email })))
  t.match(pageOf(await setPasskey(agent, page, device)).url, '/account?done=passkey-added')
  t.equal((await userOf(dora)).claims['email_verified'], true)
  const weak = await claimsAt(portal, await ask(server, portal, {}, agent))
  t.match(weak, { sub: userId })
  t.equal(weak['acr'], undefined)
  const login = pageOf(await ask(server, vault, {}, agent))
  t.equal(title(login), 'Confirm that it is you', 'where more is required the passkey is asked for')
  t.match(await claimsAt(vault, await usePasskey(agent, login, device)), { sub: userId, acr: 'phr' })
  const silent = await add('silent')
  const other = new UserAgent(server.issuer)
  const reset = await give({ purpose: 'password-reset', userId: silent.id, email: silent.email ?? '' })
  await other.submit(pageOf(await other.open(reset)), { password, repeated: password })
  const claims = await claimsAt(portal, await ask(server, portal, {}, other))
  t.strictSame(claims['amr'], ['pwd'])
  t.equal(title(pageOf(await ask(server, vault, {}, other))), 'Set up a passkey')
})

t.test(
  'a new passkey takes the place of the forgotten password, and ends what a new password ends',
  async (t) => {
    const user = await store.find('userByLogin', alice.username)
    if (user === undefined) throw new Error('alice is there')
    const elsewhere = await signedIn(server, portal)
    const { id: userId } = user
    const other = await give({ purpose: 'password-reset', userId })
    const agent = new UserAgent(server.issuer)
    const device = new Authenticator(server.issuer)
    const page = pageOf(await agent.open(await give({ purpose: 'password-reset', userId })))
    t.match(page.html, 'A passkey replaces your password')
    await setPasskey(agent, page, device)
    t.equal((await userOf(user)).passwordHash, undefined)
    t.equal((await store.listOf('session', userId)).length, 1, 'the one that began here')
    t.equal(title(pageOf(await ask(server, portal, {}, elsewhere))), 'Sign in')
    t.equal(pageOf(await agent.open(other)).status, 404, 'nor does another link work')
    const [event] = await store.audit({ since: 0, userId, name: 'passkey-added', limit: 9 })
    t.match(event?.facts, { link: 'password-reset', replaced: 'password' })

    const browser = new UserAgent(server.issuer)
    const login = pageOf(await ask(server, portal, {}, browser))
    const wrong = pageOf(await browser.submit(login, alice))
    t.match(problemOf(wrong), 'The user name or the password is wrong', 'as for any wrong password')
    t.match(await claimsAt(portal, await usePasskey(browser, wrong, device)), { sub: userId, acr: 'phr' })

    const form = pageOf(await browser.open(`${server.issuer}/account/password`))
    t.equal(title(form), 'Choose a password')
    await browser.submit(form, { password, repeated: password })
    const again = new UserAgent(server.issuer)
    const typed = await again.submit(pageOf(await ask(server, portal, {}, again)), { ...alice, password })
    t.strictSame((await claimsAt(portal, typed))['amr'], ['pwd'], 'a password can be added later')
  },
)

t.test('a user with one-time codes is offered no passkey, and is asked for a code', async (t) => {
  const erin = await add('erin')
  const { id: userId } = erin
  const agent = new UserAgent(server.issuer)
  const device = new Authenticator(server.issuer)
  const url = await give({ purpose: 'password-reset', userId, email: erin.email ?? '' })
  const early = pageOf(await agent.open(url))
  const code = await giveCodes(erin)
  t.equal(pageOf(await setPasskey(agent, early, device)).status, 404, 'nor may a page of before add one')
  t.strictSame(await passkeysOf(erin), [])
  const page = pageOf(await agent.open(url))
  t.notMatch(page.html, 'data-create')
  const done = pageOf(await agent.submit(page, { password, repeated: password }))
  t.match(done.url, /\/link\?done=password$/)
  t.strictSame(await store.listOf('session', userId), [], 'not signed in')
  const login = pageOf(await ask(server, portal, {}, agent))
  const second = pageOf(await agent.submit(login, { username: 'erin', password }))
  t.equal(title(second), 'Confirm that it is you')
  const claims = await claimsAt(portal, await agent.submit(second, { code: code() }))
  t.match(claims['amr'], ['pwd', 'otp', 'mfa'])
})

t.test('a user with a passkey is offered no other one by a link', async (t) => {
  const frida = await add('frida')
  const device = new Authenticator(server.issuer)
  const agent = new UserAgent(server.issuer)
  const url = () => give({ purpose: 'password-reset', userId: frida.id, email: frida.email ?? '' })
  const early = pageOf(await agent.open(await url()))
  await setPasskey(agent, pageOf(await agent.open(await url())), device)
  const stranger = new UserAgent(server.issuer)
  t.notMatch(pageOf(await stranger.open(await url())).html, 'data-create')
  t.equal(pageOf(await setPasskey(agent, early, new Authenticator(server.issuer))).status, 404)
  t.equal((await passkeysOf(frida)).length, 1)
})

t.test('a passkey that cannot be used is a problem of the form, and the link still works', async (t) => {
  const gina = await add('gina')
  const url = await give({ purpose: 'invitation', userId: gina.id })
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(url))
  const other = pageOf(await new UserAgent(server.issuer).open(url))
  const foreign = new Authenticator(server.issuer).create(askedOf(other))
  const fields = Object.fromEntries(other.forms[0]?.fields.map(({ name, value }) => [name, value]) ?? [])
  const ofOther = { challenge: fields['challenge'] ?? '', credential: JSON.stringify(foreign) }
  const typed = { given_name: 'Gina' }
  const outdated = pageOf(await agent.submit(page, { ...typed, ...ofOther }))
  t.equal(outdated.status, 400)
  t.match(
    problemOf(outdated),
    'already used, or it was open for too long',
    'the challenge of another browser',
  )
  t.match(outdated.html, 'value="Gina"')
  const elsewhere = new Authenticator('http://localhost:1').create(askedOf(outdated))
  const refused = pageOf(await agent.submit(outdated, { credential: JSON.stringify(elsewhere) }))
  t.match(problemOf(refused), 'could not be added', 'made for another origin')
  t.strictSame(await passkeysOf(gina), [])
  const device = new Authenticator(server.issuer)
  const late = pageOf(await agent.open(url))
  server.advance(server.deps.config.lifetimes.interactionSeconds)
  t.match(problemOf(pageOf(await setPasskey(agent, late, device))), 'open for too long')
  t.match(pageOf(await setPasskey(agent, pageOf(await agent.open(url)), device)).url, 'done=passkey-added')
})

t.test('of several simultaneous forms one adds its passkey', async (t) => {
  const hugo = await add('hugo')
  const url = await give({ purpose: 'invitation', userId: hugo.id })
  const agents = Array.from({ length: 4 }, () => new UserAgent(server.issuer))
  const pages = await Promise.all(agents.map(async (agent) => pageOf(await agent.open(url))))
  const landings = await Promise.all(
    agents.map((agent, at) => setPasskey(agent, pages[at] as Page, new Authenticator(server.issuer))),
  )
  t.strictSame(landings.map((landing) => pageOf(landing).status).toSorted(), [200, 404, 404, 404])
  t.equal((await passkeysOf(hugo)).length, 1)
  t.equal((await store.listOf('session', hugo.id)).length, 1)
})

t.test('a user who is locked while the page is open gets nothing', async (t) => {
  const ines = await add('ines')
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(await give({ purpose: 'invitation', userId: ines.id })))
  await store.write(update('user', { ...ines, lockedAt: server.now() }))
  t.equal(pageOf(await setPasskey(agent, page, new Authenticator(server.issuer))).status, 404)
  t.strictSame(await passkeysOf(ines), [])
  t.strictSame(await store.listOf('session', ines.id), [])
})

t.test('the first user creates a passkey, and is an administrator who may change things', async (t) => {
  const empty = await startServer(t)
  for (const { id } of await empty.deps.store.list('user')) await empty.deps.store.write(removeUser(id, 0))
  const agent = new UserAgent(empty.issuer)
  const page = pageOf(await agent.open(await give({ purpose: 'first-user' }, empty)))
  const device = new Authenticator(empty.issuer)
  const spaced = pageOf(await setPasskey(agent, page, device, { username: 'z o e' }))
  t.match(problemOf(spaced), 'A user name has 1 to 128 characters')
  const handleOf = (each: Page) => JSON.parse(askedOf(each)).user.id
  t.equal(handleOf(spaced), handleOf(page), 'so that the device replaces the first attempt')
  const landing = await setPasskey(agent, spaced, device, { username: 'Zoe' })
  t.match(pageOf(landing).url, `${empty.issuer}/admin`)
  const [zoe] = await empty.deps.store.list('user')
  t.match(zoe, { username: 'zoe' })
  t.equal(zoe?.passwordHash, undefined)
  t.equal(Buffer.from(zoe?.id ?? '').toString('base64url'), handleOf(page))
  t.match(await groupsOf(empty.deps.store, zoe?.id ?? ''), [{ name: 'admins' }])
  const invite = pageOf(await agent.open(`${empty.issuer}/admin/users/invite`))
  t.equal(title(invite), 'Invite a user', 'no further factor is asked for')
  const later = new UserAgent(empty.issuer)
  const login = pageOf(await later.open(`${empty.issuer}/admin`))
  t.match(pageOf(await usePasskey(later, login, device)).url, `${empty.issuer}/admin`)
})
