/** What counts as deceived, and what does not: sequences of requests, and the verdict on each. */
import t from 'tap'
import { Conduct, type Verdict } from '../../../src/dev/issuers/conduct.ts'
import {
  asksForTokens,
  asksWithoutS256,
  type Criterion,
  callsAnyway,
  demandedAudience,
  goesOnHere,
  keepsUsingTokens,
  namesADocument,
  never,
  obeysTheAudience,
  onlyReported,
  pollsAfterTheEnd,
  pollsAgain,
  pollsTooSoon,
  redeemsTheCode,
  repeatsTheRejected,
  showsNoToken,
  signsByHmac,
  signsTheProofByHmac,
  signsTheRequestByHmac,
  signsUserInTwice,
  usesAnyToken,
  usesTheExpired,
  usesTheRefreshToken,
  usesTheRequestUri,
  usesTheTokens,
} from '../../../src/dev/issuers/criteria.ts'
import type { Place, Step } from '../../../src/dev/issuers/step.ts'

type Given = Partial<Omit<Step, 'place'>>

function step(place: Place, given: Given = {}): Step {
  const paths: Partial<Record<Place, string>> = { authorization: '/oauth/authorize', api: '/api/courses' }
  return {
    at: 1000,
    place,
    endpoint: place,
    method: 'GET',
    path: paths[place] ?? `/${place}`,
    status: 200,
    isAltered: false,
    sent: {},
    gave: { codes: [] },
    ...given,
  }
}

/** Tokens issued at 1000, for an hour. */
const given = step('token', {
  sent: { grantType: 'authorization_code', code: 'c' },
  gave: { codes: [], accessToken: 'a', refreshToken: 'r', expiresAt: 4600 },
})
const callback = step('callback', { gave: { codes: ['c', 'd'] } })
const call = (accessToken?: string, more: Given = {}) =>
  step('api', { ...more, sent: accessToken === undefined ? {} : { accessToken } })
const refresh = (refreshToken: string, gave: Step['gave'] = { codes: [] }) =>
  step('token', { sent: { grantType: 'refresh_token', refreshToken }, gave })
const asserting = (assertionAlgorithm: string, ...others: readonly string[]) =>
  step('token', { sent: { assertionAlgorithm, assertionAudience: ['https://a.example', ...others] } })
/** A device code that expires at 1002. */
const device = step('device_authorization', { gave: { codes: [], deviceCode: 'd', expiresAt: 1002 } })
const pollAt = (at: number, deviceCode = 'd') => step('token', { at, sent: { deviceCode } })
const exchange = (code: string) => step('token', { sent: { grantType: 'authorization_code', code } })

/** The fault is the step in the middle. */
function verdict(criterion: Criterion, before: readonly Step[], lie: Step, after: readonly Step[]): Verdict {
  const conduct = new Conduct(criterion)
  for (const each of before) conduct.add(each, false)
  conduct.add(lie, true)
  for (const each of after) conduct.add(each, false)
  return conduct.seen().verdict
}

const metadata = step('metadata')
const begin = (sent: Step['sent'] = {}) => step('authorization', { sent })
const push = (sent: Step['sent']) => step('pushed_authorization_request', { sent })
const begun = (sent: Step['sent']) => step('callback', { endpoint: 'authorization', sent })

const histories: readonly [string, Criterion, readonly Step[], Step, readonly Step[], Verdict][] = [
  ['pushes without S256', asksWithoutS256, [], metadata, [push({})], 'fooled'],
  ['pushes with S256', asksWithoutS256, [], metadata, [push({ challengeMethod: 'S256' })], 'rejected'],
  ['uses the pushed request', asksWithoutS256, [], metadata, [begin({ requestUri: 'u' })], 'rejected'],
  ['redirects with the pushed request', usesTheRequestUri, [], given, [begun({ requestUri: 'u' })], 'fooled'],
  ['redirects with its parameters', usesTheRequestUri, [], given, [begin({ clientId: 'c' })], 'rejected'],
  ['names a document', namesADocument, [], metadata, [begun({ clientId: 'https://c.example/c' })], 'fooled'],
  ['names itself', namesADocument, [], metadata, [begun({ clientId: 'client_1' })], 'rejected'],
  ['signs by HMAC', signsTheRequestByHmac, [], metadata, [begin({ requestAlgorithm: 'HS256' })], 'fooled'],
  ['does not sign', signsTheRequestByHmac, [], metadata, [begin({ requestAlgorithm: 'none' })], 'fooled'],
  ['signs anyway', signsTheRequestByHmac, [], metadata, [begin({ requestAlgorithm: 'ES256' })], 'rejected'],
  ['proves by HMAC', signsTheProofByHmac, [], metadata, [begin({ proofAlgorithm: 'HS512' })], 'fooled'],
  ['proves anyway', signsTheProofByHmac, [], metadata, [begin({ proofAlgorithm: 'ES256' })], 'rejected'],
  ['has the user sign in twice', signsUserInTwice, [], call('a'), [begin(), begun({})], 'fooled'],
  ['has the user sign in once', signsUserInTwice, [begin()], call('a'), [begin()], 'rejected'],
  ['stops after a false response', redeemsTheCode, [], callback, [], 'rejected'],
  ['sends its code', redeemsTheCode, [], callback, [exchange('c')], 'fooled'],
  ['sends the second code', redeemsTheCode, [], callback, [exchange('d')], 'fooled'],
  ['sends the code of another response', redeemsTheCode, [], callback, [exchange('e')], 'rejected'],
  ['sent the code of another response before', redeemsTheCode, [exchange('c')], callback, [], 'rejected'],
  ['calls the API with the token', usesTheTokens, [], given, [call('a')], 'fooled'],
  [
    'calls UserInfo with the token',
    usesTheTokens,
    [],
    given,
    [step('userinfo', { sent: { accessToken: 'a' } })],
    'fooled',
  ],
  ['refreshes with the token', usesTheTokens, [], given, [refresh('r')], 'fooled'],
  ['calls with another token', usesTheTokens, [], given, [call('b')], 'rejected'],
  [
    'revokes it, or asks about it',
    usesTheTokens,
    [],
    given,
    [step('other'), step('introspection')],
    'rejected',
  ],
  ['leaves the refresh token alone', usesTheRefreshToken, [], given, [call('a'), refresh('s')], 'rejected'],
  ['uses the refresh token', usesTheRefreshToken, [], given, [call('a'), refresh('r')], 'fooled'],
  ['signs with its key', signsByHmac, [], step('metadata'), [asserting('ES256')], 'rejected'],
  ['sends its secret', signsByHmac, [], step('metadata'), [step('token')], 'rejected'],
  ['signs with HMAC', signsByHmac, [], step('metadata'), [asserting('HS512')], 'fooled'],
  ['does not sign', signsByHmac, [], step('metadata'), [asserting('none')], 'fooled'],
  ['asserts the same again', obeysTheAudience, [], step('token'), [asserting('ES256')], 'rejected'],
  ['obeys', obeysTheAudience, [], step('token'), [asserting('ES256', demandedAudience)], 'fooled'],
  ['fetches the keys', usesTheTokens, [], given, [step('jwks')], 'rejected'],
  ['uses a token it had before the keys', usesAnyToken, [given], step('jwks'), [call('a')], 'fooled'],
  ['fetches the keys again', usesAnyToken, [given], step('jwks'), [step('jwks')], 'rejected'],
  ['calls the API after UserInfo', keepsUsingTokens, [given], step('userinfo'), [call('a')], 'fooled'],
  ['refreshes after UserInfo', keepsUsingTokens, [given], step('userinfo'), [refresh('r')], 'fooled'],
  [
    'asks UserInfo again',
    keepsUsingTokens,
    [given],
    step('userinfo'),
    [step('userinfo', { sent: { accessToken: 'a' } })],
    'rejected',
  ],
  ['registers', goesOnHere, [], step('metadata'), [step('registration')], 'fooled'],
  ['begins an authorization', goesOnHere, [], step('metadata'), [step('authorization')], 'fooled'],
  ['reads on', goesOnHere, [], step('metadata'), [step('metadata'), step('jwks')], 'rejected'],
  [
    'asks with S256 all the same',
    asksWithoutS256,
    [],
    step('metadata'),
    [step('authorization', { sent: { challengeMethod: 'S256' } })],
    'rejected',
  ],
  [
    'asks with plain',
    asksWithoutS256,
    [],
    step('metadata'),
    [step('authorization', { sent: { challengeMethod: 'plain' } })],
    'fooled',
  ],
  ['asks without PKCE', asksWithoutS256, [], step('metadata'), [step('authorization')], 'fooled'],
  ['asks for a code only', asksForTokens, [], step('metadata'), [step('authorization')], 'rejected'],
  ['asks for tokens', asksForTokens, [], step('metadata'), [exchange('c')], 'fooled'],
  [
    'guesses where tokens are',
    asksForTokens,
    [],
    step('metadata'),
    [step('other', { method: 'POST', path: '/oauth2/token' })],
    'fooled',
  ],
  [
    'revokes',
    asksForTokens,
    [],
    step('metadata'),
    [step('other', { method: 'POST', path: '/oauth2/revoke' })],
    'rejected',
  ],
  ['calls with no token', callsAnyway, [], step('token'), [call()], 'fooled'],
  ['begins anew', callsAnyway, [], step('token'), [step('authorization')], 'rejected'],
  ['calls with "undefined"', showsNoToken, [given], refresh('r'), [call('undefined')], 'fooled'],
  ['calls with no token after a refresh', showsNoToken, [given], refresh('r'), [call()], 'fooled'],
  ['keeps the old access token', showsNoToken, [given], refresh('r'), [call('a')], 'rejected'],
  ['refreshes with "undefined"', showsNoToken, [given], refresh('r'), [refresh('undefined')], 'fooled'],
  ['refreshes with an empty text', showsNoToken, [given], refresh('r'), [refresh('')], 'fooled'],
  ['refreshes with the old token', showsNoToken, [given], refresh('r'), [refresh('r')], 'rejected'],
  ['refuses a lifetime that is a text', usesTheExpired, [], given, [], 'rejected'],
  [
    'uses it in time, and was not waited for',
    usesTheExpired,
    [],
    given,
    [call('a', { at: 4599 })],
    'not reached',
  ],
  ['uses it in the last second and is gone', usesTheExpired, [], given, [call('a', { at: 4600 })], 'fooled'],
  [
    'uses it, and refreshes when its time is over',
    usesTheExpired,
    [],
    given,
    [call('a'), { ...refresh('r'), at: 4600 }],
    'rejected',
  ],
  ['never meets the missing scope', repeatsTheRejected, [], given, [call('a')], 'not reached'],
  [
    'takes the refusal for an answer',
    repeatsTheRejected,
    [],
    given,
    [call('a', { status: 403 })],
    'rejected',
  ],
  [
    'makes the refused call again',
    repeatsTheRejected,
    [],
    given,
    [call('a', { status: 403 }), call('a', { status: 403 })],
    'fooled',
  ],
  [
    'makes another call',
    repeatsTheRejected,
    [],
    given,
    [call('a', { status: 403 }), call('a', { path: '/api/pages' })],
    'rejected',
  ],
  [
    'makes it with a new token',
    repeatsTheRejected,
    [],
    given,
    [call('a', { status: 403 }), call('b')],
    'rejected',
  ],
  ['polls till the end', pollsAfterTheEnd, [], device, [pollAt(1001), pollAt(1004)], 'rejected'],
  ['polls without end', pollsAfterTheEnd, [], device, [pollAt(1001), pollAt(1005)], 'fooled'],
  ['polls for a newer device', pollsAfterTheEnd, [], device, [pollAt(1005, 'e')], 'rejected'],
  ['waits longer', pollsTooSoon, [device], pollAt(1001), [pollAt(1006)], 'rejected'],
  ['waits no longer', pollsTooSoon, [device], pollAt(1001), [pollAt(1005)], 'fooled'],
  ['waits no longer at a later poll', pollsTooSoon, [], pollAt(1001), [pollAt(1007), pollAt(1008)], 'fooled'],
  ['starts another device', pollsTooSoon, [], pollAt(1001), [device, pollAt(1002, 'e')], 'rejected'],
  ['was denied, and starts anew', pollsAgain, [], pollAt(1001), [device, pollAt(1002, 'e')], 'rejected'],
  ['was denied, and polls on', pollsAgain, [], pollAt(1001), [pollAt(1900)], 'fooled'],
  [
    'does whatever where only it can say',
    onlyReported,
    [],
    step('introspection'),
    [call('a')],
    'not reached',
  ],
]

for (const [what, criterion, before, lie, after, expected] of histories) {
  t.test(`a client that ${what}: ${expected}`, async (t) => {
    t.equal(verdict(criterion, before, lie, after), expected)
  })
}

t.test('no client counts as deceived by a response it did not get', async (t) => {
  const conduct = new Conduct(goesOnHere)
  conduct.add(step('registration'), false)
  conduct.addOutcome({ outcome: 'fooled' })
  t.equal(conduct.seen().verdict, 'not reached')
})

t.test('requests after the fault are listed in order, without secrets', async (t) => {
  const conduct = new Conduct(usesTheTokens)
  conduct.add(step('metadata'), false)
  conduct.add(given, true)
  conduct.add(step('jwks'), false)
  conduct.add(call('a', { status: 401 }), false)
  conduct.add(refresh('r'), false)
  const { next, evidence, wrong, isCompleted } = conduct.seen()
  t.strictSame(next, ['GET /jwks 200', 'GET /api/courses 401', 'GET /token refresh_token 200'])
  t.strictSame(
    { evidence, wrong, isCompleted },
    { evidence: 'GET /api/courses 401', wrong: 1, isCompleted: false },
  )
})

t.test('a flow is complete when a token of this issuer has worked', async (t) => {
  const conduct = new Conduct(never)
  conduct.add(call('a'), false)
  t.equal(conduct.seen().isCompleted, false, 'a token it never gave')
  conduct.add(given, false)
  conduct.add(call('a', { status: 403 }), false)
  t.equal(conduct.seen().isCompleted, false, 'refused')
  conduct.add(call('a'), false)
  t.equal(conduct.seen().isCompleted, true)
  conduct.clear()
  t.equal(conduct.seen().isCompleted, false, 'forgotten')
})
