/** `lychgate apply` and `lychgate export` on a running server, by its admin API. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listGroups } from '../../src/users/groups.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { integrate } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { post, postAs } from '../helpers/flow.ts'
import { startProxy } from '../helpers/proxy.ts'
import { startServer, type TestServer } from '../helpers/server.ts'

const everything = ['users', 'clients', 'upstreams'].flatMap((kind) => [
  `admin:${kind}:read`,
  `admin:${kind}:write`,
])
const attributes = [
  { name: 'staff_number', type: 'number', visible: 'user', editable: 'administrator' },
] as const

/** A server, a folder of files, and the commands on it by a client with these scopes. */
async function begin(t: Test, scope: readonly string[] = everything, running?: TestServer) {
  const server =
    running ?? (await startServer(t, { admin: { api: 'on' }, accounts: { attributes: [...attributes] } }))
  const { id, secret = '' } = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: [...scope],
    name: 'Pipeline',
  })
  const folder = newFolder(t)
  const files = join(folder, 'files')
  mkdirSync(files)
  writeFileSync(join(folder, 'secret'), `${secret}\n`)
  const own = `  - client_id: ${id}
    client_name: Pipeline
    token_endpoint_auth_method: client_secret_basic
    grant_types: [client_credentials]
    scope: ${scope.join(' ')}
`
  let at = server.issuer
  const location = () => ['--server', at, '--client-id', id, '--secret-file', join(folder, 'secret')]
  const run = (...line: string[]) => runHere([...line, ...location()])
  const write = (text: string, name = 'all.yaml') => writeFileSync(join(files, name), text)
  const apply = (...flags: string[]) => run('apply', '-f', files, ...flags)
  const exported = async () => (await run('export')).stdout
  const through = (port: number) => {
    at = `http://localhost:${port}`
  }
  return { server, id, secret, own, folder, files, run, write, apply, exported, through }
}

/** A file with an access token of the client. */
async function tokenFile({ server, id, secret, folder }: Awaited<ReturnType<typeof begin>>) {
  const client = { id, secret, method: 'client_secret_basic', redirectUri: '' } as const
  const form = { grant_type: 'client_credentials' }
  const tokens = (await (await postAs(server, client, '/api/oauth/token', form)).json()) as {
    access_token: string
  }
  const path = join(folder, 'token')
  writeFileSync(path, `${tokens.access_token}\n`)
  return path
}

/** With everything that a file can have. */
const school = (own: string) => `
groups:
  - { name: lecturers, parent: staff, administrators: deans }
  - { name: staff, description: Everyone who works here }
  - { name: deans, parent: lecturers }
users:
  - username: carol
    email: carol@example.org
    email_verified: true
    groups: [lecturers, deans]
    claims: { name: Carol Cooper, locale: en }
    attributes: { staff_number: 12 }
  - { username: dave, locked: true }
clients:
${own}  - client_id: grades
    client_name: Grades
    client_name#de: Noten
    redirect_uris: [https://grades.example.org/cb]
    allowed_groups: [staff]
    newSecretFile: made
    token_claims:
      - { claim: roles, roles: { lecturers: Editor } }
  - client_id: courses
    client_name: Courses
    resources: [ISSUER]
    secret: env:SECRET_OF_COURSES
  - client_id: import
    client_name: Nightly import
    grant_types: [client_credentials]
    scope: courses:read
    secretFile: ../given
    locked: true
`

t.test('files are applied to a running server once, and exported as they are', async (t) => {
  const one = await begin(t)
  const { server, files, folder, own } = one
  process.env['SECRET_OF_COURSES'] = 'c'.repeat(40)
  t.teardown(() => delete process.env['SECRET_OF_COURSES'])
  writeFileSync(join(folder, 'given'), 'g'.repeat(40))
  const text = school(own).replace('ISSUER', server.issuer)
  one.write(text)
  const before = await one.exported()
  t.match(before, /^# yaml-language-server: \S+\ngroups: \[\]\nusers:\n {2}- username: alice\n/)
  const dry = await one.apply('--dry-run')
  t.equal(dry.code, 2, dry.stderr)
  t.match(dry.stdout, /\n3 groups, 2 users, and 3 clients would be added\n$/)
  t.equal(await one.exported(), before, 'nothing is changed')
  t.strictSame(readdirSync(files), ['all.yaml'])

  const { code, stdout, stderr } = await one.apply()
  t.equal(code, 0, stderr)
  t.equal(stdout.match(/^link +http\S+\/link\?code=lyc_link_/gm)?.length, 1, 'a locked user is not invited')
  t.equal(statSync(join(files, 'made')).mode & 0o777, 0o600)
  const made = readFileSync(join(files, 'made'), 'utf8').trim()
  const works = async (id: string, secret: string) => {
    const form = { token: 'x', client_id: id, client_secret: secret }
    return (await post(server, '/api/oauth/introspect', form)).status
  }
  t.equal(await works('courses', 'c'.repeat(40)), 200)
  t.match(made, /^lyc_secret_/)
  t.notMatch(stdout, made)
  for (const again of [await one.apply('--dry-run'), await one.apply()])
    t.match(again, { code: 0, stdout: 'nothing to change\n' })

  // What the API shows is what is in the store.
  const { store } = server.deps
  const events = await store.audit({ since: 0, limit: 100 })
  t.match(
    events.filter(({ name }) => name === 'client-added').map(({ facts }) => facts?.['actor']),
    [one.id, one.id, one.id],
    'each change names who made it',
  )
  const byClient = events.filter(({ facts }) => facts?.['actor'] === one.id)
  t.ok(byClient.length > 10)
  t.strictSame(
    byClient.filter(({ facts }) => facts?.['file'] !== 'all.yaml'),
    [],
    'and the file that it comes from',
  )
  const exported = join(folder, 'exported')
  t.equal((await one.run('export', '--to', exported)).code, 0)
  t.match(await one.run('apply', '-f', exported, '--prune', '--dry-run'), { code: 0 })
  const all = await one.exported()
  t.match(all, / {4}parent: staff\n {4}administrators: deans\n/)
  t.match(all, /attributes:\n {6}staff_number: 12\n/)

  one.write(
    text
      .replace('description: Everyone who works here', 'description: Everyone')
      .replace('name: Carol Cooper,', 'name: Carol Carter,')
      .replace('groups: [lecturers, deans]', 'groups: [staff]')
      .replace('staff_number: 12', "staff_number: ''")
      .replace(
        '{ username: dave, locked: true }',
        '{ username: dave, locked: false, email: dave@example.org }',
      )
      .replace('    client_name#de: Noten\n', '    consent: skip\n')
      .replace('    secretFile: ../given\n    locked: true', '    secretFile: ../given\n    locked: false'),
  )
  writeFileSync(join(folder, 'given'), 'n'.repeat(40))
  const changed = await one.apply()
  t.equal(changed.code, 0, changed.stderr)
  for (const line of [
    /^~ group staff\n {4}description: Everyone who works here → Everyone$/m,
    /^~ user carol\n {4}groups: deans, lecturers → staff\n {4}claims\.name: Carol Cooper → Carol Carter\n {4}attributes\.staff_number: 12 → \(none\)$/m,
    /^~ user dave\n {4}email: \(none\) → dave@example\.org\n {4}locked: true → \(none\)$/m,
    /^~ client grades\n {4}consent: remember → skip\n {4}client_name#de: Noten → \(none\)$/m,
    /^~ client import\n {4}locked: true → \(none\)\n {4}secret: another → that of \.\.\/given$/m,
    /\n1 group, 2 users, and 2 clients changed\n$/,
  ])
    t.match(changed.stdout, line)
  t.match(await one.apply('--dry-run'), { code: 0, stdout: 'nothing to change\n' })
  t.match(await one.exported(), /username: carol\n(.*\n){3} {4}groups:\n {6}- staff\n {4}claims:/)
  const again = await begin(t)
  t.match(await again.run('apply', '-f', join(exported, 'groups.yaml')), { code: 0 })
  const groups = all.slice(all.indexOf('groups:'), all.indexOf('users:'))
  t.equal(groups, (await again.exported()).split('users:')[0]?.replace(/^.*\n/, ''), 'with the same ids')
})

t.test('--prune deletes by the admin API, and not the client that calls it', async (t) => {
  const { apply, write, own, exported, server, id } = await begin(t)
  write(`groups: [{ name: a }, { name: b, parent: a }]\nusers: [{ username: carol }]\nclients:\n${own}`)
  t.equal((await apply()).code, 0)
  write('groups: [{ name: c }]\n')
  const alone = await apply('--prune')
  t.match(alone, { code: 1, stderr: /use --yes/ })
  t.match(await apply('--prune', '--yes'), { code: 0, stdout: /1 group added, 2 groups deleted\n$/ })
  write('clients: []\n')
  t.match(await apply('--prune', '--yes'), {
    code: 1,
    stderr: new RegExp(`${id} calls the admin API, and no file has it: it would delete itself`),
  })
  write('users: [{ username: alice }]\n')
  t.match(await apply('--prune', '--yes'), { code: 0, stdout: /2 users deleted\n$/ })
  t.notMatch(await exported(), /username: (?:bob|carol)/)
  t.match(
    (await server.deps.store.audit({ since: 0, name: 'user-removed', limit: 5 })).map((one) => one.facts),
    [
      { actor: id, file: /all\.yaml$/ },
      { actor: id, file: /all\.yaml$/ },
    ],
  )
})

/** A proxy in front of the server, and what it does with the next request of a method and a path. */
async function between(t: Test, { server, through }: Awaited<ReturnType<typeof begin>>) {
  const [, port = ''] = /:(\d+)/.exec(server.issuer) ?? []
  const proxy = await startProxy(t, () => Number(port))
  through(proxy.port)
  return proxy
}

t.test('a lost race ends it with a message and an exit code, and changes nothing', async (t) => {
  const one = await begin(t)
  const other = await begin(t, everything, one.server)
  one.write('groups: [{ name: staff }]\nusers: [{ username: carol, claims: { name: Carol } }]\n')
  t.equal((await one.apply()).code, 0)
  const carol = await one.server.deps.store.find('userByLogin', 'carol')
  const token = await tokenFile(one)
  const proxy = await between(t, one)
  const at = ['--server', `http://localhost:${proxy.port}`, '--token-file', token]
  const rename = async (name: string) => {
    other.write(`users: [{ username: carol, claims: { name: ${name} } }]\n`)
    t.equal((await other.apply()).code, 0)
  }
  let isLate = false
  const path = `/api/admin/v1/users/${carol?.id}`
  for (const [method, seen] of [
    ['GET', 'before it is read again'],
    ['PATCH', 'before it is changed'],
  ] as const) {
    await rename('Carol')
    isLate = true
    proxy.behaviour.responses = (incoming, outgoing) => {
      if (!isLate || incoming.method !== method || incoming.url !== path) return false
      isLate = false
      void rename('Other').then(() => proxy.forward(incoming, outgoing))
      return true
    }
    one.write('users: [{ username: carol, claims: { name: Mine } }]\n')
    const lost = await runHere(['apply', '-f', one.files, ...at])
    t.match(lost, { code: 75, stderr: /user carol.* changed in the meantime/ }, seen)
    t.match(await other.exported(), /name: Other/, seen)
  }
  t.match(await runHere(['apply', '-f', one.files, ...at]), { code: 0 }, 'run again')
})

t.test('what is slowed down or lost is sent again, and done once', async (t) => {
  const one = await begin(t)
  one.write('users: [{ username: carol }]\n')
  const proxy = await between(t, one)
  const statuses = [429, 503]
  proxy.behaviour.response = (passing, path) => {
    const status = path === '/api/admin/v1/users' ? statuses.shift() : undefined
    return status === undefined ? passing : { ...passing, status, headers: { 'retry-after': '0' } }
  }
  const token = await tokenFile(one)
  const { code, stdout, stderr } = await runHere([
    ...['apply', '-f', one.files, '--server', `http://localhost:${proxy.port}`, '--token-file', token],
  ])
  t.equal(code, 0, stderr)
  t.strictSame(statuses, [], 'both responses were lost')
  t.match(stdout, /link +was lost with a response; make another one/)
  const added = await one.server.deps.store.audit({ since: 0, name: 'user-invited', limit: 5 })
  t.equal(added.length, 1)
})

t.test('a token that ends during a long run is replaced, at the issuer', async (t) => {
  const one = await begin(t)
  one.write('groups: [{ name: a }, { name: b }, { name: c }]\n')
  const proxy = await between(t, one)
  const posts: (string | undefined)[] = []
  proxy.behaviour.responses = ({ method, url, headers }) => {
    if (method !== 'POST' || url !== '/api/admin/v1/groups') return false
    // Before the second group.
    if (posts.length === 1) one.server.advance(3601)
    posts.push(headers.authorization)
    return false
  }
  // The API is at another place than the issuer, and the tokens are the issuer's.
  const at = ['--server', one.server.issuer, '--api', `http://localhost:${proxy.port}`]
  process.env['SECRET_OF_PIPELINE'] = one.secret
  t.teardown(() => delete process.env['SECRET_OF_PIPELINE'])
  const by = ['--client-id', one.id, '--secret-env', 'SECRET_OF_PIPELINE']
  const { code, stderr } = await runHere(['apply', '-f', one.files, ...at, ...by])
  t.equal(code, 0, stderr)
  t.equal(posts.length, 4, 'one was sent again')
  t.equal(new Set(posts).size, 2, 'with another token')
  const made = await one.server.deps.store.audit({ since: 0, name: 'group-created', limit: 9 })
  t.equal(made.length, 3)
})

t.test('a client with a private key calls it, from a PEM or JWK file', async (t) => {
  const one = await begin(t)
  for (const alg of ['ES256', 'Ed25519', 'PS256', 'RS256'] as const) {
    const { privateKey, jwk } = makeClientKey(alg)
    const { id } = await integrate(one.server, {
      grantTypes: ['client_credentials'],
      redirectUris: [],
      scope: everything,
      authenticationMethod: 'private_key_jwt',
      description: { jwks: { keys: [jwk] }, token_endpoint_auth_signing_alg: alg },
    })
    const texts = {
      pem: privateKey.export({ format: 'pem', type: 'pkcs8' }),
      jwk: JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: jwk['kid'], alg }),
    }
    for (const [form, text] of Object.entries(texts)) {
      // Without the algorithm an RSA key signs by PS256.
      if (alg === 'RS256' && form === 'pem') continue
      writeFileSync(join(one.folder, form), text)
      const by = ['--client-id', id, '--key-file', join(one.folder, form)]
      const { code, stderr } = await runHere(['export', '--server', one.server.issuer, ...by])
      t.equal(code, 0, `${alg} ${form}: ${stderr}`)
    }
  }
  const none = join(one.folder, 'secret')
  for (const text of ['no key', '{}', String(makeClientKey().jwk['x'])]) {
    writeFileSync(none, text)
    const by = ['--client-id', one.id, '--key-file', none]
    t.match(await runHere(['export', '--server', one.server.issuer, ...by]), {
      code: 1,
      stderr: /--key-file: the file has no private key/,
    })
  }
})

t.test('groups exchange their names in one run', async (t) => {
  const { apply, write, exported, server } = await begin(t)
  write('groups: [{ name: red }, { name: blue }]\n', 'größe 1.yaml')
  await apply()
  const before = await exported()
  const swapped = before.replace(/name: (red|blue)/g, (_, name) => `name: ${name === 'red' ? 'blue' : 'red'}`)
  write(swapped, 'größe 1.yaml')
  t.match(await apply(), { code: 0, stdout: /\n2 groups changed\n$/ })
  const ids = (text: string) =>
    Object.fromEntries([...text.matchAll(/name: (\w+)\n {4}id: (\S+)/g)].map(([, ...pair]) => pair))
  t.strictSame(ids(await exported()), ids(swapped))
  t.match(await apply('--dry-run'), { code: 0 })
  const [event] = await server.deps.store.audit({ since: 0, name: 'group-changed', limit: 1 })
  t.equal(event?.facts['file'], 'größe 1.yaml')
})

t.test('a client without a scope, a secret or the API gets an error before anything changes', async (t) => {
  const reader = await begin(t, ['admin:users:read', 'admin:clients:read', 'admin:upstreams:read'])
  const { write, apply, server, folder, run } = reader
  write('groups: [{ name: staff }]\n')
  t.match(
    await apply('--dry-run'),
    { code: 2, stdout: /\+ group staff\n/ },
    'reading is enough for a dry run',
  )
  t.match(await apply(), { code: 1, stderr: /scope/ })
  t.equal((await run('export')).code, 0)
  t.strictSame(await listGroups(server.deps.store), [])
  writeFileSync(join(folder, 'secret'), 'wrong')
  t.match(await apply(), { code: 1, stderr: /client_\S+: the server does not know this client/ })
  writeFileSync(join(folder, 'secret'), reader.secret)

  const at = (...flags: string[]) => runHere(['export', '--server', server.issuer, ...flags])
  t.match(await at(), { code: 64, stderr: /--server needs --client-id or --token-file/ })
  t.match(await at('--client-id', 'x'), {
    code: 64,
    stderr: /one of --secret-file, --secret-env and --key-file/,
  })
  const both = ['--secret-env', 'HOME', '--key-file', 'x']
  t.match(await at('--client-id', 'x', ...both), { code: 64, stderr: /one of --secret-file/ })
  t.match(await at('--client-id', 'x', '--secret-env', 'UNSET'), { code: 78, stderr: /UNSET is not set/ })
  const file = join(folder, 'secret')
  t.match(await at('--token-file', file, '--client-id', 'x'), { code: 64, stderr: /exclude each other/ })
  t.match(await at('--token-file', file), { code: 1, stderr: /access token/ }, 'a secret is no token')
  t.match(await at('--token-file', file, '--data', folder), { code: 64, stderr: /--data is for a store/ })
  t.match(await runHere(['export', '--token-file', file]), { code: 64, stderr: /need --server/ })
  t.match(await runHere(['export', '--server', 'http://id.example.org', '--token-file', file]), {
    code: 1,
    stderr: /--server must be an https URL, or one of this computer/,
  })
  const off = await begin(t, ['courses:read'], await startServer(t))
  t.match(await off.run('export'), { code: 1, stderr: /scope/ })
})
