import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { secretMatches } from '../../src/domain/secret.ts'
import { openStore } from '../../src/storage/open.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

/** A client in the list. */
const today = new Date().toISOString().slice(0, 10)

async function storedClient(t: Test, data: string, clientId: string) {
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  t.teardown(() => store.close())
  return await store.find('client', clientId)
}

async function add(data: string, ...flags: string[]) {
  const result = await run(['client', 'add', '--data', data, '--json', ...flags])
  return { ...result, client: result.code === 0 ? JSON.parse(result.stdout) : undefined }
}

t.test('a client that is added has a new id and a secret that is stored as its hash', async (t) => {
  const data = newFolder(t)
  const { client } = await add(
    data,
    '--name',
    'Course app',
    '--redirect-uri',
    'https://app.example.com/callback',
  )
  t.match(client, {
    client_id: /^client_[\w-]{22}$/,
    client_secret: /^lyc_secret_[\w-]{43}$/,
    client_name: 'Course app',
    redirect_uris: ['https://app.example.com/callback'],
    token_endpoint_auth_method: 'client_secret_basic',
    token_endpoint_auth_methods_accepted: ['client_secret_basic', 'client_secret_post'],
    application_type: 'web',
  })
  const stored = await storedClient(t, data, client.client_id)
  t.match(stored, { origin: 'integration', consent: 'remember', pkceOptional: false, introspects: [] })
  t.ok(secretMatches(client.client_secret, stored?.secretHash))
})

t.test('every flag is applied to the client', async (t) => {
  const data = newFolder(t)
  const { client } = await add(
    data,
    ...[
      '--name',
      'First party',
      '--redirect-uri',
      'https://a.example/1',
      '--redirect-uri',
      'https://a.example/2',
    ],
    ...[
      '--post-logout-redirect-uri',
      'https://a.example/bye',
      '--auth',
      'client_secret_post',
      '--pkce',
      'optional',
    ],
    ...['--consent', 'skip', '--scope', 'openid courses:read', '--id-token-alg', 'ES256'],
  )
  t.match(await storedClient(t, data, client.client_id), {
    redirectUris: ['https://a.example/1', 'https://a.example/2'],
    postLogoutRedirectUris: ['https://a.example/bye'],
    authenticationMethod: 'client_secret_post',
    pkceOptional: true,
    consent: 'skip',
    scope: ['openid', 'courses:read'],
    idTokenSignedResponseAlg: 'ES256',
  })
})

t.test('a resource server needs no redirect URI and has no grant type', async (t) => {
  const data = newFolder(t)
  const file = join(data, 'lychgate.yaml')
  writeFileSync(file, 'resources: [{identifier: "https://api.example.com", name: API, scopes: [openid]}]\n')
  const flags = [
    '--name',
    'API',
    '--resource',
    'https://api.example.com',
    '--resource',
    'http://localhost:9400',
  ]
  const { client } = await add(data, ...flags, '--config', file)
  t.match(client, {
    introspects: ['https://api.example.com', 'http://localhost:9400'],
    client_secret: /^lyc_secret_/,
  })
  const readable = await run(['client', 'add', ...flags, '--data', data, '--config', file])
  t.match(readable.stdout, /^introspects +https:\/\/api\.example\.com http:\/\/localhost:9400$/m)
  t.match(await storedClient(t, data, client.client_id), {
    origin: 'resource-server',
    grantTypes: [],
    redirectUris: [],
    introspects: ['https://api.example.com', 'http://localhost:9400'],
  })
  const unknown = await add(data, ...flags)
  t.match(unknown, {
    code: 1,
    stderr: /^lychgate: resource must be the issuer or an identifier listed in `resources`\n$/,
  })
})

t.test('an invalid client is one line, ends with 1 and is not added', async (t) => {
  const data = newFolder(t)
  const result = await add(data, '--name', 'x', '--redirect-uri', 'http://a.example/callback')
  t.match(result, { code: 1, stdout: '', stderr: /^lychgate: redirect-uri 1 must be an https or [^\n]*\n$/ })
  t.match(await run(['client', 'list', '--data', data]), { code: 0, stdout: '' })
})

t.test('list and show print everything except the secret', async (t) => {
  const data = newFolder(t)
  const { client } = await add(
    data,
    '--name',
    'Course app',
    '--redirect-uri',
    'https://app.example.com/callback',
  )
  const id = client.client_id
  const list = await run(['client', 'list', '--data', data])
  t.equal(
    list.stdout,
    `${id}  added by an operator  client_secret_basic or client_secret_post  ${today}  never used  Course app\n`,
  )
  const show = await run(['client', 'show', id, '--data', data])
  t.match(show.stdout, /^client_name +Course app$/m)
  t.match(show.stdout, /^consent +remember$/m)
  const json = await run(['client', 'show', id, '--data', data, '--json'])
  t.match(JSON.parse(json.stdout), { client_id: id, origin: 'integration', pkce: 'required' })
  const listed = await run(['client', 'list', '--data', data, '--json'])
  t.same(JSON.parse(listed.stdout), [JSON.parse(json.stdout)])
  const hash = (await storedClient(t, data, id))?.secretHash ?? ''
  for (const { stdout } of [list, show, json, listed]) {
    t.notOk(stdout.includes(hash) || stdout.includes(client.client_secret))
  }
})

t.test('list marks a client with optional PKCE or skipped consent', async (t) => {
  const data = newFolder(t)
  const weak = ['--auth', 'client_secret_post', '--pkce', 'optional', '--consent', 'skip']
  await add(data, '--name', 'Weak', '--redirect-uri', 'https://app.example.com', ...weak)
  const { stdout } = await run(['client', 'list', '--data', data])
  t.match(stdout, / {2}client_secret_post, PKCE optional, consent skipped {2}.* {2}Weak$/m)
})

t.test('only the rotated secret works', async (t) => {
  const data = newFolder(t)
  const { client } = await add(
    data,
    '--name',
    'Course app',
    '--redirect-uri',
    'https://app.example.com/callback',
  )
  const rotated = await run(['client', 'rotate-secret', client.client_id, '--yes', '--data', data, '--json'])
  const { client_secret: secret } = JSON.parse(rotated.stdout)
  const stored = await storedClient(t, data, client.client_id)
  t.ok(secretMatches(secret, stored?.secretHash))
  t.notOk(secretMatches(client.client_secret, stored?.secretHash))
})

t.test('a removed client is gone, and cannot be removed twice', async (t) => {
  const data = newFolder(t)
  const { client } = await add(
    data,
    '--name',
    'Course app',
    '--redirect-uri',
    'https://app.example.com/callback',
  )
  const remove = ['client', 'delete', client.client_id, '--data', data]
  t.match(await run([...remove, '--yes']), { code: 0, stdout: `removed  ${client.client_id}\n` })
  t.equal(await storedClient(t, data, client.client_id), undefined)
  for (const args of [remove, ['client', 'show', 'client_x', '--data', data]]) {
    t.match(await run(args), { code: 1, stdout: '', stderr: 'lychgate: no client has this id\n' })
  }
})
