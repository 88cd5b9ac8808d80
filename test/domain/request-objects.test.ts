import t from 'tap'
import type { Client } from '../../src/domain/model.ts'
import {
  assertSigned,
  hasRequestObject,
  notFetched,
  parseRequestObject,
  readRequestUris,
  readSent,
  signatureRules,
  signedExtra,
} from '../../src/specs/rfc9101-request-objects/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { publicClient } from '../helpers/samples.ts'

const uri = 'https://rp.example/request.jwt'
const pushedUri = 'urn:ietf:params:oauth:request_uri:abc'
const withUris: Client = { ...publicClient, extra: { request_uris: [uri] } }
const code = 'invalid_request_object'

t.test('a request has a request object in itself, or at a URI that is no pushed request', async (t) => {
  for (const parameters of [
    { request: 'a.b.c' },
    { request: 'a.b.c', request_uri: pushedUri },
    { request_uri: uri },
    { request_uri: [uri, uri] },
    { request_uri: 'https://rp.example/urn:ietf:params:oauth:request_uri:' },
  ])
    t.equal(hasRequestObject(parameters), true, JSON.stringify(parameters))
  for (const parameters of [{}, { request_uri: pushedUri }, { scope: 'openid' }])
    t.equal(hasRequestObject(parameters), false, JSON.stringify(parameters))
})

t.test('a request object is sent in one way, and its URI is registered', async (t) => {
  t.strictSame(readSent({ request: 'a.b.c' }, publicClient), { value: 'a.b.c' })
  t.strictSame(readSent({ request_uri: uri }, withUris), { uri })
  t.strictSame(readSent({}, publicClient), { value: '' }, 'no text is no request object')
  t.strictSame(
    passedDuring(() => readSent({ request_uri: uri }, withUris)),
    [
      {
        rule: 'rfc9101-5-not-both',
        found: 'the request is sent by value or by reference',
        stored: undefined,
        received: undefined,
      },
      {
        rule: 'rfc9101-10.4-ssrf-dos',
        found: 'request_uri is registered',
        stored: [uri],
        received: uri,
      },
    ],
  )
  t.throws(() => readSent({ request: 'a.b.c', request_uri: uri }, withUris), {
    code: 'invalid_request',
    message: 'request and request_uri exclude each other',
    detail: { rule: 'rfc9101-5-not-both' },
  })
  for (const [client, received, stored] of [
    [withUris, `${uri}?a`, [uri]],
    [publicClient, uri, []],
  ] as const)
    t.throws(() => readSent({ request_uri: received }, client), {
      code: 'invalid_request_uri',
      message: 'request_uri is not registered for this client (lychgate client set --request-uris)',
      detail: { rule: 'rfc9101-10.4-ssrf-dos', stored, received },
    })
})

t.test('what cannot be fetched is an error of the reference, with its cause', async (t) => {
  const cause = new Error('no route')
  const { code, message, detail } = notFetched(uri, cause)
  t.strictSame(
    { code, message, detail },
    {
      code: 'invalid_request_uri',
      message: 'the request object at request_uri cannot be fetched',
      detail: { rule: 'rfc9101-5.2.3-fetch', stored: uri, received: 'Error: no route', cause },
    },
  )
})

t.test('a request object is one signed JWT', async (t) => {
  const encode = (text: string) => Buffer.from(text).toString('base64url')
  const signed = `${encode('{"alg":"ES256"}')}.${encode('{"scope":"openid"}')}`
  t.strictSame(parseRequestObject(`${signed}.c2ln`), {
    header: { alg: 'ES256' },
    claims: { scope: 'openid' },
    signed,
    signature: Buffer.from('sig'),
  })
  const encrypted = 'the request object is encrypted, which is not supported; sign it only'
  const unsigned = 'the request object is not signed'
  const other = 'the request object is not one signed JWT without repeated members'
  for (const [text, rule, message] of [
    ['a.b.c.d.e', 'rfc9101-6.1-decryption', encrypted],
    ['a....', 'rfc9101-6.1-decryption', encrypted],
    [`${signed}.`, 'rfc9101-10.5-require-signed', unsigned],
    ...['', '~a.b.c.d.e', 'a.b.c.d.e.f', 'a.b.c.d.e~', '~a.b.', 'a.b', 'a.b.c', `${signed}.c2ln.`].map(
      (text) => [text, 'rfc9101-4-signed-jwt', other] as const,
    ),
  ] as const)
    t.throws(() => parseRequestObject(text), { code, message, detail: { rule } }, text)
  t.strictSame(signatureRules, {
    code,
    signature: 'rfc9101-6.2-signature',
    algorithm: 'rfc9101-6.2-signature',
  })
})

t.test('a client signs its requests where it registered to, or the server demands it', async (t) => {
  t.strictSame(signedExtra, { requestObject: true })
  const registered = (value: unknown): Client => ({
    ...publicClient,
    extra: { require_signed_request_object: value },
  })
  const rule = 'rfc9101-10.5-require-signed'
  const [free, was] = ['the request need not be signed', 'the request was signed']
  for (const [client, extra, isRequired, found] of [
    [publicClient, {}, false, free],
    [registered(false), {}, false, free],
    [publicClient, signedExtra, false, free],
    [registered(true), signedExtra, false, was],
    [publicClient, signedExtra, true, was],
  ] as const)
    t.strictSame(
      passedDuring(() => assertSigned(client, extra, isRequired)),
      [{ rule, found, stored: undefined, received: undefined }],
    )
  const byServer = 'this server accepts signed authorization requests only (requestObjects.required)'
  const byClient = 'this client registered to sign its authorization requests (require_signed_request_object)'
  for (const [client, isRequired, message] of [
    [publicClient, true, byServer],
    [registered(true), true, byServer],
    [registered(true), false, byClient],
  ] as const)
    t.throws(() => assertSigned(client, { pushedRequest: {} }, isRequired), {
      code: 'invalid_request',
      message,
      detail: { rule },
    })
})

t.test('the URIs of request objects are https or loopback, and at most twenty', async (t) => {
  const readUris = (value: unknown) => readRequestUris({ request_uris: value }, 'request_uris')
  const right = [uri, 'HTTPS://rp.example/r#v1', 'http://127.0.0.1:8080#v1', 'http://[::1]/r?a=b']
  t.strictSame(readUris(right), right)
  t.strictSame(readUris([uri]), [uri])
  for (const none of [undefined, null, []]) t.equal(readUris(none), undefined)
  const many = (count: number) => Array.from({ length: count }, (_, at) => `${uri}?${at}`)
  t.equal(readUris(many(20))?.length, 20)
  const metadata = 'invalid_client_metadata'
  t.throws(() => readUris(many(21)), { code: metadata, message: 'request_uris has more than 20 entries' })
  for (const value of [uri, [7], {}])
    t.throws(() => readUris(value), { code: metadata, message: 'request_uris must be an array of strings' })
  for (const received of ['http://rp.example/r', 'http://rp.example/https:', 'http://127.0.0.2/r', ''])
    t.throws(() => readUris([uri, received]), {
      code: metadata,
      message: 'request_uris must have https URIs only',
      detail: { rule: 'oidc-reg-2-request-uris', received },
    })
  t.throws(() => readUris(['ftp://rp.example/r']), { code: metadata, message: /absolute http or https URI/ })
})
