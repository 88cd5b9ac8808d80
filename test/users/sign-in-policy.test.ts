/** The policy of sign-ins: what the server, a group or a client requires, over the wire at each door. */
import { globSync, readFileSync } from 'node:fs'
import { TOTP } from 'otpauth'
import t from 'tap'
import { put, remove, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { inconsistencies } from '../../src/settings/checks.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import { parseRequirement } from '../../src/users/policy/requirement.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { Authenticator, askedOf } from '../helpers/authenticator.ts'
import { ask, bodyOf, integrate, pageOf, place, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { addDeviceClient, openConfirmation, poll, startDevice } from '../helpers/device.ts'
import { claimsOf, exchange, postAs, type TestClient, type Tokens } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import type { Page, UserAgent } from '../helpers/user-agent.ts'
import { addClient, json } from '../helpers/wire.ts'

const server = await startServer(t, {
  signInPolicy: {
    groups: [
      { group: 'staff', require: 'second factor' },
      { group: 'admins', require: 'passkey' },
    ],
  },
})
const { store, clock, keys } = server.deps
const operator = { by: 'operator', at: clock(), from: 'op@here' } as const
const strict = (required: string, request = {}) =>
  integrate(server, { consent: 'skip', ...request }, { extra: { required_sign_in: required } })
const portal = await integrate(server, { consent: 'skip' })
const vault = await strict('passkey')
const ledger = await strict('second factor')
const subOf = async (name: string) => (await store.find('userByLogin', name))?.id ?? ''
const [aliceId, bobId] = [await subOf('alice'), await subOf('bob')]
const staff = await changeGroups(store, (groups) =>
  createGroup(groups, { name: 'staff' }, systemRandom(16), operator),
)
const totp = new TOTP()

const claimsAt = async (client: TestClient, code = '') =>
  claimsOf(((await (await exchange(server, client, code)).json()) as Tokens).id_token)

const forget = async () => {
  for (const userId of [aliceId, bobId]) {
    await store.write(remove(secondFactorKind, userId))
    for (const { id } of await store.listOf(passkeyKind, userId)) await store.write(remove(passkeyKind, id))
  }
}

const giveCodes = (userId: string) =>
  store.write(
    put(secondFactorKind, {
      userId,
      sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), userId, secondFactorKind),
      confirmedAt: server.now(),
      recoveryHashes: [],
      createdAt: server.now(),
    }),
  )

/** Adds a passkey on the page that a page leads to. */
async function addPasskey(agent: UserAgent, page: Page) {
  const link = /href="([^"]*\/account\/passkeys[^"]*)"/.exec(page.html)?.[1] ?? ''
  const passkeys = pageOf(await agent.open(new URL(link, page.url).href))
  const form = passkeys.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))
  const credential = new Authenticator(server.issuer).create(askedOf(passkeys))
  return { passkeys, landing: await agent.submit(passkeys, { credential: JSON.stringify(credential) }, form) }
}

t.beforeEach(forget)

t.test('a user without the factor is led to set it up, and ends signed in at the app', async (t) => {
  const agent = await signedIn(server, portal)
  const page = pageOf(await ask(server, vault, { prompt: 'login' }, agent))
  const enrol = pageOf(await agent.submit(page, alice))
  t.equal(title(enrol), 'Set up a passkey')
  t.notMatch(enrol.html, 'one-time-codes', 'codes would not suffice')
  const { passkeys, landing } = await addPasskey(agent, enrol)
  t.notMatch(passkeys.headers.get('content-security-policy'), 'form-action', 'its form may end at the app')
  const claims = await claimsAt(vault, sentAway(landing)['code'])
  t.match(claims, { acr: 'phr', amr: ['pwd', 'pop', 'user', 'mfa'] })
  t.match(sentAway(await ask(server, vault, {}, agent)), { code: /./ }, 'and once more without a page')
})

t.test('one-time codes are set up in the same way, and the recovery codes lead on', async (t) => {
  const agent = await signedIn(server, portal)
  const enrol = pageOf(await ask(server, ledger, {}, agent))
  t.equal(title(enrol), 'Set up a second step')
  const link = /href="([^"]*one-time-codes[^"]*)"/.exec(enrol.html)?.[1] ?? ''
  const begun = pageOf(await agent.open(new URL(link, enrol.url).href))
  const setUp = pageOf(await agent.submit(begun, { decision: 'begin' }))
  const secret = /<p dir="ltr"><code>([^<]*)/.exec(setUp.html)?.[1]?.replaceAll(' ', '') ?? ''
  const code = new TOTP({ secret }).generate({ timestamp: server.now() * 1000 })
  const codes = pageOf(await agent.submit(setUp, { code, decision: 'confirm' }))
  const on = /class="button" href="([^"]*)"/.exec(codes.html)?.[1] ?? ''
  const claims = await claimsAt(ledger, sentAway(await agent.open(new URL(on, codes.url).href))['code'])
  t.match(claims, { acr: 'https://refeds.org/profile/mfa', amr: ['pwd', 'otp', 'mfa'] })
})

t.test('a user who has the factor is asked for it, whatever else they could set up', async (t) => {
  const agent = await signedIn(server, portal)
  await giveCodes(aliceId)
  const second = pageOf(await ask(server, ledger, {}, agent))
  t.equal(title(second), 'Confirm that it is you')
  const account = pageOf(await agent.open(`${server.issuer}/account/passkeys`))
  t.equal(title(account), 'Confirm that it is you', 'a password alone adds no other factor')
  const code = totp.generate({ timestamp: server.now() * 1000 })
  t.match(sentAway(await agent.submit(second, { code })), { code: /./ })
  t.equal(title(pageOf(await ask(server, vault, {}, agent))), 'Set up a passkey')
})

t.test('without a page the app gets the error that says what is missing', async (t) => {
  const agent = await signedIn(server, portal)
  const silent = { prompt: 'none' }
  t.match(sentAway(await ask(server, ledger, silent, agent)), { error: 'interaction_required' })
  await giveCodes(aliceId)
  t.match(sentAway(await ask(server, ledger, silent, agent)), { error: 'login_required' })
})

t.test('what will be required is offered once after a sign-in, and required from its day on', async (t) => {
  const day = new Date((server.now() + 20 * 86_400) * 1000).toISOString().slice(0, 10)
  const soon = await strict(`passkey from ${day}`)
  const agent = await signedIn(server, portal)
  t.match(sentAway(await ask(server, soon, {}, agent)), { code: /./ }, 'a session goes on')
  const login = pageOf(await ask(server, soon, { prompt: 'login' }, agent))
  const enrol = pageOf(await agent.submit(login, alice))
  t.equal(title(enrol), 'Set up a passkey')
  t.match(enrol.html, 'This will be required from')
  t.match(sentAway(await agent.submit(enrol, { decision: 'later' })), { code: /./ })
  server.advance(21 * 86_400)
  const later = await signedIn(server, portal)
  const due = pageOf(await ask(server, soon, {}, later))
  t.equal(title(due), 'Set up a passkey')
  t.notMatch(due.html, 'Not now')
  const body = bodyOf(due)
  t.equal(body.size > 0, false, 'no form postpones it')
  const login2 = pageOf(await ask(server, soon, { prompt: 'login' }, later))
  await later.submit(login2, alice)
  const forged = await later.submit(login2, { decision: 'later' })
  t.equal(title(pageOf(forged)), 'Set up a passkey', 'nor does one that is made up')
})

t.test('the strictest requirement of a user counts, and is read again where the grant begins', async (t) => {
  const agent = await signedIn(server, portal, bob)
  t.match(sentAway(await ask(server, portal, {}, agent)), { code: /./ })
  await addToGroup(store, staff, bobId, operator)
  t.equal(title(pageOf(await ask(server, portal, {}, agent))), 'Set up a second step')
  t.equal(title(pageOf(await ask(server, vault, {}, agent))), 'Set up a passkey')
  await removeFromGroup(store, staff, bobId, operator)
  t.match(sentAway(await ask(server, portal, {}, agent)), { code: /./ })
})

t.test('a consent page that was opened before does not lead around it', async (t) => {
  const asking = await integrate(server, { consent: 'always' })
  const agent = await signedIn(server, portal, bob)
  const consent = pageOf(await ask(server, asking, {}, agent))
  await addToGroup(store, staff, bobId, operator)
  const landing = await agent.submit(consent, { decision: 'approve' })
  t.equal(title(pageOf(landing)), 'Set up a second step')
  await removeFromGroup(store, staff, bobId, operator)
})

t.test('a device is approved with the factor only', async (t) => {
  const tv = await addDeviceClient(server)
  const found = await store.find('client', tv.id)
  if (found === undefined) throw new Error('the client is there')
  await store.write(update('client', { ...found, extra: { ...found.extra, required_sign_in: 'passkey' } }))
  const device = await startDevice(server, tv)
  const agent = await signedIn(server, portal)
  const enrol = await openConfirmation(server, device.user_code, agent)
  t.equal(title(enrol), 'Set up a passkey')
  t.match(await json(await poll(server, tv, device)), { error: 'authorization_pending' })
  const { landing } = await addPasskey(agent, enrol)
  const confirm = pageOf(landing)
  t.equal(place(landing), '/device/confirm')
  await agent.submit(confirm, { decision: 'approve' })
  server.advance(10)
  t.match(await json(await poll(server, tv, device)), { access_token: /./ })
})

t.test('a token of a weaker sign-in is not exchanged for one of a client that requires more', async (t) => {
  const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const api = await addClient(server, { grantTypes: ['authorization_code', grantType] })
  const agent = await signedIn(server, api)
  const { code = '' } = sentAway(await ask(server, api, {}, agent))
  const { access_token: token } = (await (await exchange(server, api, code)).json()) as Tokens
  const fields = {
    grant_type: grantType,
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  }
  const trade = async () => json(await postAs(server, api, '/api/oauth/token', fields))
  t.match(await trade(), { access_token: /./ })
  const found = await store.find('client', api.id)
  if (found === undefined) throw new Error('the client is there')
  await store.write(update('client', { ...found, extra: { ...found.extra, required_sign_in: 'passkey' } }))
  t.match(await trade(), { error: 'invalid_request' })
})

t.test('the pages for administrators open with the factor only, the account page without', async (t) => {
  const admins = await changeGroups(store, (groups) =>
    createGroup(groups, { name: 'Admins' }, systemRandom(16), operator),
  )
  await addToGroup(store, admins, aliceId, operator)
  const agent = await signedIn(server, portal)
  t.equal((await agent.send(`${server.issuer}/account`)).status, 200)
  const enrol = pageOf(await agent.open(`${server.issuer}/admin/users`))
  t.equal(title(enrol), 'Set up a passkey')
  const { landing } = await addPasskey(agent, enrol)
  t.equal(place(landing), '/admin/users')
  await removeFromGroup(store, admins, aliceId, operator)
})

t.test('passkeys are not required where there can be none', async (t) => {
  const { config } = server.deps
  const broken = (issuer: string, signInPolicy: object) =>
    [
      ...inconsistencies({ ...config, issuer, signInPolicy: { ...config.signInPolicy, ...signInPolicy } }),
    ].filter((line) => line.startsWith('signInPolicy'))
  t.match(broken('http://127.0.0.1:9400', { require: 'passkey' }).join(), 'the last administrator included')
  t.match(broken('http://localhost:9400', { require: 'passkeys' }).join(), 'signInPolicy.require: must be')
  t.strictSame(broken('http://localhost:9400', { require: 'passkey' }), [])
})

t.test('no client requires a passkey where there can be none', async (t) => {
  const data = newFolder(t)
  const client = [
    'client',
    'add',
    '--name',
    'Vault',
    '--redirect-uri',
    'https://vault.example/',
    '--data',
    data,
  ]
  const add = (issuer: string, required: string) =>
    runHere([...client, '--required-sign-in', required], { environment: { LYCHGATE_ISSUER: issuer } })
  const rejected = await add('https://192.0.2.7', 'passkey from 2030-01-01')
  t.match(rejected, { code: 1, stderr: 'passkeys need an issuer with a host name' })
  t.match(await add('https://192.0.2.7', 'second factor'), { code: 0 })
  t.match(await add('https://auth.example', 'passkey'), { code: 0 })
})

t.test('no other way leads to a grant of a user', async (t) => {
  const inserting = globSync('src/**/*.ts').filter((file) =>
    /op: 'insertGrant', grant/.test(readFileSync(file, 'utf8')),
  )
  t.strictSame(inserting.sort(), [
    'src/specs/rfc6749-authorization/approval.ts',
    'src/specs/rfc6749-client-credentials/rules.ts',
    'src/specs/rfc8693-token-exchange/rules.ts',
  ])
  const gates = ['rfc6749-authorization/approval.ts', 'rfc8693-token-exchange/plugin.ts']
  for (const gate of gates)
    t.match(readFileSync(`src/specs/${gate}`, 'utf8'), /seams\.(?:userChecks|exchanges)\.collect/, gate)
})

t.test('a requirement is a kind of sign-in, with the day it begins or without', async (t) => {
  for (const [text, kind, from] of [
    ['passkey', 'passkey', undefined],
    ['second factor from 2027-01-31', 'second factor', Date.UTC(2027, 0, 31) / 1000],
    ['passkey from 2027-02-29', undefined, undefined],
    ['passkey from tomorrow', undefined, undefined],
    ['Passkey', undefined, undefined],
    ['', undefined, undefined],
  ] as const)
    t.match({ ...parseRequirement(text) }, kind === undefined ? {} : { kind, from }, text)
})
