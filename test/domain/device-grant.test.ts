import t from 'tap'
import { OAuthError } from '../../src/domain/errors.ts'
import { issueGrant } from '../../src/domain/grant.ts'
import type { Client } from '../../src/domain/model.ts'
import { indexResources } from '../../src/domain/resource.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  formatUserCode,
  mintUserCode,
  parseUserCode,
  userCodeOf,
} from '../../src/rfc8628-device-grant/rules/codes.ts'
import {
  type DeviceAuthorization,
  decideDevice,
  openDevice,
  pollDevice,
  redeemDevice,
} from '../../src/rfc8628-device-grant/rules/device.ts'

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

/** The error code of a poll, and the device that it leaves. */
function poll(found: DeviceAuthorization, now: number) {
  try {
    const decision = pollDevice(found, { deviceCode, client, codeVerifier: undefined }, now)
    const [write] = decision.writes
    const isRecord = write?.op === 'update' && write.kind === 'record'
    const left: DeviceAuthorization = isRecord ? JSON.parse(write.record.body) : found
    return { code: 'rejection' in decision ? decision.rejection.code : 'approved', left }
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return { code: error.code, left: found }
  }
}

t.test('the interval of polls, to the second', async (t) => {
  const first = poll(device, 1000)
  t.match(first, { code: 'authorization_pending', left: { polledAt: 1000, intervalSeconds: 5 } })
  t.equal(poll(first.left, 1004).code, 'authorization_pending', 'one second early')
  const early = poll(first.left, 1003)
  t.match(early, { code: 'slow_down', left: { polledAt: 1003, intervalSeconds: 10 } })
  t.equal(poll(early.left, 1012).code, 'authorization_pending')
  t.match(poll(early.left, 1011), { code: 'slow_down', left: { intervalSeconds: 15 } })
})

t.test('the states of a device', async (t) => {
  const approved = { ...device, state: 'approved', userId: 'u', grantId: 'g' } as const
  t.equal(poll(approved, 1001).code, 'approved')
  t.equal(poll({ ...approved, state: 'redeemed' }, 1001).code, 'invalid_grant')
  t.equal(poll({ ...device, state: 'denied' }, 1001).code, 'access_denied')
  t.equal(poll(device, 1599).code, 'authorization_pending')
  t.equal(poll(device, 1600).code, 'expired_token')
  t.equal(poll(approved, 1600).code, 'expired_token')
  const decide = (found: DeviceAuthorization | undefined, now = 1001) =>
    decideDevice(found, { state: 'denied' }, now)
  t.match(decide(device), { result: true, writes: { length: 1 } })
  for (const over of [undefined, approved, { ...device, state: 'denied' } as const])
    t.strictSame(decide(over), { result: false, writes: [] })
  t.strictSame(decide(device, 1600), { result: false, writes: [] })
})

t.test('of several polls that found the device approved, one redeems the grant', async (t) => {
  const own = {
    identifier: 'https://id.example',
    name: 'x',
    scopes: new Set(['openid']),
    tokenFormat: 'opaque' as const,
  }
  const resources = indexResources({ ...own, accessTokenSeconds: 60 }, [])
  const lifetimes = {
    codeSeconds: 60,
    refreshTokenIdleSeconds: 600,
    refreshTokenAbsoluteSeconds: 6000,
    refreshReuseSeconds: 10,
  }
  const about = { clientId: client.id, scope: ['openid'], resource: [own.identifier] }
  const grant = { ...issueGrant(about, { id: 'g', secret: 's' }, 1000, 600), seq: 0 }
  const owner = { ...client, grantTypes: ['refresh_token'] }
  const redeem = (found: typeof grant | undefined) =>
    redeemDevice(found, device, owner, [], resources, lifetimes, 1001)
  t.match(redeem(grant), { result: { grant: { seq: 1 } }, writes: [{ op: 'redeemGrant' }, { op: 'update' }] })
  for (const lost of [{ ...grant, seq: 1 }, undefined])
    t.throws(() => redeem(lost), { code: 'invalid_grant' })
})

t.test('a code opens in five browsers', async (t) => {
  let found: DeviceAuthorization = device
  for (const browser of ['a', 'b', 'c', 'd', 'e', 'a']) {
    const opened = openDevice(found, browser, 1001)
    if (!('result' in opened) || opened.result === undefined) throw new Error(`not in ${browser}`)
    found = opened.result
  }
  t.equal(found.browsers.length, 5)
  const sixth = openDevice(found, 'f', 1001)
  t.match(sixth, { result: undefined, writes: [{ op: 'update' }] })
  t.match(JSON.stringify(sixth), /"expiresAt\\?":1001/)
  for (const over of [undefined, { ...device, state: 'denied' } as const])
    t.strictSame(openDevice(over, 'a', 1001), { result: undefined, writes: [] })
})

t.test('user codes', async (t) => {
  for (const typed of [
    'WDJB-MJHT',
    'wdjbmjht',
    ' wdjb mjht ',
    'WDJB–MJHT',
    'ｗｄｊｂ－ｍｊｈｔ',
    'w.d.j.b_mjht',
  ])
    t.equal(parseUserCode(typed), 'WDJBMJHT', typed)
  for (const typed of [
    '',
    'WDJB-MJH',
    'WDJB-MJHTT',
    'ADJB-MJHT',
    'WDJB-MJH1',
    `WDJBMJHT${' '.repeat(40)}`,
    'İDJBMJHT',
  ])
    t.equal(parseUserCode(typed), undefined, typed)
  t.equal(formatUserCode('WDJBMJHT'), 'WDJB-MJHT')
  t.equal(mintUserCode(Buffer.alloc(32)), 'BBBBBBBB')
  t.equal(mintUserCode(Buffer.alloc(32, 0xff)).length, 8)
  t.equal(userCodeOf(deviceCode), 'WDJBMJHT')
  for (const code of ['', deviceCode.slice(1), `${deviceCode}x`, `${deviceCode.slice(0, -1)}=`])
    t.equal(userCodeOf(code), undefined, code)
})
