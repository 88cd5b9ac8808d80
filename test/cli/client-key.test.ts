import { generateKeyPairSync, hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const data = newFolder(t)
const file = (name: string, content: unknown) => {
  const path = join(data, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}
const client = (...args: string[]) => run(['client', ...args, '--data', data])
/** The thumbprint, RFC 7638, which becomes the id of a key without one. */
const thumbprintOf = ({ publicKey }: typeof pair) => {
  const { crv, kty, x } = publicKey.export({ format: 'jwk' })
  return hash('sha256', JSON.stringify({ crv, kty, x }), 'base64url')
}
let pair = generateKeyPairSync('ed25519')
// One in 64 begins like an option of the command line.
while (!thumbprintOf(pair).startsWith('-')) pair = generateKeyPairSync('ed25519')
const pem = file('key.pem', pair.publicKey.export({ type: 'spki', format: 'pem' }).toString())
const privatePem = file('private.pem', pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
const one = makeClientKey('ES256', 'one')
const jwk = file('one.json', one.jwk)
const adding = ['add', '--name', 'Import', '--grant-type', 'client_credentials', '--scope', 'courses:read']
const signing = [...adding, '--auth', 'private_key_jwt']

t.test('an operator adds a client with a key, and then replaces the key without a pause', async (t) => {
  const { stdout } = await client(...signing, '--jwks', pem, '--json')
  const added = JSON.parse(stdout)
  t.match(added, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519' }] },
  })
  t.notOk('client_secret' in added)
  const id: string = added.client_id
  const kid: string = added.jwks.keys[0].kid
  t.match(kid, /^-/)
  t.match(await client('key', 'list', id), { stdout: new RegExp(`^${kid} +OKP +Ed25519`) })
  const only = await client('key', 'remove', id, kid, '--yes')
  t.match(only, { code: 1, stderr: /only key/ })
  const { stdout: both } = await client('key', 'add', id, jwk, '--json')
  t.strictSame(
    JSON.parse(both).map((key: { kid: string }) => key.kid),
    [kid, 'one'],
  )
  t.match(await client('key', 'add', id, jwk), { code: 1, stderr: /has a key with kid one/ })
  t.match(await client('key', 'remove', id, 'two', '--yes'), { code: 1, stderr: /no key with this kid/ })
  const { stdout: left } = await client('key', 'remove', id, kid, '--yes', '--json')
  t.match(JSON.parse(left), [{ kid: 'one' }])
  t.match((await run(['audit', '--data', data])).stdout, /client-changed.*jwks/)
})

t.test('show prints the keys as JSON, and an empty resource removes the list', async (t) => {
  const issuer = 'http://localhost:9400'
  const { stdout } = await client(...signing, '--jwks', jwk, '--resource', issuer, '--json')
  const id: string = JSON.parse(stdout).client_id
  const shown = await client('show', id)
  t.match(shown.stdout, /^jwks +\{"keys":\[\{.*"kid":"one".*\}\]\}$/m)
  t.match(shown.stdout, new RegExp(`^resources +${issuer}$`, 'm'))
  const web = ['--grant-type', 'authorization_code', '--redirect-uri', 'https://import.example/callback']
  const rejected = await client('set', id, ...web)
  t.match(rejected, {
    code: 1,
    stderr: /resource is for resource servers and for clients with client_credentials/,
  })
  const set = await client('set', id, '--resource', '', '--json')
  t.notOk('resources' in JSON.parse(set.stdout))
  t.equal((await client('set', id, ...web)).code, 0)
})

t.test('keys and URL can be set, and exclude each other', async (t) => {
  const { stdout } = await client(...signing, '--jwks-uri', 'https://import.example/keys', '--json')
  const id: string = JSON.parse(stdout).client_id
  t.match(await client('key', 'list', id), { code: 1, stderr: /--jwks-uri/ })
  t.match(await client('set', id, '--jwks', jwk), { code: 1, stderr: /exclude each other/ })
  const set = await client('set', id, '--jwks', jwk, '--jwks-uri', '', '--legacy-audience', 'true', '--json')
  t.match(JSON.parse(set.stdout), { jwks: { keys: [{ kid: 'one' }] }, legacy_audience: true })
})

t.test('a file without public keys is rejected', async (t) => {
  for (const [path, stderr] of [
    [privatePem, /private\.pem has a private or symmetric key/],
    [file('none.json', '{}'), /none\.json is not a JWK set/],
    [
      file('broken.pem', '-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n'),
      /broken\.pem is not a JWK set/,
    ],
    [join(data, 'missing'), /missing cannot be read/],
  ] as const)
    t.match(await client(...signing, '--jwks', path), { code: 64, stderr }, path)
  t.match(await client(...signing), {
    code: 1,
    stderr: /private_key_jwt needs jwks, jwks_uri or trusted_issuers/,
  })
})
