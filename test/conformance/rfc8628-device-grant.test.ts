/** RFC 8628: a device shows a code, its user approves in a browser elsewhere, and the device polls for tokens. */
import t from 'tap'
import { endSession, update } from '../../src/domain/decision.ts'
import type { Session } from '../../src/domain/model.ts'
import { grantType, parseUserCode } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { deviceKind } from '../../src/specs/rfc8628-device-grant/rules/device.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import {
  addDeviceClient,
  decide,
  openConfirmation,
  pageOf,
  poll,
  requestDevice,
  type StartedDevice,
  startDevice,
  typeCode,
} from '../helpers/device.ts'
import { callApi, claimsOf, pkce, refresh, register, type TestClient } from '../helpers/flow.ts'
import { postProven, signProof, thumbprintOf, tokenPath } from '../helpers/proofs.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, json } from '../helpers/wire.ts'

let beforeApproval = async (_session: Session) => {}
const server = await startServer(t, {
  async observe({ seams }) {
    seams.approvals.add(async ({ session }) => void (await beforeApproval(session)))
  },
  rateLimits: 'off',
  trustProxy: ['127.0.0.1', '::1'],
  registration: { deviceGrant: 'on' },
})
const client = await addDeviceClient(server)
const confidential = await addDeviceClient(server, { authenticationMethod: 'client_secret_basic' })

const start = (of: TestClient = client, fields = {}) => startDevice(server, of, fields)
const asks = (device: StartedDevice, of: TestClient = client, fields = {}) => poll(server, of, device, fields)
/** A browser behind a proxy, in a network of its own. */
const browserIn = (address: string) => new UserAgent(server.issuer, { 'x-forwarded-for': address })
const alertOf = ({ html }: Page) => /role="alert">(.*?)</.exec(html)?.[1]

t.test('[rfc8628-3.1-request] a device authorization begins with a form of the client', async (t) => {
  t.equal((await requestDevice(server, client)).status, 200)
  t.equal((await requestDevice(server, confidential)).status, 200, 'with a secret')
  t.equal((await requestDevice(server, client, { scope: undefined })).status, 200, 'without a scope')
  t.equal((await requestDevice(server, client, { unknown: 'x', state: '' })).status, 200, 'ignored members')
  await assertRejected(t, await requestDevice(server, client, { client_id: undefined }), 'invalid_request')
  await assertRejected(
    t,
    await requestDevice(server, { ...confidential, secret: 'wrong' }),
    'invalid_client',
    401,
  )
  const twice = { scope: ['openid', 'courses:read'] }
  await assertRejected(t, await requestDevice(server, client, twice), 'invalid_request', 400, 'repeated')
  await assertRejected(t, await requestDevice(server, client, { scope: 'unknown' }), 'invalid_scope')
  const elsewhere = { resource: 'https://elsewhere.example' }
  await assertRejected(t, await requestDevice(server, client, elsewhere), 'invalid_target')
  const other = await register(server)
  await assertRejected(t, await requestDevice(server, other), 'unauthorized_client', 400, 'not registered')
  const get = await fetch(`${server.issuer}/oauth/device_authorization`)
  t.equal(get.status, 405)
})

t.test('a device that names a key in its request redeems its code with a proof by that key', async (t) => {
  const key = makeClientKey()
  await assertRejected(t, await requestDevice(server, client, { dpop_jkt: 'short' }), 'invalid_request')
  const device = await start(client, { dpop_jkt: thumbprintOf(key) })
  await decide(server, device.user_code)
  const fields = { grant_type: grantType, device_code: device.device_code }
  const proofBy = (by: typeof key) => signProof(by, { url: server.issuer + tokenPath, now: server.now() })
  const by = (...proofs: string[]) => postProven(server, client, tokenPath, fields, ...proofs)
  await assertRejected(t, await by(), 'invalid_grant', 400, 'no proof')
  server.advance(10)
  await assertRejected(t, await by(proofBy(makeClientKey())), 'invalid_grant')
  server.advance(10)
  const response = await by(proofBy(key))
  t.equal(response.status, 200, 'the code still works')
  t.equal((await json(response))['token_type'], 'DPoP')
})

t.test('[rfc8628-3.2-response] the response has both codes, and where to type one of them', async (t) => {
  const response = await requestDevice(server, client)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.match(response.headers.get('content-type'), /^application\/json/)
  const body = (await json(response)) as unknown as StartedDevice
  t.match(body.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  t.strictSame(body, {
    device_code: body.device_code,
    user_code: body.user_code,
    verification_uri: `${server.issuer}/device`,
    verification_uri_complete: `${server.issuer}/device?user_code=${body.user_code}`,
    expires_in: 600,
    interval: 5,
  })
})

t.test('[rfc8628-3.3-no-code-in-uri] [rfc8628-5.2-device-code-entropy] the codes', async (t) => {
  const devices = await Promise.all(Array.from({ length: 50 }, () => start()))
  for (const { verification_uri: uri, user_code: code } of devices) {
    const page = pageOf(await browserIn('192.0.2.1').open(uri))
    t.notOk(uri.includes(code) || page.html.includes(code), '[rfc8628-3.3-no-code-in-uri]')
  }
  const secrets = devices.map(({ device_code: code }) => code.slice(-43))
  t.equal(new Set(secrets).size, devices.length, '[rfc8628-5.2-device-code-entropy] no repeats')
  t.ok(
    secrets.every((secret) => /^[\w-]{43}$/.test(secret)),
    '[rfc8628-5.2-device-code-entropy] 256 bits each',
  )
  const stored = await server.deps.store.find(deviceKind, parseUserCode(devices[0]?.user_code ?? '') ?? '')
  t.notMatch(JSON.stringify(stored), secrets[0] ?? '', 'stored as a hash')
})

t.test(
  '[rfc8628-3.3-interaction] a user signs in, types the code, approves, and the device gets tokens',
  async (t) => {
    const device = await start()
    const page = await openConfirmation(server, device.user_code.toLowerCase().replace('-', ''))
    await assertRejected(t, await asks(device), 'authorization_pending')
    const agent = new UserAgent(server.issuer)
    const done = await decide(server, device.user_code, 'approve', agent)
    t.match(done.html, /Your device is connected/)
    t.match(done.html, /Living room/)
    t.equal(pageOf(await agent.open(done.url)).html, done.html, 'a reload changes nothing')
    t.match(page.url, /\/device\/confirm\?user_code=/)
    const response = await asks(device)
    t.equal(response.status, 200)
    const tokens = await json(response)
    t.strictSame(Object.keys(tokens).sort(), [
      'access_token',
      'expires_in',
      'id_token',
      'refresh_token',
      'scope',
      'token_type',
    ])
    t.equal(tokens['scope'], 'openid courses:read')
    t.equal(claimsOf(String(tokens['id_token']))['aud'], client.id)
    t.equal((await callApi(server, '/api/oauth/userinfo', String(tokens['access_token']))).status, 200)
    t.equal((await refresh(server, client, String(tokens['refresh_token']))).status, 200, 'an ordinary grant')
    const account = pageOf(await agent.open(`${server.issuer}/account/apps`))
    t.match(account.html, /Living room/, 'the account page lists it')
    t.notMatch(account.html, /Sends you to/)

    const denied = await start()
    t.match((await decide(server, denied.user_code, 'deny')).html, /You denied the request/)
    await assertRejected(t, await asks(denied), 'access_denied', 400, 'denied')
  },
)

t.test('[rfc8628-3.3.1-confirm-code] a link with the code skips nothing', async (t) => {
  const device = await start()
  const agent = new UserAgent(server.issuer)
  const filledIn = pageOf(await agent.open(device.verification_uri_complete))
  t.equal(filledIn.forms[0]?.fields.find(({ name }) => name === 'user_code')?.value, device.user_code)
  t.notMatch(filledIn.html, /Living room/, 'nothing is looked up before the form is sent')
  const direct = pageOf(await agent.open(`${server.issuer}/device/confirm?user_code=${device.user_code}`))
  t.equal(direct.forms[0]?.action, '/device', 'the page of the decision leads back to the form')
  const login = pageOf(await agent.submit(filledIn, {}))
  const confirmation = pageOf(await agent.submit(login, alice))
  t.ok(confirmation.html.includes(`>${device.user_code}<`), 'the code to compare')
  t.match(confirmation.html, /Did you start this\?/)
  await assertRejected(t, await asks(device), 'authorization_pending', 400, 'nothing is approved')
  const again = new UserAgent(server.issuer)
  await decide(server, (await start()).user_code, 'approve', again)
  const next = await start()
  const asked = pageOf(await again.submit(pageOf(await again.open(next.verification_uri_complete)), {}))
  t.match(asked.html, /Did you start this\?/, 'also for a user who is signed in and allowed it before')
})

t.test('[rfc8628-5.4-phishing] the page says which app asks for what, when, and from where', async (t) => {
  const named = await register(server, { client_name: 'Telly', grant_types: [grantType], redirect_uris: [] })
  const response = await fetch(`${server.issuer}/oauth/device_authorization`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: named.id, scope: 'openid courses:read' }),
    headers: { 'x-forwarded-for': '203.0.113.9' },
  })
  const device = (await json(response)) as unknown as StartedDevice
  server.advance(120)
  const page = await openConfirmation(server, device.user_code, browserIn('198.51.100.7'))
  t.match(page.html, /Telly/)
  t.match(page.html, /This app named itself/)
  t.match(page.html, /2 minutes ago.{0,20}from the network.{0,60}203\.0\.113\.0\/24/)
  t.match(page.html, /name="scope" value="courses:read"/)
  const near = await openConfirmation(server, device.user_code, browserIn('203.0.113.77'))
  t.match(near.html, /from the network you are on/)
})

t.test('[rfc8628-3.4-grant] a device code works for its client, which authenticates', async (t) => {
  const device = await start(confidential)
  await decide(server, device.user_code)
  await assertRejected(t, await asks(device, client), 'invalid_grant', 400, 'another client')
  const wrong = { ...confidential, secret: 'wrong' }
  await assertRejected(t, await asks(device, wrong), 'invalid_client', 401)
  const missing = { device_code: undefined }
  await assertRejected(t, await asks(device, confidential, missing), 'invalid_request')
  for (const code of [
    'lyc_device_x',
    `${device.device_code.slice(0, -1)}${device.device_code.endsWith('A') ? 'B' : 'A'}`,
  ])
    await assertRejected(t, await asks({ ...device, device_code: code }, confidential), 'invalid_grant')
  const other = await register(server)
  await assertRejected(t, await asks(device, other), 'unauthorized_client')
  t.equal((await asks(device, confidential)).status, 200)
})

t.test('[rfc8628-3.5-pending] [rfc8628-3.5-slow-down] polls before the decision', async (t) => {
  // A long interval: the time that the test itself takes changes nothing.
  const slow = await startServer(t, { rateLimits: 'off', deviceGrant: { intervalSeconds: 60 } })
  const client = await addDeviceClient(slow)
  const device = await startDevice(slow, client)
  t.equal(device.interval, 60)
  const assertPoll = async (after: number, error: string, about: string) => {
    slow.advance(after)
    await assertRejected(t, await poll(slow, client, device), error, 400, about)
  }
  await assertPoll(0, 'authorization_pending', '[rfc8628-3.5-pending] the first poll')
  await assertPoll(60, 'authorization_pending', '[rfc8628-3.5-pending] after the interval')
  await assertPoll(30, 'slow_down', '[rfc8628-3.5-slow-down] the interval is 65 seconds now')
  await assertPoll(30, 'slow_down', '[rfc8628-3.5-slow-down] 70 seconds')
  await assertPoll(70, 'authorization_pending', '[rfc8628-3.5-slow-down] the device slowed down')
  await assertPoll(30, 'slow_down', '[rfc8628-3.5-slow-down] the longer interval is kept')
  const stored = await slow.deps.store.find(deviceKind, parseUserCode(device.user_code) ?? '')
  t.equal(stored?.intervalSeconds, 75)
  await decide(slow, device.user_code)
  t.equal((await poll(slow, client, device)).status, 200, 'an approved device waits for nothing')
})

t.test('[rfc8628-3.5-denied-expired] the end of a device without tokens', async (t) => {
  const device = await start()
  await decide(server, device.user_code, 'deny')
  await assertRejected(t, await asks(device), 'access_denied')
  const [late, approved] = [await start(), await start()]
  const agent = new UserAgent(server.issuer)
  const page = await openConfirmation(server, late.user_code, agent)
  await decide(server, approved.user_code)
  server.advance(500)
  await assertRejected(t, await asks(late), 'authorization_pending', 400, 'in time')
  server.advance(100)
  await assertRejected(t, await asks(late), 'expired_token')
  await assertRejected(t, await asks(approved), 'expired_token', 400, 'approved and not fetched')
  const over = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.match(over.html, /This code has expired/)
  await assertRejected(t, await asks(late), 'expired_token', 400, 'an approval comes too late')
  await server.maintain()
  await assertRejected(t, await asks(late), 'expired_token', 400, 'the sweep leaves it for a while')
  server.advance(3600)
  await server.maintain()
  await assertRejected(t, await asks(late), 'invalid_grant', 400, 'nothing is kept for ever')
})

t.test('[rfc8628-3.5-success-once] of twenty polls one gets the tokens, and they stay valid', async (t) => {
  const device = await start()
  await decide(server, device.user_code)
  const responses = await Promise.all(Array.from({ length: 20 }, () => asks(device)))
  const bodies = await Promise.all(responses.map(json))
  const won = bodies.filter((body) => 'access_token' in body)
  t.equal(won.length, 1)
  t.strictSame(
    bodies.filter((body) => !won.includes(body)).map(({ error }) => error),
    Array.from({ length: 19 }, () => 'invalid_grant'),
  )
  await assertRejected(t, await asks(device), 'invalid_grant', 400, 'later, too')
  t.equal((await callApi(server, '/api/oauth/userinfo', String(won[0]?.['access_token']))).status, 200)
})

t.test('[rfc8628-4-metadata] the endpoint and the grant type are published', async (t) => {
  for (const document of ['oauth-authorization-server', 'openid-configuration']) {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/${document}`))
    t.equal(metadata['device_authorization_endpoint'], `${server.issuer}/oauth/device_authorization`)
    t.ok((metadata['grant_types_supported'] as string[]).includes(grantType))
  }
})

t.test('[rfc8628-5.1-user-code-limits] wrong codes are limited by browser and by network', async (t) => {
  const device = await start()
  const wrong = ['BBBB-BBBB', 'BBBB-BBBC', 'BBBB-BBBD', 'BBBB-BBBF', 'BBBB-BBBG']
  const agent = browserIn('198.51.100.1')
  t.match(alertOf(await typeCode(server, agent, 'AEIOU')), /No device is waiting/, 'a form no code has')
  for (const code of wrong) {
    const page = await typeCode(server, agent, code)
    t.equal(page.status, 400)
    t.match(alertOf(page), /No device is waiting/)
  }
  const blocked = await typeCode(server, agent, device.user_code)
  t.equal(blocked.status, 429)
  t.match(alertOf(blocked), /Too many wrong codes/)
  t.ok(Number(blocked.headers.get('retry-after')) > 0)
  // The same network with a new browser each time: 30 in all.
  for (let count = 0; count < 5; count += 1) {
    const other = browserIn('198.51.100.2')
    for (const code of wrong) t.equal((await typeCode(server, other, code)).status, 400)
  }
  t.equal((await typeCode(server, browserIn('198.51.100.3'), device.user_code)).status, 429)
  const elsewhere = browserIn('198.51.101.1')
  t.equal((await typeCode(server, elsewhere, device.user_code)).status, 200, 'another network is free')
  // Right codes do not count.
  for (let count = 0; count < 7; count += 1) {
    const { user_code: code } = await start()
    t.equal((await typeCode(server, elsewhere, code)).status, 200)
  }
  server.advance(server.deps.config.signInThrottle.windowSeconds)
  t.equal(
    (await typeCode(server, agent, device.user_code)).status,
    400,
    'the window ends, and so did the code',
  )
})

t.test('a code that many browsers opened ends', async (t) => {
  const device = await start()
  for (let count = 0; count < 5; count += 1)
    t.equal((await typeCode(server, browserIn(`192.0.2.${count}`), device.user_code)).status, 200)
  t.equal((await typeCode(server, browserIn('192.0.2.9'), device.user_code)).status, 400)
  await assertRejected(t, await asks(device), 'expired_token')
})

t.test('[rfc7636-4.6-mismatch-invalid-grant] PKCE protects a device that uses it', async (t) => {
  const { verifier, challenge } = pkce()
  const device = await start(client, { code_challenge: challenge, code_challenge_method: 'S256' })
  await decide(server, device.user_code)
  await assertRejected(t, await asks(device), 'invalid_grant', 400, 'no verifier')
  await assertRejected(t, await asks(device, client, { code_verifier: pkce().verifier }), 'invalid_grant')
  t.equal((await asks(device, client, { code_verifier: verifier })).status, 200)
  const plain = await start()
  await assertRejected(t, await asks(plain, client, { code_verifier: verifier }), 'invalid_request')
  const unsafe = { code_challenge: challenge, code_challenge_method: 'plain' }
  await assertRejected(t, await requestDevice(server, client, unsafe), 'invalid_request')
})

t.test('the page belongs to the browser that typed the code, and to its user', async (t) => {
  const device = await start()
  const agent = new UserAgent(server.issuer)
  const page = await openConfirmation(server, device.user_code, agent)
  const thief = new UserAgent(server.issuer)
  await openConfirmation(server, (await start()).user_code, thief, bob)
  const stolen = pageOf(await thief.submit(page, { decision: 'approve' }))
  t.equal(stolen.forms[0]?.action, '/device', 'a browser in which it was not typed')
  await openConfirmation(server, device.user_code, thief, bob)
  t.equal(pageOf(await thief.submit(page, { decision: 'approve' })).status, 403, 'another session')
  agent.deleteCookie('session')
  await openConfirmation(server, device.user_code, agent, bob)
  const ofAlice = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.equal(ofAlice.status, 403, 'the page of another user of this browser')
  agent.deleteCookie('session')
  const ownPage = await openConfirmation(server, device.user_code, agent)
  const { csrf: _, ...withoutToken } = Object.fromEntries(
    ownPage.forms[0]?.fields.map(({ name, value }) => [name, value]) ?? [],
  )
  const forged = await agent.send(`${server.issuer}/device/confirm`, {
    method: 'POST',
    body: new URLSearchParams({ ...withoutToken, decision: 'approve' }),
  })
  t.equal(forged.status, 403, 'no token')
  const crossSite = await agent.send(`${server.issuer}/device`, {
    method: 'POST',
    body: new URLSearchParams({ user_code: device.user_code }),
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  t.equal(crossSite.status, 403, 'another site')
  await assertRejected(t, await asks(device), 'authorization_pending', 400, 'nothing was approved')
  const narrowed = pageOf(await agent.submit(ownPage, { decision: 'approve', scope: [] }))
  t.match(narrowed.html, /Your device is connected/)
  t.equal((await json(await asks(device)))['scope'], 'openid', 'the user took a scope away')
})

t.test('a user who may not use the client cannot approve its device', async (t) => {
  const { store } = server.deps
  const closed = await addDeviceClient(server)
  const found = await store.find('client', closed.id)
  if (found === undefined) throw new Error('no client')
  const device = await start(closed)
  const agent = new UserAgent(server.issuer)
  const page = await openConfirmation(server, device.user_code, agent)
  await store.write(update('client', { ...found, extra: { allowed_groups: ['none'] } }))
  const denial = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.equal(denial.status, 403)
  t.notOk(denial.html.includes('value="approve"'))
  await assertRejected(t, await asks(device, closed), 'authorization_pending', 400, 'nothing is approved')
  t.match(pageOf(await agent.submit(denial, { decision: 'deny' })).html, /You denied the request/)
  await assertRejected(t, await asks(device, closed), 'access_denied')
})

t.test('what ends in the meantime ends the device', async (t) => {
  const { store, clock } = server.deps
  const sessionEnded = await start()
  const agent = new UserAgent(server.issuer)
  const page = await openConfirmation(server, sessionEnded.user_code, agent)
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('no alice')
  const sessions = await store.listOf('session', user.id)
  await store.write(...sessions.map(({ id }) => endSession(id, clock())))
  const login = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.ok(
    login.forms[0]?.fields.some(({ name }) => name === 'password'),
    'signed out: asks again',
  )
  await assertRejected(t, await asks(sessionEnded), 'authorization_pending')

  // The session ends between the check of the page and the transaction.
  const asked = await openConfirmation(server, sessionEnded.user_code, agent)
  beforeApproval = async ({ id }) => {
    beforeApproval = async () => {}
    await store.write(endSession(id, clock()))
  }
  const overtaken = pageOf(await agent.submit(asked, { decision: 'approve' }))
  t.ok(
    overtaken.forms[0]?.fields.some(({ name }) => name === 'password'),
    'overtaken: asks again',
  )
  server.advance(10)
  await assertRejected(t, await asks(sessionEnded), 'authorization_pending')

  const locked = await start()
  await decide(server, locked.user_code)
  await store.write(update('user', { ...user, lockedAt: clock() }))
  await assertRejected(t, await asks(locked), 'invalid_grant', 400, 'the user is locked')
  await store.write(update('user', user))

  const ofLocked = await addDeviceClient(server)
  const device = await start(ofLocked)
  const before = new UserAgent(server.issuer)
  const open = await openConfirmation(server, device.user_code, before)
  const found = await store.find('client', ofLocked.id)
  if (found === undefined) throw new Error('no client')
  await store.write(update('client', { ...found, name: 'Renamed' }))
  const changed = pageOf(await before.submit(open, { decision: 'approve' }))
  t.match(alertOf(changed), /This app has changed/)
  await store.write(update('client', { ...found, lockedAt: clock() }))
  const over = pageOf(await before.submit(changed, { decision: 'approve' }))
  t.match(over.html, /This code has expired/)
  await assertRejected(t, await asks(device, ofLocked), 'invalid_client', 400, 'the client is locked')
})

t.test('[rfc7591-2.1-grant-response-consistency] a device may register itself', async (t) => {
  const registering = async (metadata: Record<string, unknown>) => {
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Telly', grant_types: [grantType, 'refresh_token'], ...metadata }),
    })
    return { status: response.status, body: await json(response) }
  }
  const { status, body } = await registering({})
  t.equal(status, 201)
  t.match(body, {
    token_endpoint_auth_method: 'none',
    grant_types: [grantType, 'refresh_token'].sort(),
    response_types: [],
    redirect_uris: [],
  })
  const loopback = { redirect_uris: ['http://127.0.0.1/cb'] }
  t.equal((await registering(loopback)).status, 201, 'with a loopback redirect URI')
  const both = ['authorization_code', grantType]
  t.match((await registering({ ...loopback, grant_types: both })).body, { response_types: ['code'] })
  t.match(await registering({ grant_types: both }), { status: 400, body: { error: 'invalid_redirect_uri' } })
  const web = { redirect_uris: ['https://app.example/cb'] }
  t.match(await registering(web), { status: 400, body: { error: 'invalid_redirect_uri' } }, 'no other one')
  const code = { response_types: ['code'] }
  t.match(await registering(code), { status: 400, body: { error: 'invalid_client_metadata' } })
  const self = { id: String(body['client_id']), method: 'none', redirectUri: '' }
  const device = await start(self)
  await decide(server, device.user_code)
  t.equal((await asks(device, self)).status, 200)
  const authorize = `${server.issuer}/oauth/authorize?client_id=${self.id}&response_type=code`
  t.equal((await fetch(authorize)).status, 400, 'it cannot use the authorization endpoint')
})
