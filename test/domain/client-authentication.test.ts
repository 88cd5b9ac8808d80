import t from 'tap'
import {
  type AuthenticationMethod,
  authenticateClient,
  parseClientCredentials,
} from '../../src/domain/client-authentication.ts'
import type { OAuthError } from '../../src/domain/errors.ts'
import type { Client } from '../../src/domain/model.ts'
import { parseParameters } from '../../src/domain/parameters.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { passedDuring } from '../helpers/checks.ts'
import { clientMethods, methodNames, readCredentials } from '../helpers/client-methods.ts'
import { publicClient } from '../helpers/samples.ts'

const [token, introspection] = [{ alwaysUnauthorized: false }, { alwaysUnauthorized: true }]
const basic = (text: string | Buffer) => `Basic ${Buffer.from(text).toString('base64')}`
const parse = (authorization: string | undefined, form = '', realm = token) =>
  readCredentials(
    authorization,
    parseParameters(form, { parameters: 100, parameterBytes: 8192 }),
    realm.alwaysUnauthorized,
  )

t.test('credentials come from the form', async (t) => {
  t.strictSame(parse(undefined, 'client_id=a'), { method: 'none', clientId: 'a' })
  t.strictSame(parse(undefined, 'client_id=a&client_secret='), { method: 'none', clientId: 'a' })
  t.strictSame(parse(undefined, 'client_id=a&client_secret=s'), {
    method: 'client_secret_post',
    clientId: 'a',
    clientSecret: 's',
  })
})

t.test('credentials can come from the header: split at the first colon, then form-decoded', async (t) => {
  const rows: [header: string, clientId: string, clientSecret: string][] = [
    [basic('a:s'), 'a', 's'],
    [basic('a:s').replace('Basic', 'bAsIc'), 'a', 's'],
    [basic('a:s').replace('Basic ', 'Basic   '), 'a', 's'],
    [basic('a:b:c'), 'a', 'b:c'],
    [basic('a%3Ab:%25%2B+%C3%A9'), 'a:b', '%+ é'],
    [basic('a:'), 'a', ''],
    [basic('a:s').replace(/=+$/, ''), 'a', 's'],
  ]
  for (const [header, clientId, clientSecret] of rows) {
    t.strictSame(parse(header), { method: 'client_secret_basic', clientId, clientSecret }, header)
    t.match(parse(header, `client_id=${encodeURIComponent(clientId)}`), { clientId })
  }
})

t.test('a broken header is invalid_client with a Basic challenge', async (t) => {
  for (const header of [
    '',
    'Basic',
    'Basic ',
    'Basic *',
    'Bearer abc',
    'Digest a',
    basic('nocolon'),
    basic(':s'),
    basic('%zz:s'),
    basic('a:%'),
    basic('a:%FF'),
    basic('a%00:s'),
    basic('a:s\0'),
    `${basic('a:s')}, ${basic('b:s')}`,
  ]) {
    t.throws(
      () => parse(header),
      { code: 'invalid_client', status: 401, headers: { 'www-authenticate': /^Basic realm=/ } },
      JSON.stringify(header),
    )
  }
})

t.test('two methods at once are invalid_request', async (t) => {
  const detail = { rule: 'rfc6749-2.3-one-auth-method' }
  t.throws(() => parse(basic('a:s'), 'client_id=a&client_secret=s'), {
    code: 'invalid_request',
    status: 400,
    message:
      /^the client authenticates by (header and by client_secret|client_secret and by header) at once$/,
    detail,
  })
  const reversed = Object.values(clientMethods).reverse()
  const form = parseParameters('client_secret=s', { parameters: 100, parameterBytes: 8192 })
  t.throws(() => parseClientCredentials(reversed, basic('a:s'), form, token), {
    message: 'the client authenticates by client_secret and by header at once',
  })
  t.throws(() => parse(basic('a:s'), 'client_secret=s'), { code: 'invalid_request', detail })
  t.throws(() => parse(basic('a:s'), 'client_id=b'), {
    code: 'invalid_request',
    message: 'client_id differs from the one in the Authorization header',
    detail: { ...detail, stored: 'a', received: 'b' },
  })
  t.throws(() => parse(undefined, 'client_id=a&client_id=b'), { code: 'invalid_request' })
  t.throws(() => parse(undefined, 'client_id=a&client_secret=s&client_secret=s'), { code: 'invalid_request' })
})

t.test(
  'without client_id the error is invalid_request, and invalid_client at endpoints that always respond 401',
  async (t) => {
    const detail = { rule: 'rfc6749-3.2.1-public-sends-client-id' }
    t.throws(() => parse(undefined), { code: 'invalid_request', status: 400, detail })
    t.throws(() => parse(undefined, 'client_secret=s', introspection), {
      code: 'invalid_client',
      status: 401,
      headers: { 'www-authenticate': /^Basic/ },
    })
  },
)

const secret = 'lyc_secret_x'
const clientWith = (authenticationMethod: string): Client => ({
  ...publicClient,
  authenticationMethod,
  ...(authenticationMethod !== 'none' && { secretHash: hashSecret(secret) }),
})
type Method = (typeof methodNames)[number]
async function authenticate(
  client: Client | undefined,
  name: Method,
  proof: string | undefined,
  realm = token,
) {
  const method = clientMethods[name]
  return authenticateClient(client, { method, proof }, await method.verify(client, proof), realm)
}

t.test('only the registered method with the right secret succeeds', async (t) => {
  for (const registered of methodNames) {
    for (const method of methodNames) {
      for (const clientSecret of [undefined, '', 'wrong', secret]) {
        const client = clientWith(registered)
        // A credential without a secret always comes by `none`, and one with a secret never does.
        if ((method === 'none') !== (clientSecret === undefined)) continue
        const isRight = method === registered && (method === 'none' || clientSecret === secret)
        const about = `${registered}, by ${method} with ${clientSecret}`
        const outcome = authenticate(client, method, clientSecret)
        if (isRight) t.equal(await outcome, client, about)
        else await t.rejects(outcome, { code: 'invalid_client' }, about)
      }
    }
  }
})

t.test('an authentication names its rule, passed or failed', async (t) => {
  const method = clientMethods.client_secret_basic
  const client = clientWith('client_secret_basic')
  const passed = passedDuring(() => {
    authenticateClient(client, { method, proof: secret }, undefined, token)
    authenticateClient(clientWith('none'), { method: clientMethods.none, proof: undefined }, undefined, token)
  })
  t.match(passed, [
    { rule: 'rfc6749-3.2.1-confidential-must-authenticate', received: 'client_secret_basic' },
    { rule: 'rfc6749-3.2.1-public-sends-client-id', received: 'none' },
  ])
  await t.rejects(authenticate(client, 'client_secret_post', secret), {
    code: 'invalid_client',
    detail: { rule: 'oidc-core-9-registered-method-enforced', received: 'client_secret_post' },
  })
  await t.rejects(authenticate(undefined, 'client_secret_basic', secret), {
    code: 'invalid_client',
    detail: {
      rule: 'rfc6749-5.2-invalid-client-400-or-401',
      stored: 'no client with this client_id',
      received: 'client_secret_basic',
    },
  })
  await t.rejects(authenticate(client, 'client_secret_basic', 'wrong'), {
    code: 'invalid_client',
    detail: { stored: 'client_secret_basic', received: /^client_secret_basic, with another secret$/ },
  })
})

t.test('the log has what a failed proof contains, unless the method or the client is another', async (t) => {
  const method = clientMethods.client_secret_basic
  const failed = { rule: 'rule', why: 'expired', stored: 'now', received: 'then' }
  const detailFor = (client: Client | undefined) => {
    try {
      return authenticateClient(client, { method, proof: 'x' }, failed, token)
    } catch (error) {
      return (error as OAuthError).detail // It throws nothing else.
    }
  }
  t.match(detailFor(clientWith('client_secret_basic')), {
    rule: 'rule',
    stored: 'now',
    received: 'client_secret_basic, expired: then',
  })
  t.match(detailFor(clientWith('client_secret_post')), {
    rule: 'oidc-core-9-registered-method-enforced',
    stored: 'client_secret_post',
    received: 'client_secret_basic',
  })
  t.match(detailFor(undefined), {
    rule: 'rule',
    stored: 'no client with this client_id',
    received: 'client_secret_basic',
  })
})

t.test('a locked client is rejected with its right secret too', async (t) => {
  const client = { ...clientWith('client_secret_post'), lockedAt: 1 }
  await t.rejects(authenticate(client, 'client_secret_post', secret), {
    code: 'invalid_client',
    detail: { rule: 'lychgate-client-locked', stored: 'client_secret_post', received: /an operator locked/ },
  })
  await t.rejects(authenticate(client, 'client_secret_post', 'wrong'), {
    code: 'invalid_client',
    detail: { received: 'client_secret_post, with another secret' },
  })
})

t.test('an unknown client, a wrong secret and a wrong method get the same error', async (t) => {
  const rejection = async (client: Client | undefined, method: Method, realm = token) => {
    try {
      await authenticate(client, method, 'wrong', realm)
    } catch (error) {
      const { code, message, status, headers } = error as {
        code: string
        message: string
        status: number
        headers: object
      }
      return { code, message, status, headers }
    }
    throw new Error('accepted')
  }
  for (const method of ['client_secret_post', 'client_secret_basic'] as const) {
    const [unknown, known, other] = await Promise.all(
      [undefined, clientWith(method), clientWith('none')].map((client) => rejection(client, method)),
    )
    t.strictSame(unknown, known)
    t.strictSame(unknown, other)
    t.equal(unknown?.status, method === 'client_secret_basic' ? 401 : 400)
    t.equal('www-authenticate' in (unknown?.headers ?? {}), method === 'client_secret_basic')
    t.match(await rejection(undefined, method, introspection), {
      status: 401,
      headers: { 'www-authenticate': /^Basic/ },
    })
  }
})

t.test('a method that finds the client of a proof needs no client_id', async (t) => {
  const method: AuthenticationMethod = {
    name: 'by_proof',
    parameter: 'proof',
    read: () => ({ proof: 'x' }),
    verify: () => undefined,
    findClientId: async () => 'a',
  }
  const none = parseParameters('', { parameters: 100, parameterBytes: 8192 })
  t.strictSame(parseClientCredentials([method], undefined, none, token), {
    method,
    clientId: undefined,
    proof: 'x',
  })
  const { findClientId: _, ...plain } = method
  t.throws(() => parseClientCredentials([plain], undefined, none, token), {
    code: 'invalid_request',
    message: 'client_id is missing',
  })
})

t.test(
  'a rejected proof is described where no client was found by it, and hidden where one might be',
  async (t) => {
    const [failed, method] = [{ why: 'with another key', received: 'k1' }, clientMethods.client_secret_post]
    const received = (namesNoClient?: true) => {
      try {
        authenticateClient(
          undefined,
          { method, proof: 'x' },
          { ...failed, ...(namesNoClient && { namesNoClient }) },
          token,
        )
        return undefined
      } catch (error) {
        return (error as OAuthError).detail.received
      }
    }
    t.equal(received(), 'client_secret_post')
    t.equal(received(true), 'client_secret_post, with another key: k1')
  },
)
