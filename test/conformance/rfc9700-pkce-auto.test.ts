/** A client whose operator does not know whether it uses PKCE: optional until it has used it once. */
import t from 'tap'
import { learnFromExchange } from '../../src/domain/pkce-auto.ts'
import {
  ask,
  assertErrorRedirect,
  callback,
  integrate,
  sentAway,
  signedIn,
} from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { authorize, exchange, type Fields, register, type TestClient } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected } from '../helpers/wire.ts'

const data = newFolder(t)
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db` })
const user = await signedIn(server, await register(server))
const without = { code_challenge: undefined, code_challenge_method: undefined }
const codeFor = async (client: TestClient, fields: Fields = {}) =>
  sentAway(await ask(server, client, fields, user))['code'] ?? ''

async function run(...command: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere(['client', ...command, '--data', data, '--json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const assertNeeded = async (client: TestClient) =>
  assertErrorRedirect(t, server, await authorize(server, client, without), 'invalid_request', {
    to: callback,
  })

t.test(
  '[rfc9700-2.1.1-confidential-recommended] a client that has used PKCE once must use it from then on',
  async (t) => {
    const client = await integrate(server, { pkce: 'auto', consent: 'skip' })
    const bare = await codeFor(client, without)
    t.equal((await exchange(server, client, bare, { code_verifier: undefined })).status, 200)

    const earlier = await codeFor(client, without)
    const code = await codeFor(client)
    await assertRejected(
      t,
      await exchange(server, client, code, { code_verifier: 'w'.repeat(43) }),
      'invalid_grant',
    )
    t.match(await run('show', client.id), { pkce: 'auto' })
    t.notHas(
      await run('show', client.id),
      { pkce_learned_at: Number },
      'anyone can send a request in its name',
    )
    t.ok(await codeFor(client, without), 'and could otherwise end its sign-ins')

    t.equal((await exchange(server, client, code)).status, 200)
    t.match(await run('show', client.id), { pkce: 'auto', pkce_learned_at: Number })
    await assertNeeded(client)
    const late = await exchange(server, client, earlier, { code_verifier: undefined })
    await assertRejected(t, late, 'invalid_grant', 400, 'a code that was requested without it before')
    t.equal((await exchange(server, client, await codeFor(client))).status, 200)
    const learned = (await server.deps.store.audit({ since: 0, limit: 100 })).filter(
      ({ name }) => name === 'client-pkce-learned',
    )
    t.match(learned, [{ clientId: client.id, by: 'client', facts: { grant: String } }], 'once')
  },
)

t.test('[rfc9700-2.1.1-confidential-recommended] only an operator undoes what was learned', async (t) => {
  const client = await integrate(server, { pkce: 'auto', consent: 'skip' })
  t.equal((await exchange(server, client, await codeFor(client))).status, 200)
  t.match(await run('set', client.id, '--name', 'Other'), { pkce: 'auto', pkce_learned_at: Number })
  t.match(await run('set', client.id, '--pkce', 'auto'), { pkce_learned_at: Number }, 'it is auto already')
  await assertNeeded(client)
  t.notHas(await run('set', client.id, '--pkce', 'optional'), { pkce_learned_at: Number })
  t.ok(await codeFor(client, without))
  t.equal((await exchange(server, client, await codeFor(client))).status, 200)
  t.ok(await codeFor(client, without), 'optional learns nothing')
  await run('set', client.id, '--pkce', 'auto')
  t.equal((await exchange(server, client, await codeFor(client))).status, 200)
  await assertNeeded(client)
})

t.test('[rfc9700-2.1.1-confidential-recommended] a code is exchanged by what is required now', async (t) => {
  const client = await integrate(server, { pkce: 'optional', consent: 'skip' })
  const code = await codeFor(client, without)
  await run('set', client.id, '--pkce', 'required')
  await assertRejected(t, await exchange(server, client, code, { code_verifier: undefined }), 'invalid_grant')
})

t.test('an exchange without PKCE is compared with what another one has learned since', async (t) => {
  const { id } = await integrate(server, { pkce: 'auto' })
  const { store } = server.deps
  const stale = await store.find('client', id)
  if (stale === undefined) throw new Error('no client')
  const at = server.deps.clock()
  const unverified = learnFromExchange(stale, false, at)
  await store.write(...unverified)
  await store.write(...learnFromExchange(stale, true, at))
  await t.rejects(store.write(...unverified), { message: /require/ })
  await store.write(...learnFromExchange(stale, true, at + 10))
  t.equal((await store.find('client', id))?.pkceLearnedAt, at, 'the first one counts')
})

t.test('auto is for confidential clients', async (t) => {
  const { code, stderr } = await runHere([
    ...['client', 'add', '--data', data, '--name', 'App', '--redirect-uri', callback],
    ...['--auth', 'none', '--pkce', 'auto'],
  ])
  t.equal(code, 1)
  t.match(stderr, /pkce may be auto for a confidential client only/)
})
