/** The Express API as its README starts it, against tokens of every kind. */
import t from 'tap'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { authorizationUrl, exchange, register, type Tokens } from '../helpers/flow.ts'
import { callAt } from '../helpers/guarded-api.ts'

const { issuer, user, resource: resourceAt, process: lychgate } = await startExampleServer(t)
const resource = resourceAt('http://127.0.0.1:9501')
const client = await register({ issuer })
const api = runExample(t, ['express-api/server.ts'], { ISSUER: issuer, RESOURCE: resource })
await api.until(/Library is ready at .*\n/)
const metadata = `${resource}/.well-known/oauth-protected-resource`

async function obtainTokens(scope: string, at: string): Promise<Tokens> {
  const landed = await user.approve(authorizationUrl({ issuer }, client, { scope, resource: at }))
  const response = await exchange({ issuer }, client, landed.searchParams.get('code') ?? '')
  return (await response.json()) as Tokens
}

function add(token: string, body: unknown): Promise<Response> {
  return fetch(`${resource}/books`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

t.test(
  'the Express API names the source of its tokens, and serves anonymous callers where it may',
  async (t) => {
    t.match(await callAt(metadata), {
      status: 200,
      body: { resource, authorization_servers: [issuer], resource_name: 'Library' },
    })
    t.match(await callAt(`${resource}/books/count`), { status: 200, body: { books: 1, caller: 'anonymous' } })
    const { status, challenge } = await callAt(`${resource}/books`)
    t.equal(status, 401)
    t.equal(challenge, `Bearer resource_metadata="${metadata}"`, 'no error code for who sent no token')
    const basic = await callAt(`${resource}/books`, undefined, { authorization: 'Basic eDp5' })
    t.match(basic, { status: 401, challenge: `Bearer resource_metadata="${metadata}"` })
  },
)

t.test('the Express API accepts its own tokens, within their scope', async (t) => {
  const reading = await obtainTokens('openid courses:read', resource)
  t.match(await callAt(`${resource}/books`, reading.access_token), {
    status: 200,
    body: [{ title: 'A first reader' }],
  })
  const counted = await callAt(`${resource}/books/count`, reading.access_token)
  t.not(counted.body['caller'], 'anonymous')
  const rejected = await add(reading.access_token, { title: 'A second reader' })
  t.equal(rejected.status, 403)
  t.equal(
    rejected.headers.get('www-authenticate'),
    `Bearer error="insufficient_scope", scope="courses:write", resource_metadata="${metadata}"`,
  )
  const writing = await obtainTokens('courses:read courses:write', resource)
  t.equal((await add(writing.access_token, { title: 'A second reader' })).status, 201)
  t.equal((await add(writing.access_token, { title: 2 })).status, 400)
  t.equal((await add(writing.access_token, '{')).status, 400)

  t.test('the Express API rejects any other token', async (t) => {
    const elsewhere = await obtainTokens('courses:read', resourceAt('http://127.0.0.1:9500'))
    const others = [
      reading.id_token,
      elsewhere.access_token,
      `${reading.access_token}x`,
      'garbage',
      '',
      'a b',
    ]
    for (const token of others) {
      for (const path of ['/books', '/books/count']) {
        const { status, challenge } = await callAt(resource + path, token)
        t.match({ status, challenge }, { status: 401, challenge: 'error="invalid_token"' }, path)
      }
    }
  })
})

t.test('the Express API needs its authorization server only for its keys', async (t) => {
  const { access_token: token } = await obtainTokens('courses:read', resource)
  t.equal(await api.stop(), 0)
  const settings = { ISSUER: issuer, RESOURCE: resource }
  const keyless = runExample(t, ['express-api/server.ts'], settings)
  await keyless.until(/Library is ready at .*\n/)
  await lychgate.stop('SIGTERM')
  t.match(await callAt(`${resource}/books`, token), { status: 503, challenge: null }, 'no fault of the token')
  t.equal((await callAt(`${resource}/books/count`)).status, 200)
  t.equal(await keyless.stop(), 0)
  const alone = await runExample(t, ['express-api/server.ts'], settings).end()
  t.match(alone, { code: 1, output: /no authorization server responds/ })
})
