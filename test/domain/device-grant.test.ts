import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import type { Client, Grant } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import {
  type DeviceAuthorization,
  decideDevice,
  deviceKind,
  openDevice,
  type Poll,
  pollDevice,
  redeemDevice,
  startDevice,
} from '../../src/specs/rfc8628-device-grant/rules/device.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  approvedAt,
  approved as approvedGrant,
  authorizationRequest,
  codeVerifier,
  lifetimes,
  ownApi,
  policy,
  publicClient,
  resources,
} from '../helpers/samples.ts'

const deviceCode = `lyc_device_WDJBMJHT${'x'.repeat(43)}`
// `as`: the rules read its id alone.
const client = { id: 'client_1' } as Client
const device: DeviceAuthorization = {
  userCode: 'WDJBMJHT',
  deviceHash: hashSecret(deviceCode),
  clientId: client.id,
  request: {
    clientId: client.id,
    redirectUri: '',
    redirectUriSent: false,
    responseMode: 'query',
    scope: ['openid'],
    resource: [],
    prompt: [],
    claims: { userinfo: [], idToken: [] },
  },
  from: '203.0.113.0/24',
  state: 'pending',
  intervalSeconds: 5,
  browsers: [],
  createdAt: 1000,
  expiresAt: 1600,
}
const approved = { ...device, state: 'approved', userId: 'u', grantId: 'g' } as const

const sent: Poll = { deviceCode, client, codeVerifier: undefined }

/** The error of a poll, and the device that it leaves. */
function poll(found: DeviceAuthorization, now: number, changes: Partial<Poll> = {}) {
  try {
    const decision = pollDevice(found, { ...sent, ...changes }, now)
    const [write] = decision.writes
    const isRecord = write?.op === 'update' && write.kind === 'record'
    const left: DeviceAuthorization = isRecord ? JSON.parse(write.record.body) : found
    const error = 'rejection' in decision ? decision.rejection : undefined
    return { code: error?.code ?? 'approved', left, error }
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return { code: error.code, left: found, error }
  }
}

/** What its client and an operator learn of an error. */
const facts = ({ code, message, status, detail }: OAuthError) => ({ code, message, status, ...detail })

t.test('the interval of polls, to the second', async (t) => {
  const first = poll(device, 1000)
  t.match(first, { code: 'authorization_pending', left: { polledAt: 1000, intervalSeconds: 5 } })
  t.equal(poll(first.left, 1004).code, 'authorization_pending', 'one second early')
  const early = poll(first.left, 1003)
  t.match(early, { code: 'slow_down', left: { polledAt: 1003, intervalSeconds: 10 } })
  t.equal(poll(early.left, 1012).code, 'authorization_pending')
  t.match(poll(early.left, 1011), { code: 'slow_down', left: { intervalSeconds: 15 } })
})

t.test('each error of a poll has its rule, and each rule that it passes is recorded', async (t) => {
  const { left } = poll(device, 1000)
  const error = (...args: Parameters<typeof poll>) => {
    const { error } = poll(...args)
    return error && facts(error)
  }
  t.strictSame(error(device, 1000), {
    code: 'authorization_pending',
    message: 'the user has not decided yet',
    status: 400,
    rule: 'rfc8628-3.5-pending',
    isRoutine: true,
  })
  t.strictSame(error(left, 1003), {
    code: 'slow_down',
    message: 'the device polls too often; from now on wait 10 seconds between two polls',
    status: 400,
    rule: 'rfc8628-3.5-slow-down',
    stored: 5,
    received: 3,
    isRoutine: true,
  })
  t.strictSame(error({ ...device, state: 'denied' }, 1001), {
    code: 'access_denied',
    message: 'the user denied the request',
    status: 400,
    rule: 'rfc8628-3.5-denied-expired',
  })
  t.strictSame(error(device, 1600), {
    code: 'expired_token',
    message: 'device_code has expired; start a new device authorization',
    status: 400,
    rule: 'rfc8628-3.5-denied-expired',
    stored: 1600,
    received: 1600,
  })
  const unknown = {
    code: 'invalid_grant',
    message: 'device_code is unknown',
    status: 400,
    rule: 'rfc8628-3.4-grant',
  }
  t.strictSame(error(device, 1001, { deviceCode: `${deviceCode.slice(0, -1)}y` }), unknown)
  t.throws(() => pollDevice(undefined, sent, 1001), { code: 'invalid_grant', message: unknown.message })
  t.strictSame(error(device, 1001, { client: { ...client, id: 'client_2' } }), {
    ...unknown,
    message: 'device_code was issued to another client',
    stored: 'client_1',
    received: 'client_2',
  })
  t.strictSame(error({ ...approved, state: 'redeemed' }, 1001), {
    ...unknown,
    message: 'device_code was already used: its tokens are issued once',
    rule: 'rfc8628-3.5-success-once',
  })
  t.strictSame(
    passedDuring(() => void poll(approved, 1001)).map(({ rule, found }) => [rule, found]),
    [
      ['rfc8628-3.4-grant', 'device_code is known'],
      ['rfc8628-3.4-grant', 'device_code was issued to this client'],
      ['rfc8628-3.5-success-once', 'device_code was not used before'],
      ['rfc8628-3.5-denied-expired', 'the user did not deny the request'],
      ['rfc8628-3.5-denied-expired', 'device_code has not expired'],
      ['rfc8628-3.3-interaction', 'the user approved'],
    ],
  )
})

t.test('a device that sent a code challenge proves it with each poll', async (t) => {
  const { codeChallenge = '' } = authorizationRequest
  const proving = { ...device, request: { ...device.request, codeChallenge } }
  t.equal(poll(proving, 1001, { codeVerifier }).code, 'authorization_pending')
  t.match(poll(proving, 1001).error, { message: 'code_verifier is missing' })
  t.match(poll(device, 1001, { codeVerifier }).error, { detail: { rule: 'rfc9700-2.1.1-downgrade' } })
})

t.test('the state of a device decides what a poll and a decision get', async (t) => {
  const accepted = pollDevice(approved, sent, 1001)
  t.strictSame(accepted, { result: approved, writes: [] })
  t.equal(poll({ ...approved, state: 'redeemed' }, 1001).code, 'invalid_grant')
  t.equal(poll({ ...device, state: 'denied' }, 1001).code, 'access_denied')
  t.equal(poll(device, 1599).code, 'authorization_pending')
  t.equal(poll(device, 1600).code, 'expired_token')
  t.equal(poll(approved, 1600).code, 'expired_token')
  const denial = { state: 'denied', userId: 'u' } as const
  const more = { op: 'touchClient', clientId: client.id, at: 1001 } as const
  const decide = (found: DeviceAuthorization | undefined, now = 1001) =>
    decideDevice(found, denial, now, more)
  t.strictSame(decide(device), { result: true, writes: [update(deviceKind, { ...device, ...denial }), more] })
  for (const over of [undefined, approved, { ...device, state: 'denied' } as const])
    t.strictSame(decide(over), { result: false, writes: [] })
  t.strictSame(decide(device, 1600), { result: false, writes: [] })
})

t.test('of several polls that found the device approved, one redeems the grant', async (t) => {
  const owner: Client = { ...publicClient, origin: 'integration', grantTypes: [grantType, 'refresh_token'] }
  const now = approvedAt + 1
  const redeem = (found: Grant | undefined, by: Client = owner) =>
    redeemDevice(found, device, by, [], policy, lifetimes, now)
  const deviceGrant = { ...approvedGrant, redirectUri: '' }
  const redeemed = redeem(deviceGrant)
  t.match(redeemed, {
    result: {
      grant: { seq: 1, refreshExpiresAt: now + lifetimes.refreshTokenIdleSeconds },
      terms: { scope: approvedGrant.scope, resource: [ownApi.identifier] },
    },
    writes: [
      { op: 'redeemGrant', grantId: approvedGrant.id, at: now },
      update(deviceKind, { ...device, state: 'redeemed' }),
    ],
  })
  t.equal(redeemed.writes.length, 2)
  const once = redeem(deviceGrant, { ...owner, grantTypes: [grantType] })
  t.match(once, { result: { grant: { seq: 1, refreshExpiresAt: undefined } } })
  for (const [lost, rule, message] of [
    [{ ...deviceGrant, seq: 1 }, 'rfc8628-3.5-success-once', /was already used/],
    [{ ...deviceGrant, seq: 1, revokedAt: now }, 'rfc6749-4.1.2-code-replay-revokes', /was revoked/],
    [undefined, 'rfc8628-3.4-grant', /the user who approved no longer exists/],
  ] as const)
    t.throws(() => redeem(lost), { code: 'invalid_grant', message, detail: { rule } })
})

t.test('a device starts with what it asks for, and its codes', async (t) => {
  const owner: Client = { ...publicClient, origin: 'integration', grantTypes: [grantType] }
  const scopes = new Set(['openid', 'courses:read'])
  const offered = { scopes, openScopes: scopes, scopeClaims: new Map(), resources }
  const times = { seconds: 600, intervalSeconds: 5 }
  const fresh = { userCode: Buffer.alloc(32), secret: Buffer.alloc(32, 1), from: '192.0.2.0/24' }
  const start = (parameters: Parameters<typeof startDevice>[0] = {}, by: Client = owner) =>
    startDevice({ scope: 'courses:read', ...parameters }, by, offered, times, fresh, 1000)
  const { device: started, deviceCode: code } = start()
  t.equal(code, `lyc_device_BBBBBBBB${Buffer.alloc(32, 1).toString('base64url')}`)
  t.strictSame(started, {
    ...device,
    userCode: 'BBBBBBBB',
    deviceHash: hashSecret(code),
    clientId: owner.id,
    request: {
      ...device.request,
      clientId: owner.id,
      scope: ['courses:read'],
      resource: [ownApi.identifier],
    },
    from: '192.0.2.0/24',
  })
  const { codeChallenge = '' } = authorizationRequest
  const challenge = { code_challenge: codeChallenge, code_challenge_method: 'S256' }
  t.equal(start(challenge).device.request.codeChallenge, codeChallenge)
  for (const wrong of [{ code_challenge: codeChallenge }, { code_challenge_method: 'S256' }])
    t.throws(() => start(wrong), { code: 'invalid_request', message: /code_challenge/ })
  t.throws(() => start({ foo: ['a', 'b'] }), { code: 'invalid_request', message: 'foo must not be repeated' })
  t.throws(() => start({}, publicClient), {
    code: 'unauthorized_client',
    message: 'this client is not registered for the grant type urn:ietf:params:oauth:grant-type:device_code',
    detail: { rule: 'rfc8628-3.1-request', stored: publicClient.grantTypes },
  })
  t.strictSame(
    { ...deviceKind.rowOf({ ...device, userId: 'u' }), body: '' },
    {
      kind: 'deviceAuthorization',
      id: 'WDJBMJHT',
      userId: 'u',
      clientId: client.id,
      madeAt: 1000,
      expiresAt: 5200,
      body: '',
    },
    'a late poll still learns for an hour that the code has expired',
  )
})

t.test('a code opens in five browsers', async (t) => {
  let found: DeviceAuthorization = device
  for (const browser of ['a', 'b', 'c', 'd', 'e', 'a']) {
    const opened = openDevice(found, browser, 1001)
    if (!('result' in opened) || opened.result === undefined) throw new Error(`not in ${browser}`)
    found = opened.result
  }
  t.equal(found.browsers.length, 5)
  t.strictSame(openDevice(found, 'f', 1001), {
    result: undefined,
    writes: [update(deviceKind, { ...found, expiresAt: 1001 })],
  })
  t.strictSame(
    passedDuring(() => openDevice(found, 'f', 1001)).map(({ rule, found }) => [rule, found]),
    [['rfc8628-5.4-phishing', 'too many browsers opened this code: it ends']],
  )
  for (const over of [undefined, { ...device, state: 'denied' } as const])
    t.strictSame(openDevice(over, 'a', 1001), { result: undefined, writes: [] })
})
