/** The example that calls the API without a user, and signs instead of sending a secret. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'

const { issuer, location } = await startExampleServer(t)
const folder = newFolder(t)
const [publicFile, KEY_FILE] = [join(folder, 'service.pub.pem'), join(folder, 'service.pem')]
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
writeFileSync(publicFile, publicKey.export({ type: 'spki', format: 'pem' }))
writeFileSync(KEY_FILE, privateKey.export({ type: 'pkcs8', format: 'pem' }))

t.test('[rfc7523-2.2-parameters] the service gets a token by its key and calls the API', async (t) => {
  const flags = ['--name', 'Nightly import', '--grant-type', 'client_credentials', '--scope', 'courses:read']
  const key = ['--auth', 'private_key_jwt', '--jwks', publicFile, '--json']
  const { code, stdout } = await runHere(['client', 'add', ...flags, ...key, ...location])
  t.equal(code, 0)
  const { client_id: id } = JSON.parse(stdout)
  const environment = { ISSUER: issuer, CLIENT_ID: id, KEY_FILE }
  t.match(await runExample(t, ['service/service.ts'], environment).end(), {
    code: 0,
    output: /^200 .*"caller":"client".*"scope":"courses:read".*expires in 3600 s/,
  })
})

t.test('another key gets nothing', async (t) => {
  const { privateKey: other } = generateKeyPairSync('ed25519')
  writeFileSync(KEY_FILE, other.export({ type: 'pkcs8', format: 'pem' }))
  const { stdout } = await runHere(['client', 'list', '--json', ...location])
  const [{ client_id: id }] = JSON.parse(stdout).filter(
    ({ client_name: name }: { client_name: string }) => name === 'Nightly import',
  )
  const service = runExample(t, ['service/service.ts'], { ISSUER: issuer, CLIENT_ID: id, KEY_FILE })
  t.match(await service.end(), { code: 1, output: /invalid_client/ })
})
