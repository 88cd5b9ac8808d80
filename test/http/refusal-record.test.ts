/** What `lychgate explain` reads back: every refusal a client was told, by the request id it was told. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { RefusalRecord } from '../../src/domain/model.ts'
import { authorize, callApi, exchange, obtainCode, post, register } from '../helpers/flow.ts'
import { newPerson } from '../helpers/person.ts'
import { startServer, type TestServer } from '../helpers/server.ts'

async function kept(server: TestServer, response: Response): Promise<RefusalRecord | undefined> {
  const id = response.headers.get('x-request-id') ?? ''
  for (let attempt = 0; attempt < 1500; attempt += 1) {
    const record = await server.deps.store.find('refusal', id)
    if (record !== undefined) return record
    await setTimeout(20)
  }
  return undefined
}

t.test('a refusal is kept as JSON, as a challenge, as a page and as a redirect', async (t) => {
  const server = await startServer(t)
  const client = await register(server)
  const cases: readonly [Promise<Response>, Partial<RefusalRecord>][] = [
    [
      exchange(server, client, 'lyc_code_garbage'),
      { path: '/api/oauth/token', status: 400, error: 'invalid_grant', rule: 'rfc6749-4.1.3-code-valid' },
    ],
    [
      callApi(server, '/api/courses', 'garbage'),
      { path: '/api/courses', status: 401, error: 'invalid_token' },
    ],
    [
      authorize(server, { ...client, id: 'nobody' }),
      { path: '/oauth/authorize', status: 400, rule: 'rfc6749-4.1.2.1-client-error-page' },
    ],
    [
      authorize(server, client, { code_challenge: undefined }),
      { path: '/oauth/authorize', status: 303, error: 'invalid_request' },
    ],
    [fetch(`${server.issuer}/nothing`), { path: '/nothing', status: 404, rule: 'lychgate-path' }],
  ]
  for (const [sent, expected] of cases) {
    const record = await kept(server, await sent)
    t.match(
      record,
      { at: Number, method: String, why: String, rule: String, ...expected },
      String(expected.path),
    )
  }
})

t.test('a kept refusal has no secret in it', async (t) => {
  const server = await startServer(t)
  const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const { agent } = newPerson(server)
  const code = await obtainCode(server, client, { agent })
  const answers = [
    await exchange(server, client, code, { code_verifier: 'w'.repeat(43) }),
    await exchange(server, { ...client, secret: 'lyc_secret_wrong-but-secret' }, code),
    await callApi(server, `/api/courses?access_token=${code}`, code),
  ]
  for (const answer of answers) {
    const record = JSON.stringify((await kept(server, answer)) ?? t.fail('nothing was kept'))
    for (const secret of [code, client.secret ?? '?', 'wrong-but-secret', 'w'.repeat(43)]) {
      t.notOk(record.includes(secret), record)
    }
  }
  t.match(await kept(server, answers[0] as Response), { client: client.id })
})

t.test('what is still gathered when the server closes is kept', async (t) => {
  const server = await startServer(t)
  const { store } = server.deps
  const id = (await post(server, '/api/oauth/token', {})).headers.get('x-request-id') ?? ''
  await server.app.close()
  t.match(await store.find('refusal', id), { id, error: 'invalid_request' })
})

t.test('a flood is not written down whole, and none is where none is wanted', async (t) => {
  const flood = async (server: TestServer) => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => server.app.inject({ url: '/nothing' })),
    )
    await server.app.close()
    const found = answers.map(({ headers }) =>
      server.deps.store.find('refusal', String(headers['x-request-id'])),
    )
    return (await Promise.all(found)).filter((record) => record !== undefined).length
  }
  t.equal(await flood(await startServer(t)), 100)
  t.equal(await flood(await startServer(t, { refusalsKept: 0 })), 0)
})
