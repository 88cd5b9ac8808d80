/** Scopes and resources that operators store: what follows from them at the next request, and what ends with them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readDefinitions } from '../../src/admin/operations/definitions.ts'
import { ask, callback, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { claimsOf, exchange, postAs, refresh, type TestClient, type Tokens } from '../helpers/flow.ts'
import { alice, type ServerOptions, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { introspect, type Json, json } from '../helpers/wire.ts'

const folder = newFolder(t)
const store = `sqlite:${folder}/lychgate.db`
const configured = {
  identifier: 'https://file.example',
  name: 'File',
  scopes: ['courses:read'],
  tokenFormat: 'opaque' as const,
}
const options: ServerOptions = { admin: { api: 'on' }, store, resources: [configured] }
const server = await startServer(t, options)
/** A second server on the same store. */
const second = await startServer(t, options)
const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:clients:read', 'admin:clients:write'],
})
const grant = { grant_type: 'client_credentials' }
const token = String((await json(await postAs(server, machine, '/api/oauth/token', grant)))['access_token'])

async function call(method: string, path: string, body?: object, at = server.origin) {
  const response = await fetch(`${at}/api/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'if-match': '*',
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Json & { items?: Json[] } }
}

const errorOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [status, body['error']]
const get = async (path: string, at = second.origin) => json(await fetch(at + path))
const metadata = (at?: string) => get('/.well-known/oauth-authorization-server', at)

const api = 'https://invoices.example'
const words = { group: 'Invoices', access: 'read', description: 'Amounts and due dates' }

const clientOf = (body: Json): TestClient => ({
  id: String(body['client_id']),
  secret: String(body['client_secret']),
  method: 'client_secret_basic',
  redirectUri: callback,
})

/** Returns the tokens of a new grant of alice. */
async function tokensFor(client: TestClient, fields: Readonly<Record<string, string>>): Promise<Tokens> {
  const agent = await signedIn(server, client)
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  return (await (await exchange(server, client, code)).json()) as Tokens
}

t.test('a node learns of the first one by itself, and of the others at its next request', async (t) => {
  t.equal((await call('POST', '/scopes', { name: 'invoices:read', ...words })).status, 201)
  const here = await metadata(server.origin)
  t.ok((here['scopes_supported'] as string[]).includes('invoices:read'), 'at once where it was added')
  await second.maintain()
  t.ok(((await metadata())['scopes_supported'] as string[]).includes('invoices:read'))
  t.equal((await call('POST', '/scopes', { name: 'invoices:write', ...words, access: 'write' })).status, 201)
  for (const path of ['oauth-authorization-server', 'openid-configuration'])
    t.ok(
      ((await get(`/.well-known/${path}`))['scopes_supported'] as string[]).includes('invoices:write'),
      path,
    )
  const { components } = (await get('/openapi.json')) as { components: { securitySchemes: object } }
  t.match(JSON.stringify(components.securitySchemes), 'invoices:write')
  const etagOf = async () => {
    const response = await fetch(`${second.origin}/.well-known/oauth-authorization-server`)
    return response.headers.get('etag')
  }
  t.equal(await etagOf(), await etagOf(), 'the document is the same until something changes')
})

t.test('[rfc8707-2-unknown-invalid-target] a resource is known at the next request', async (t) => {
  const client = await integrate(server, { consent: 'always' })
  const agent = await signedIn(server, client)
  const before = sentAway(await ask(server, client, { resource: api }, agent))
  t.equal(before['error'], 'invalid_target')
  const body = { identifier: api, name: 'Invoices', scopes: ['invoices:read', 'courses:read'] }
  const added = await call('POST', '/resources', body)
  t.match(added, { status: 201, body: { origin: 'stored', token_format: 'opaque' } })
  t.ok(((await metadata())['protected_resources'] as string[]).includes(api))
  const page = pageOf(await ask(server, client, { scope: 'invoices:read', resource: api }, agent))
  t.match(page.html, 'Amounts and due dates')
  t.match(page.html, 'Invoices')
  await call('PATCH', '/scopes/invoices%3Aread', { 'description#de': 'Beträge', description: 'Sums' })
  const again = pageOf(await ask(server, client, { scope: 'invoices:read', resource: api }, agent))
  t.match(again.html, 'Sums', 'the consent page has the new words')
  const german = pageOf(
    await ask(server, client, { scope: 'invoices:read', resource: api, ui_locales: 'de' }, agent),
  )
  t.match(german.html, 'Beträge')
})

t.test(
  '[rfc9728-3-path-insertion] a stored resource at the origin of the issuer has its metadata',
  async (t) => {
    const identifier = `${server.issuer}/invoices`
    const path = '/.well-known/oauth-protected-resource/invoices'
    t.equal((await fetch(server.origin + path)).status, 404)
    t.equal(
      (await call('POST', '/resources', { identifier, name: 'I', scopes: ['invoices:read'] })).status,
      201,
    )
    const response = await fetch(server.origin + path)
    t.equal(response.status, 200)
    t.match(response.headers.get('cache-control'), /^public, max-age=/)
    t.match(await json(response), {
      resource: identifier,
      scopes_supported: ['invoices:read'],
      resource_name: 'I',
    })
    t.equal((await call('DELETE', `/resources/${encodeURIComponent(identifier)}`)).status, 204)
    t.equal((await fetch(server.origin + path)).status, 404)
  },
)

t.test('its own server introspects tokens for it, and a JWT is for it alone', async (t) => {
  const client = await integrate(server, { consent: 'skip' })
  const added = await call('POST', '/clients', {
    client_name: 'Invoice API',
    resources: [api],
  })
  t.equal(added.status, 201, JSON.stringify(added.body))
  const reader = clientOf(added.body)
  const { access_token: access } = await tokensFor(client, { scope: 'invoices:read', resource: api })
  const seen = { active: true, aud: api, scope: 'invoices:read' }
  t.match(await introspect(server, reader, access), seen)
  await call('PATCH', `/resources/${encodeURIComponent(api)}`, {
    token_format: 'jwt',
    access_token_seconds: 60,
  })
  const { access_token: jwt } = await tokensFor(client, { scope: 'invoices:read', resource: api })
  t.match(claimsOf(jwt), { aud: api, scope: 'invoices:read' })
  const { exp, iat } = claimsOf(jwt)
  t.equal(Number(exp) - Number(iat), 60)
  await call('PATCH', `/resources/${encodeURIComponent(api)}`, { token_format: 'opaque' })
})

t.test('what is deleted is gone at the next use of what was granted', async (t) => {
  const made = await call('POST', '/clients', {
    client_name: 'Invoices',
    redirect_uris: [callback],
    consent: 'skip',
    scope: 'openid invoices:read invoices:write',
  })
  const client = clientOf(made.body)
  const both = await tokensFor(client, { scope: 'openid invoices:read invoices:write' })
  const alone = await tokensFor(client, { scope: 'invoices:write' })
  const forApi = await tokensFor(client, { scope: 'invoices:read', resource: api })
  t.strictSame(
    errorOf(await call('DELETE', '/scopes/invoices%3Aread')),
    [409, 'conflict'],
    'a resource has it',
  )
  t.equal((await call('DELETE', '/scopes/invoices%3Awrite')).status, 204)
  t.match(await introspect(server, client, both.access_token), {
    active: true,
    scope: 'openid invoices:read',
  })
  t.strictSame(await introspect(server, client, alone.access_token), { active: false })
  const next = (await (await refresh(server, client, both.refresh_token)).json()) as Tokens
  t.equal(next.scope, 'openid invoices:read')
  t.equal((await json(await refresh(server, client, alone.refresh_token)))['error'], 'invalid_grant')
  t.equal((await call('DELETE', `/resources/${encodeURIComponent(api)}`)).status, 204)
  t.strictSame(await introspect(server, client, forApi.access_token), { active: false })
  t.equal((await json(await refresh(server, client, forApi.refresh_token)))['error'], 'invalid_grant')
  const shown = await call('GET', `/clients/${client.id}`)
  t.match(shown.body, { client_id: client.id }, 'its client stays')
})

t.test('the configuration file wins, and says so', async (t) => {
  const { body } = await call('GET', '/scopes?limit=200')
  const origin = (name: string) => body.items?.find((one) => one['name'] === name)?.['origin']
  t.equal(origin('courses:read'), 'configuration')
  t.equal(origin('offline_access'), 'server')
  t.equal(origin('invoices:read'), 'stored')
  const file = 'the scope is set in the configuration file, which wins'
  const added = await call('POST', '/scopes', { name: 'courses:read', ...words })
  t.match(added, { status: 409, body: { error: 'conflict', error_description: file } })
  for (const [method, change] of [['PATCH', words], ['DELETE']] as const)
    t.strictSame(errorOf(await call(method, '/scopes/courses%3Aread', change)), [404, 'not_found'], method)
  const resource = { identifier: 'https://file.example/', name: 'X', scopes: ['courses:read'] }
  t.strictSame(errorOf(await call('POST', '/resources', resource)), [409, 'conflict'])
  await call('POST', '/scopes', { name: 'later:read', ...words })
  const later = { name: 'later:read', group: 'File', access: 'read', description: 'From the file' }
  const scopes = [...server.deps.config.scopes.filter(({ name }) => name !== 'later:read'), later]
  const next = await startServer(t, { admin: { api: 'on' }, store, scopes: scopes as never })
  const client = await integrate(next, { consent: 'always' })
  const page = pageOf(await ask(next, client, { scope: 'later:read' }, await signedIn(next, client)))
  t.match(page.html, 'From the file')
})

t.test('what cannot be one is rejected, and nothing is stored', async (t) => {
  const before = await readDefinitions(server.deps.store)
  const scope = (name: string, more = {}) => ['/scopes', { name, ...words, ...more }] as const
  const resource = (identifier: string, more = {}) =>
    ['/resources', { identifier, name: 'X', scopes: ['courses:read'], ...more }] as const
  for (const [[path, body], error] of [
    [scope('openid'), [409, 'conflict']],
    [scope('profile'), [409, 'conflict']],
    [scope('address'), [409, 'conflict']],
    [scope('offline_access'), [409, 'conflict']],
    [scope('groups'), [409, 'conflict']],
    [scope('admin:users:write'), [409, 'conflict']],
    [scope('invoices:read'), [409, 'conflict']],
    [scope('two words'), [400, 'invalid_scope']],
    [scope('a"b'), [400, 'invalid_scope']],
    [scope('a\\b'), [400, 'invalid_scope']],
    [scope('é'), [400, 'invalid_scope']],
    [scope(''), [400, 'invalid_scope']],
    [scope('x'.repeat(101)), [400, 'invalid_scope']],
    [scope('x', { group: ' ' }), [400, 'invalid_request']],
    [scope('x', { description: 'a\u202eb' }), [400, 'invalid_request']],
    [scope('x', { access: 'identity' }), [400, 'invalid_request']],
    [scope('x', { operatorOnly: true }), [400, 'invalid_request']],
    [resource('https://x.example/#a'), [400, 'invalid_target']],
    [resource('x.example'), [400, 'invalid_target']],
    [resource('/relative'), [400, 'invalid_target']],
    [resource('https://x.example/a b'), [400, 'invalid_target']],
    [resource(server.issuer), [409, 'conflict']],
    [resource(`${server.issuer}/`), [409, 'conflict']],
    [resource('https://x.example', { scopes: [] }), [400, 'invalid_scope']],
    [resource('https://x.example', { scopes: ['unknown:read'] }), [400, 'invalid_scope']],
    [resource('https://x.example', { access_token_seconds: 0 }), [400, 'invalid_request']],
  ] as const)
    t.strictSame(errorOf(await call('POST', path, body)), error, JSON.stringify(body))
  t.strictSame(await readDefinitions(server.deps.store), before)
})

t.test('of two changes at once, both are there', async (t) => {
  const names = ['a', 'b', 'c', 'd'].map((letter) => `${letter}:read`)
  const added = await Promise.all(names.map((name) => call('POST', '/scopes', { name, ...words })))
  t.strictSame(
    added.map(({ status }) => status),
    [201, 201, 201, 201],
  )
  const supported = (await metadata())['scopes_supported'] as string[]
  t.strictSame(
    names.filter((name) => !supported.includes(name)),
    [],
  )
  const twice = await Promise.all([1, 2].map(() => call('POST', '/scopes', { name: 'once:read', ...words })))
  t.strictSame(twice.map(({ status }) => status).toSorted(), [201, 409])
})

t.test('a change needs the entity tag of what it changes', async (t) => {
  const response = await fetch(`${server.origin}/api/admin/v1/scopes/once%3Aread`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'if-match': '"x"' },
    body: JSON.stringify({ description: 'Other' }),
  })
  t.equal(response.status, 412)
})

t.test('commands do the same on a store, which a server that runs follows', async (t) => {
  const config = join(folder, 'lychgate.yaml')
  writeFileSync(
    config,
    `data: ${folder}\nstore: ${store}\nissuer: ${server.issuer}\nsecret: a secret for tests that is long enough\n`,
  )
  const run = (...line: string[]) => runHere([...line, '--config', config])
  const flags = ['--group', 'Bills', '--access', 'read', '--description', 'All bills']
  const added = await run(
    'scope',
    'add',
    'bills:read',
    ...flags,
    '--text',
    'description#de=Alle',
    '--sensitive',
  )
  t.equal(added.code, 0, added.stderr)
  t.ok(((await metadata())['scopes_supported'] as string[]).includes('bills:read'), 'at the next request')
  const shown = await run('scope', 'show', 'bills:read')
  t.match(shown.stdout, 'Alle')
  const listed = await run('scope', 'list')
  t.match(listed.stdout, /bills:read .* stored/)
  t.match(listed.stdout, /courses:read .* set in the configuration file/)
  const denied = await run('scope', 'set', 'courses:read', '--group', 'X')
  t.match(denied, { code: 1, stderr: /no scope of this name is stored/ })
  t.match(await run('scope', 'add', 'courses:read', ...flags), {
    code: 1,
    stderr: /configuration file, which wins/,
  })
  t.match(await run('scope', 'add', 'x:read'), { code: 64 })
  t.match(await run('scope', 'add', 'x y', ...flags), { code: 1, stderr: /name must have/ })
  const resource = 'https://bills.example'
  const made = await run('resource', 'add', resource, '--name', 'Bills', '--scope', 'bills:read')
  t.equal(made.code, 0, made.stderr)
  t.match((await run('resource', 'list')).stdout, /https:\/\/bills\.example .* stored/)
  t.match(await run('resource', 'set', resource, '--token-format', 'jwt'), { code: 0 })
  t.match((await run('resource', 'show', resource)).stdout, 'jwt')
  const client = await run('client', 'add', '--name', 'Bills', '--resource', resource, '--json')
  t.equal(client.code, 0, client.stderr)
  t.match(await run('resource', 'delete', resource, '--yes'), { code: 0 })
  t.match(await run('scope', 'delete', 'bills:read', '--yes'), { code: 0 })
  t.notOk(((await metadata())['scopes_supported'] as string[]).includes('bills:read'), 'gone')
})

t.test('the page says which are set in the configuration file', async (t) => {
  const own = await startServer(t, { admin: { secondFactor: 'off' }, mode: 'dev' })
  const agent = new UserAgent(own.issuer)
  const { addAdministrator } = await import('../../src/users/administrators.ts')
  const { systemRandom } = await import('../../src/system/system.ts')
  const { store } = own.deps
  const id = (await store.find('userByLogin', alice.username))?.id ?? ''
  await addAdministrator(store, 'admins', id, systemRandom(16), { by: 'operator', at: own.now() }).catch(
    () => undefined,
  )
  const page = pageOf(await agent.submit(pageOf(await agent.open(`${own.issuer}/admin/apis`)), alice))
  t.match(page.html, /<code>courses:read<\/code> <span class="mark here">set in the configuration file/)
})
