import t from 'tap'
import { OAuthError } from '../../src/domain/errors.ts'
import type { AuthorizationRequest, Client } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  asPushError,
  assertNoReference,
  assertPushed,
  assertUsable,
  endedRequestKind,
  endOf,
  extraOf,
  type PushedRequest,
  pushedRequestKind,
  pushRequest,
  referredId,
  withLoaded,
} from '../../src/specs/rfc9126-pushed-requests/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { authorizationRequest, otherClient, publicClient } from '../helpers/samples.ts'

const now = 1_800_000_000
const secret = Buffer.alloc(32, 9)
const requestUri = `urn:ietf:params:oauth:request_uri:${secret.toString('base64url')}`
const sent = { response_type: 'code', resource: ['https://a.example', 'https://b.example'] }
const pushed: PushedRequest = {
  id: hashSecret(requestUri),
  clientId: publicClient.id,
  parameters: { ...sent, client_id: publicClient.id },
  expiresAt: now + 90,
}

t.test('a pushed request is stored for its client, without credentials', async (t) => {
  const credentials = { client_secret: 's', client_assertion: 'a.b.c', client_assertion_type: 'urn:type' }
  t.strictSame(pushRequest({ ...sent, ...credentials }, publicClient, secret, 90, now), {
    pushed,
    requestUri,
  })
  const named = pushRequest({ ...sent, client_id: 'another' }, publicClient, secret, 90, now)
  t.equal(named.pushed.parameters['client_id'], publicClient.id, 'the client that has authenticated')
})

t.test('what was loaded takes the place of what was pushed', async (t) => {
  const parameters = { response_type: 'code', state: 'inside' }
  t.strictSame(withLoaded(pushed, { parameters }), { ...pushed, parameters })
  const extra = { requestObject: true }
  t.strictSame(withLoaded(pushed, { parameters, extra }), { ...pushed, parameters, extra })
})

t.test('a record of a pushed request goes with its client, and ends with its time', async (t) => {
  const { id, clientId, expiresAt } = pushed
  t.match(pushedRequestKind.rowOf(pushed), { kind: 'pushed-request', id, clientId, expiresAt })
  t.match(endedRequestKind.rowOf({ id, expiresAt }), { kind: 'ended-pushed-request', id, expiresAt })
})

t.test('a reference cannot be pushed', async (t) => {
  t.strictSame(
    passedDuring(() => assertNoReference(sent)),
    [
      {
        rule: 'rfc9126-2.1-reject-request-uri',
        found: 'the push has no request_uri',
        stored: undefined,
        received: undefined,
      },
    ],
  )
  for (const value of [requestUri, [requestUri, requestUri]])
    t.throws(() => assertNoReference({ ...sent, request_uri: value }), {
      code: 'invalid_request',
      message: 'request_uri must not be pushed; push the parameters themselves',
      detail: { rule: 'rfc9126-2.1-reject-request-uri' },
    })
})

t.test('a request refers to a pushed one by a URI of this form alone', async (t) => {
  t.equal(referredId({ request_uri: requestUri }), pushed.id)
  for (const other of ['https://rp.example/urn:ietf:params:oauth:request_uri:', 'urn:other', undefined])
    t.equal(referredId({ request_uri: other }), undefined, String(other))
  t.throws(() => referredId({ request_uri: [requestUri, requestUri] }), {
    code: 'invalid_request',
    message: 'request_uri must not be repeated',
  })
})

t.test('a reference is usable in time, by the client that pushed the request', async (t) => {
  const parameters = { client_id: publicClient.id, request_uri: requestUri }
  t.strictSame(
    passedDuring(() => assertUsable(pushed, parameters, now + 89)),
    [
      {
        rule: 'rfc9126-4-one-time',
        found: 'request_uri is known and has not expired',
        stored: now + 90,
        received: now + 89,
      },
      {
        rule: 'rfc9126-2.2-unguessable-and-bound',
        found: 'request_uri was pushed by this client',
        stored: publicClient.id,
        received: publicClient.id,
      },
    ],
  )
  const over = 'request_uri is unknown, has expired or was used; push the request again'
  t.throws(() => assertUsable(pushed, parameters, now + 90), {
    code: 'invalid_request_uri',
    message: over,
    detail: { rule: 'rfc9126-4-one-time', stored: now + 90, received: now + 90 },
  })
  t.throws(() => assertUsable(undefined, parameters, now), {
    code: 'invalid_request_uri',
    message: over,
    detail: { rule: 'rfc9126-4-one-time', stored: undefined, received: now },
  })
  for (const id of [otherClient.id, undefined])
    t.throws(() => assertUsable(pushed, { ...parameters, client_id: id }, now), {
      code: 'invalid_request_uri',
      message: 'request_uri was pushed by another client, or client_id is missing',
      detail: { rule: 'rfc9126-2.2-unguessable-and-bound', stored: publicClient.id, received: id },
    })
})

t.test('a client pushes its requests where it registered to, or the server demands it', async (t) => {
  const registered = (value: unknown): Client => ({
    ...publicClient,
    extra: { require_pushed_authorization_requests: value },
  })
  const rule = 'rfc9126-5-require-par'
  const passing = [
    [publicClient, {}, false, 'the request need not be pushed'],
    [registered(false), {}, false, 'the request need not be pushed'],
    [publicClient, extraOf(pushed), false, 'the request need not be pushed'],
    [registered(true), extraOf(pushed), false, 'the request was pushed'],
    [publicClient, extraOf(pushed), true, 'the request was pushed'],
  ] as const
  for (const [client, extra, isRequired, found] of passing)
    t.strictSame(
      passedDuring(() => assertPushed(client, extra, isRequired)),
      [{ rule, found, stored: undefined, received: undefined }],
    )
  const byServer = 'this server accepts pushed authorization requests only (pushedRequests.required)'
  const byClient =
    'this client registered to push its authorization requests (require_pushed_authorization_requests)'
  for (const [client, isRequired, message] of [
    [publicClient, true, byServer],
    [registered(true), true, byServer],
    [registered(true), false, byClient],
  ] as const)
    t.throws(() => assertPushed(client, { requestObject: true }, isRequired), {
      code: 'invalid_request',
      message,
      detail: { rule },
    })
})

t.test('an authorization ends its pushed request for as long as a page may be open', async (t) => {
  t.strictSame(extraOf(pushed), { pushedRequest: { id: pushed.id, expiresAt: now + 90 } })
  const request: AuthorizationRequest = { ...authorizationRequest, extra: extraOf(pushed) }
  t.strictSame(endOf(request, 600), [
    { op: 'deleteRecord', kind: 'pushed-request', key: pushed.id },
    {
      op: 'insert',
      kind: 'record',
      record: endedRequestKind.rowOf({ id: pushed.id, expiresAt: now + 690 }),
    },
  ])
  for (const other of [authorizationRequest, { ...authorizationRequest, extra: {} }])
    t.equal(endOf(other, 600), undefined)
})

t.test('a push gets no error about a user, and every other error unchanged', async (t) => {
  const detail = { rule: 'oidc-core-3.1.2.1-prompt-none' }
  const aboutUser = asPushError(new OAuthError('login_required', 'the user must sign in', detail))
  t.match(aboutUser, { code: 'invalid_request', message: 'the user must sign in', detail })
  t.ok(aboutUser instanceof OAuthError)
  const others = [
    new OAuthError('invalid_scope', 'scope is unknown', detail),
    new Error('login_required'),
    { code: 'login_required' },
  ]
  for (const other of others) t.equal(asPushError(other), other)
})
