import { join } from 'node:path'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { newFolder, run } from '../helpers/command.ts'
import { callApi, obtainTokens, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { addClient, json } from '../helpers/wire.ts'

/** Starts servers with and without Ed25519 keys, one after the other, on the same store. */
async function oneStore(t: Test) {
  const [data, port] = [newFolder(t), await freePort()]
  const store = `sqlite:${join(data, 'lychgate.db')}`
  const start = (ed25519: 'on' | 'off') =>
    startServer(t, {
      store,
      port,
      keys: { rotationSeconds: 7_776_000, publishAheadSeconds: 86_400, reloadSeconds: 60, ed25519 },
    })
  return { data, start }
}

const offered = async (server: TestServer) => {
  const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
  return [
    metadata['id_token_signing_alg_values_supported'],
    metadata['userinfo_signing_alg_values_supported'],
  ]
}

const published = async (server: TestServer) => {
  const { keys } = (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as {
    keys: { alg: string }[]
  }
  return keys.map(({ alg }) => alg).sort()
}

const registration = (server: TestServer, alg: string) =>
  fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/cb'], id_token_signed_response_alg: alg }),
  })

const two = ['RS256', 'ES256']
const three = ['RS256', 'ES256', 'EdDSA']

t.test(
  '[oidc-disc-3-id-token-algs] [oidc-reg-2-id-token-alg] without Ed25519 keys no key set, document or client has EdDSA',
  async (t) => {
    const { data, start } = await oneStore(t)
    const server = await start('off')
    t.strictSame(await published(server), ['ES256', 'RS256'])
    t.strictSame(await offered(server), [two, two], '[oidc-disc-3-id-token-algs]')
    const rejected = await registration(server, 'EdDSA')
    t.equal(rejected.status, 400, '[oidc-reg-2-id-token-alg]')
    t.match(await json(rejected), { error: 'invalid_client_metadata' })
    t.equal((await registration(server, 'ES256')).status, 201)

    const environment = {
      LYCHGATE_SECRET: server.deps.config.secret ?? '',
      LYCHGATE_KEYS_ED25519: 'off',
      LYCHGATE_ISSUER: server.issuer,
    }
    const operator = (...args: string[]) => run([...args, '--data', data], { environment })
    const uri = ['--redirect-uri', 'https://a.example/cb']
    for (const flag of ['--id-token-alg', '--userinfo-signed-response-alg']) {
      const added = await operator('client', 'add', '--name', 'A', ...uri, flag, 'EdDSA')
      t.not(added.code, 0, flag)
      t.match(
        added.stderr,
        flag === '--id-token-alg' ? /keys\.ed25519 is off/ : /userinfo_signed_response_alg/,
      )
    }
    const rotated = await operator('keys', 'rotate', '--json')
    const algorithms = (JSON.parse(rotated.stdout) as { algorithm: string }[]).map(
      ({ algorithm }) => algorithm,
    )
    t.strictSame(
      [...new Set(algorithms)].sort(),
      ['ES256', 'HS256', 'RS256'],
      'an operator rotates the same keys',
    )
  },
)

t.test(
  '[oidc-core-10.1.1-rotation] keys that are no longer offered stay published as long as what they signed, and never sign',
  async (t) => {
    const { data, start } = await oneStore(t)
    const before = await start('on')
    const client = await register(before, { id_token_signed_response_alg: 'EdDSA' })
    const operatorClient = await addClient(before, { description: { userinfo_signed_response_alg: 'EdDSA' } })
    const old = await obtainTokens(before, client)
    t.equal(decodeProtectedHeader(old.id_token).alg, 'EdDSA')
    await before.close()

    const server = await start('off')
    t.strictSame(await offered(server), [two, two])
    t.strictSame(await published(server), ['ES256', 'EdDSA', 'RS256'])
    const url = new URL(`${server.issuer}/api/oauth/jwks`)
    const verified = (jws: string) => jwtVerify(jws, createRemoteJWKSet(url), { issuer: server.issuer })
    await t.resolves(verified(old.id_token), '[oidc-core-10.1.1-rotation]')
    const fresh = await obtainTokens(server, client)
    const { protectedHeader } = await verified(fresh.id_token)
    t.equal(protectedHeader.alg, 'RS256', 'the client gets the default')
    const { access_token: token } = await obtainTokens(server, operatorClient, {
      fields: { scope: 'openid' },
    })
    const response = await callApi(server, '/api/oauth/userinfo', token)
    t.equal(decodeProtectedHeader(await response.text()).alg, 'RS256', 'and so does UserInfo')

    const environment = { LYCHGATE_SECRET: server.deps.config.secret ?? '', LYCHGATE_KEYS_ED25519: 'off' }
    const doctor = await run(['doctor', '--data', data, '--issuer', server.issuer], { environment })
    t.match(doctor.stdout, `${client.id}: EdDSA`, 'doctor names the client')
    t.match(doctor.stdout, 'keys: an active one for each of RS256, ES256, HS256')

    server.advance(keyPolicy(server.deps.config).overlapSeconds.signing + 1)
    await server.maintain()
    t.strictSame(await published(server), ['ES256', 'RS256'], 'retired')
    await server.close()

    const after = await start('on')
    t.strictSame(await offered(after), [three, three])
    t.equal((await registration(after, 'EdDSA')).status, 201)
    t.equal(decodeProtectedHeader((await obtainTokens(after, client)).id_token).alg, 'EdDSA')
  },
)
