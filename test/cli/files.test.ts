import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { callApi, obtainTokens, post, redirectUri, refresh } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { startPostgres } from '../storage/postgres-server.ts'

/** An empty store with a folder for files, and the commands on it. */
async function begin(t: Test, url?: string) {
  const folder = newFolder(t)
  const files = join(folder, 'files')
  mkdirSync(files)
  const store = url ?? `sqlite:${folder}/lychgate.db`
  const environment = {
    LYCHGATE_STORE: store,
    LYCHGATE_DATA: folder,
    LYCHGATE_ISSUER: 'http://localhost:9400',
  }
  const run = (...line: string[]) => runHere(line, { environment })
  const ok = async (...line: string[]) => {
    const { code, stdout, stderr } = await run(...line)
    if (code !== 0) throw new Error(`${line.join(' ')}: ${stderr}`)
    return stdout
  }
  const write = (text: string, name = 'all.yaml') => writeFileSync(join(files, name), text)
  const apply = (...flags: string[]) => run('apply', '-f', files, ...flags)
  const applied = async (text: string, ...flags: string[]) => {
    write(text)
    return await ok('apply', '-f', files, ...flags)
  }
  const audit = async () =>
    JSON.parse(await ok('audit', '--json')) as { event: string; file?: string; changed?: string }[]
  return { folder, files, store, environment, run, ok, write, apply, applied, audit }
}

const school = `
groups:
  - { name: teachers, parent: staff }
  - { name: staff, description: Everyone who works here }
users:
  - username: carol
    email: carol@example.org
    groups: [teachers]
    claims: { name: Carol Cooper, locale: en }
  - { username: dave, locked: true }
clients:
  - client_id: grades
    client_name: Grades
    client_name#de: Noten
    redirect_uris: [https://grades.example.org/cb]
    allowed_groups: [staff]
    token_claims:
      - { claim: roles, roles: { teachers: Editor } }
  - client_id: import
    client_name: Nightly import
    grant_types: [client_credentials]
    scope: courses:read
    locked: true
`

const postgres = await startPostgres(t)
const stores = { SQLite: async () => undefined, PostgreSQL: () => postgres.createDatabase() }

for (const [name, url] of Object.entries(stores)) {
  t.test(`${name}: files are applied once, and exported as they are`, async (t) => {
    const one = await begin(t, await url())
    one.write(school)
    const dry = await one.apply('--dry-run')
    t.equal(dry.code, 2, 'something would change')
    t.match(dry.stdout, /^\+ group staff\n {4}description: Everyone who works here\n\+ group teachers\n/)
    t.match(dry.stdout, /\n2 groups, 2 users, and 2 clients would be added\n$/)
    t.match(
      await one.ok('export'),
      /^# yaml-language-server: \S+\ngroups: \[\]\nusers: \[\]\nclients: \[\]\nupstreams: \[\]\n$/,
    )

    const { code, stdout } = await one.apply()
    t.equal(code, 0)
    t.match(stdout, /^link +http:\/\/localhost:9400\/link\?code=lyc_link_/m)
    t.equal(stdout.match(/^link /gm)?.length, 1, 'a locked user is not invited')
    t.match(stdout, /client rotate-secret grades makes another/)
    t.notMatch(stdout, /lyc_secret_/)
    const before = await one.ok('export')
    const events = await one.audit()
    for (const again of [await one.apply('--dry-run'), await one.apply('--prune', '--yes')])
      t.match(again, { code: 0, stdout: 'nothing to change\n' })
    t.strictSame(await one.audit(), events, 'nothing is written')
    t.strictSame(events.map(({ event }) => event).sort(), [
      ...['client-added', 'client-added', 'client-locked', 'group-created', 'group-created'],
      ...['group-member-added', 'link-made', 'user-added', 'user-invited'],
    ])
    for (const { file } of events) t.equal(file, 'all.yaml')

    const exported = join(one.folder, 'exported')
    await one.ok('export', '--to', exported)
    t.strictSame(readdirSync(exported).sort(), [
      'clients.yaml',
      'groups.yaml',
      'lychgate.schema.json',
      'upstreams.yaml',
      'users.yaml',
    ])
    t.equal(statSync(join(exported, 'users.yaml')).mode & 0o777, 0o600)
    t.match(await one.run('export', '--to', exported), {
      code: 1,
      stderr: /groups\.yaml exists; name another folder/,
    })
    t.match(await one.run('apply', '-f', exported, '--prune', '--dry-run'), {
      code: 0,
      stdout: 'nothing to change\n',
    })
    const other = await begin(t, await url())
    await other.ok('apply', '-f', exported)
    t.equal(await other.ok('export'), before, 'identical on another server')
    t.notMatch(before, /secret|password/i)
  })

  t.test(`${name}: a change shows every member, old and new, and only that is changed`, async (t) => {
    const { applied, ok, apply, audit } = await begin(t, await url())
    await applied(school)
    const changed = school
      .replace('{ name: teachers,', '{ name: lecturers,')
      .replace('groups: [teachers]', 'groups: [staff]')
      .replace('name: Carol Cooper,', "name: Carol Carter, website: 'https://carol.example',")
      .replace('{ teachers: Editor }', '{ staff: Editor }')
      .replace('    locked: true\n', '    locked: false\n')
      .replace('locked: true }', 'locked: false, email: dave@example.org, email_verified: true }')
    const [, id] = /name: teachers\n {4}id: (\S+)/.exec(await ok('export')) ?? []
    const output = await applied(changed.replace('{ name: lecturers,', `{ name: lecturers, id: ${id},`))
    t.match(output, /^~ group teachers\n {4}name: teachers → lecturers$/m)
    t.match(
      output,
      /^~ user carol\n {4}groups: lecturers → staff\n {4}claims\.name: Carol Cooper → Carol Carter\n/m,
    )
    t.match(output, /^ {4}claims\.website: \(none\) → https:\/\/carol\.example$/m)
    t.match(
      output,
      /^~ user dave\n {4}email: \(none\) → dave@example\.org\n {4}email_verified: \(none\) → true\n {4}locked: true → \(none\)$/m,
    )
    t.match(output, /^~ client grades\n {4}token_claims: .*"lecturers":"Editor".* → .*"staff":"Editor".*$/m)
    t.match(output, /^~ client import\n {4}locked: true → \(none\)$/m)
    t.match(output, /1 group, 2 users, and 2 clients changed/)
    t.match(await apply('--dry-run'), { code: 0 })
    const exported = await ok('export')
    t.match(exported, new RegExp(`name: lecturers\n {4}id: ${id}\n`), 'it keeps its id')
    t.match(exported, /username: carol\n(.*\n){2} {4}groups:\n {6}- staff\n/)
    const changes = (await audit()).filter(({ event }) => event.endsWith('-changed'))
    t.match(
      changes.map(({ changed }) => changed),
      ['name', 'name website', 'email email_verified', 'token_claims'],
    )
  })

  t.test(`${name}: --prune deletes what no file has, of the kinds that files have`, async (t) => {
    const { applied, ok, apply, write, run, audit } = await begin(t, await url())
    await applied(school)
    write('groups: [{ name: staff, description: Everyone who works here }]\n')
    t.match(await apply('--dry-run'), { code: 0 }, 'nothing without --prune')
    const alone = await apply('--prune')
    t.match(alone, { code: 1, stderr: /use --yes/ })
    t.match(alone.stdout, /^- group teachers\n$/)
    t.match(await ok('group', 'list'), /teachers/, 'nothing without --yes')
    t.match(await apply('--prune', '--yes'), { code: 0, stdout: /1 group deleted/ })
    t.match(await ok('user', 'list'), /carol/, 'a kind that no file has stays')
    write('groups: []\nusers: [{ username: dave }]\nclients: []\n')
    t.match(await apply('--prune', '--yes'), { code: 0, stdout: /1 group, 1 user, and 2 clients deleted/ })
    t.match(await run('user', 'show', 'carol'), { code: 1 })
    t.equal(await ok('client', 'list'), '')
    t.equal(await ok('group', 'list'), '')
    const deletions = (await audit()).filter(({ event }) => /-(?:removed|deleted)$/.test(event))
    t.strictSame(
      deletions.map(({ event, file }) => [event, file]).sort(),
      ['client-removed', 'client-removed', 'group-deleted', 'group-deleted', 'user-removed'].map((event) => [
        event,
        'all.yaml',
      ]),
      'each deletion names the files that have the kind, and not the object',
    )
  })
}

t.test('secrets come from files and variables, or are made and written where the file says', async (t) => {
  const { folder, files, store, ok, apply, applied, audit, environment } = await begin(t)
  const server = await startServer(t, { store })
  const client = (id: string, secret: string) =>
    `  - { client_id: ${id}, client_name: A, grant_types: [client_credentials], scope: 'courses:read', ${secret} }\n`
  const [inFile, inVariable] = ['f'.repeat(32), 'v'.repeat(32)]
  writeFileSync(join(folder, 'given'), `${inFile}\n`)
  const text = `clients:\n${client('one', 'secretFile: ../given')}${client('two', 'secret: "env:SECRET_OF_TWO"')}${client('three', 'newSecretFile: made')}`
  const missing = await (async () => {
    writeFileSync(join(files, 'all.yaml'), text)
    return await apply()
  })()
  t.match(missing, { code: 78, stderr: /all\.yaml:3: secret: the variable SECRET_OF_TWO is not set/ })
  t.strictSame(readdirSync(files), ['all.yaml'], 'nothing is made before everything is checked')
  Object.assign(environment, { SECRET_OF_TWO: inVariable })
  t.match((await apply('--dry-run')).stdout, /^ {4}secret: made, and written to made$/m)
  t.strictSame(readdirSync(files), ['all.yaml'])
  const output = await applied(text)
  t.match(output, /^ {4}secret: that of \.\.\/given$/m)
  t.match(output, /^ {4}secret: that of env:SECRET_OF_TWO$/m)
  const made = readFileSync(join(files, 'made'), 'utf8').trim()
  t.match(made, /^lyc_secret_/)
  t.equal(statSync(join(files, 'made')).mode & 0o777, 0o600)
  for (const secret of [inFile, inVariable, made]) t.notMatch(output, secret)

  const works = async (id: string, secret: string) => {
    const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret }
    return (await post(server, '/api/oauth/token', form)).status === 200
  }
  t.ok(await works('one', inFile))
  t.ok(await works('two', inVariable))
  t.ok(await works('three', made))
  t.match(await apply('--dry-run'), { code: 0 }, 'the made secret is read from its file then')

  writeFileSync(join(folder, 'given'), 'g'.repeat(40))
  const replaced = await applied(text)
  t.match(replaced, /^~ client one\n {4}secret: another → that of \.\.\/given$/m)
  t.ok(await works('one', 'g'.repeat(40)))
  t.notOk(await works('one', inFile), 'the replaced secret has ended')
  t.ok((await audit()).some(({ event }) => event === 'client-secret-changed'))
  t.match(await ok('export'), /client_id: one\n(?!.*secret)/)

  const rejections: readonly (readonly [string, RegExp])[] = [
    ['secretFile: gone', /:2: secretFile: cannot read \S+gone \(ENOENT\)/],
    [
      'secret: hunter2hunter2hunter2hunter2hunt',
      /:2: clients\.0\.secret: must be env: and the name of a variable/,
    ],
    ['secretFile: ../given, newSecretFile: made', /:2: secretFile and newSecretFile exclude each other/],
    ['secretFile: ../short', /:2: a secret has 32 to 200 characters/],
    ['secretFile: ../given, token_endpoint_auth_method: private_key_jwt', /:2: /],
  ]
  writeFileSync(join(folder, 'short'), 'hunter2')
  for (const [secret, reason] of rejections) {
    writeFileSync(join(files, 'all.yaml'), `clients:\n${client('other', secret)}`)
    const { code, stderr } = await apply()
    t.equal(code, 78)
    t.match(stderr, reason)
    t.notMatch(stderr, 'hunter2')
  }
  t.notMatch(await ok('client', 'list'), 'other')
})

t.test('a running server sees with the next request what was applied', async (t) => {
  const { store, applied } = await begin(t)
  const server = await startServer(t, { store })
  const site = (more: string) =>
    `groups: [{ name: staff }]
users: [{ username: alice${more === '' ? ', groups: [staff]' : ''} }]
clients:
  - client_id: site
    client_name: Site
    token_endpoint_auth_method: none
    redirect_uris: ['${redirectUri}']
    allowed_groups: [staff]
${more}`
  await applied(site(''))
  const client = { id: 'site', method: 'none', redirectUri }
  const { access_token: access, refresh_token: token } = await obtainTokens(server, client)
  t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 200)
  await applied(site('    locked: true\n'))
  t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 401, 'locked')
  await applied(site('    locked: false\n'))
  t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 200, 'unlocked')
  const refreshed = await refresh(server, client, token)
  t.match(await refreshed.json(), { error: 'invalid_grant' }, 'alice left the group')
})

t.test('everything is checked before anything is written, and each fault has its line', async (t) => {
  const { files, store, run, write, apply, ok } = await begin(t)
  const server = await startServer(t, { store })
  const users = await ok('user', 'list')
  const registered = (await (
    await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/cb'] }),
    })
  ).json()) as { client_id: string }
  const faulty: Readonly<Record<string, readonly string[]>> = {
    'groups:\n  - name: ok\n  - name: ok2\n    parrent: ok\n': [
      '4: groups.1.parrent: there is no such member; did you mean parent?',
    ],
    'groups:\n  - name: 12\n    description: [a]\n': [
      '2: groups.0.name: must be string; put it in quotes',
      '3: groups.0.description: must be string',
    ],
    'groups:\n  - name: a\n    name: b\n': ['3: not valid YAML: Map keys must be unique'],
    'groups:\n  - name: a\n  - name: A\n': ['3: name: is the same as at FILE:2'],
    'groups:\n  - name: "a,b"\n  - { name: c, parent: nowhere }\n': [
      '2: the name of a group has',
      '3: parent: there is no group nowhere',
    ],
    'groups:\n  - { name: a, parent: b }\n  - { name: b, parent: a }\n': ['2: ', '3: '],
    'groups: [{ id: group_AAAAAAAAAAAAAAAAAAAAAB, name: a }]\n': ['1: groups.0.id: must have the form'],
    'users:\n  - username: "a b"\n  - { username: new, groups: [nowhere] }\n  - { username: bob, claims: { locale: "!!" } }\n':
      [
        '2: username must have 1 to 128',
        '3: groups: there is no group nowhere',
        '4: claims.locale: must be a language tag',
      ],
    'users:\n  - { username: new, email: alice@example.test }\n': [
      '2: the user name or email address is taken',
    ],
    'users:\n  - { username: one, email: a@b.example }\n  - { username: two, email: a@b.example }\n': [
      '3: the user name or email address is taken',
    ],
    'users:\n  - { username: other, sub: SUB }\n': ['2: username: the user with this sub is alice'],
    'users:\n  - { username: alice, sub: user_AAAAAAAAAAAAAAAAAAAAAA }\n': [
      '2: the user name or email address is taken',
    ],
    'users:\n  - { username: a, password: hunter22 }\n': ['2: users.0.password: there is no such member'],
    'clients:\n  - { client_id: a b, client_name: A }\n  - { client_id: a }\n': [
      '2: clients.0.client_id: must have the form',
      '3: clients.1.client_name: is missing',
    ],
    'clients:\n  - { client_id: a, client_name: A, consent: never }\n': [
      '2: clients.0.consent: must be one of: always, remember, skip',
    ],
    'clients:\n  - { client_id: a, client_name: A, redirect_uris: [http://a.example/] }\n': [
      '2: redirect-uri 1 must be an https',
    ],
    'clients:\n  - { client_id: REGISTERED, client_name: A }\n': [
      '2: client_id: this client registered itself',
    ],
    'clients:\n  - { client_id: a, client_name: A, redirect_uris: [https://a.example/], allowed_groups: [nowhere] }\n':
      ['2: allowed_groups: there is no group nowhere'],
    'clients:\n  - { client_id: a, client_name: A, redirect_uris: [https://a.example/], token_claims: [{ claim: sub, value: x }] }\n':
      ['2: token_claims[0].claim is a claim that only the server sets'],
    'persons: []\n': ['1: persons: there is no such member'],
    '- a\n': ['1: must be a mapping of groups, users, clients'],
  }
  const sub = JSON.parse(await ok('user', 'show', 'alice', '--json')).sub
  for (const [text, faults] of Object.entries(faulty)) {
    write('groups: [{ name: before }]\nusers: [{ username: before }]\n', '0.yaml')
    write(text.replace('SUB', sub).replace('REGISTERED', registered.client_id))
    const { code, stdout, stderr } = await apply()
    t.equal(code, 78, text)
    t.equal(stdout, '')
    const file = `${files}/all.yaml`
    for (const fault of faults)
      t.ok(stderr.includes(`lychgate: ${file}:${fault.replace('FILE', file)}`), `${fault}: ${stderr}`)
  }
  t.equal(await ok('user', 'list'), users)
  t.equal(await ok('group', 'list'), '')
  t.match(await run('apply', '-f', join(files, 'gone')), {
    code: 78,
    stderr: /gone: there is no such file or folder/,
  })
  write('groups: *b\n')
  t.match(await apply(), { code: 78, stderr: /not valid YAML: Unresolved alias/ })
  t.match(await run('apply'), { code: 64 })
  t.match(await run('apply', '-f', newFolder(t)), { code: 78, stderr: /has no \.yaml file/ })
})

t.test('groups change places in one run, and the lowest is deleted first', async (t) => {
  const { applied, ok, apply, write } = await begin(t)
  await applied('groups: [{ name: a }, { name: b, parent: a }, { name: c, parent: b }]\n')
  t.match(
    await applied('groups: [{ name: a, parent: b }, { name: c, parent: a }, { name: b }]\n'),
    /3 groups changed/,
  )
  t.match(JSON.parse(await ok('group', 'list', '--json')), [{ parent: 'b' }, { name: 'b' }, { parent: 'a' }])
  write('groups: [{ name: top }]\n')
  t.match(await apply('--prune', '--yes'), { code: 0, stdout: /1 group added, 3 groups deleted\n$/ })
})

t.test('groups exchange their names in one run, and keep their ids and members', async (t) => {
  const { applied, apply, ok, write } = await begin(t)
  const names = ['red', 'green', 'blue']
  await applied(`
groups: [${names.map((name) => `{ name: ${name} }`)}]
users: [${names.map((name) => `{ username: of-${name}, groups: [${name}] }`)}]
`)
  const exported = async () =>
    JSON.parse(await ok('export', '--json')) as {
      groups: { name: string; id: string }[]
      users: { username: string; groups: string[] }[]
    }
  const before = await exported()
  const idOf = (name: string) => before.groups.find((one) => one.name === name)?.id
  const next = { red: 'green', green: 'blue', blue: 'red' } as const
  const turned = Object.entries(next).map(([old, name]) => `{ id: ${idOf(old)}, name: ${name} }`)
  write(`groups: [${turned}, { name: purple, parent: red }]`)
  const { code, stdout, stderr } = await apply()
  t.equal(code, 0, stderr)
  for (const [old, name] of Object.entries(next))
    t.match(stdout, `~ group ${old}\n    name: ${old} → ${name}\n`)
  t.match(stdout, /\n1 group added, 3 groups changed\n$/)
  const after = await exported()
  for (const [old, name] of Object.entries(next)) {
    t.equal(after.groups.find((one) => one.id === idOf(old))?.name, name)
    t.match(after.users.find(({ username }) => username === `of-${old}`)?.groups, [name])
  }
  t.match(await apply('--dry-run'), { code: 0 })
  // The other one keeps the name, so that it is not free.
  write(`groups: [{ id: ${idOf('red')}, name: red }]`)
  t.match(await apply(), { code: 78, stderr: /another group has this name/ })
})

t.test('a group is administered by another one, also by one below it', async (t) => {
  const { applied, apply, write, ok, folder } = await begin(t)
  const groups = 'groups: [{ name: a, administrators: b }, { name: b, parent: a, administrators: b }]\n'
  t.match(await applied(groups), /\+ group a\n {4}administrators: b\n/)
  t.match(await apply(), { code: 0, stdout: 'nothing to change\n' })
  t.match(JSON.parse(await ok('group', 'list', '--json')), [
    { administrators: 'b' },
    { parent: 'a', administrators: 'b' },
  ])
  const exported = join(folder, 'exported')
  await ok('export', '--to', exported)
  const other = await begin(t)
  await other.ok('apply', '-f', exported)
  t.equal(await other.ok('export'), await ok('export'))
  t.match(
    await applied('groups: [{ name: a }, { name: b, parent: a, administrators: a }]\n'),
    /2 groups changed/,
  )
  write('groups: [{ name: a, administrators: c }]\n')
  t.match(await apply(), { code: 78, stderr: /administrators: there is no group c/ })
  write('groups: [{ name: top }]\n')
  t.match(await apply('--prune', '--yes'), { code: 0, stdout: /2 groups deleted\n$/ })
})

t.test('a client that only deleted groups may use stays closed', async (t) => {
  const { applied, ok, folder, store } = await begin(t)
  await applied(school)
  await applied('groups: [{ name: teachers }]\nusers: [{ username: carol }]\n')
  await ok('group', 'delete', 'staff', '--yes')
  const exported = join(folder, 'exported')
  await ok('export', '--to', exported)
  const other = await begin(t)
  await other.ok('apply', '-f', exported)
  t.match(await other.ok('client', 'access', 'grades'), /allowed_groups +group_\S+ \(deleted\)/)
  t.not(store, other.store)
})

t.test('the last administrator stays, and another one may come first', async (t) => {
  const { store, applied, apply, write, ok } = await begin(t)
  await startServer(t, { store })
  await applied('groups: [{ name: admins }]\nusers: [{ username: alice, groups: [admins] }]\n')
  const left = 'groups: [{ name: admins }]\nusers: [{ username: alice'
  for (const [text, flags] of [
    [`${left} }]\n`, []],
    [`${left}, groups: [admins], locked: true }]\n`, []],
    ['groups: [{ name: admins }]\nusers: [{ username: bob }]\n', ['--prune', '--yes']],
    ['groups: []\n', ['--prune', '--yes']],
  ] as const) {
    write(text)
    t.match(await apply(...flags), { code: 1, stderr: /no administrator would be left/ }, text)
    t.match(await ok('export'), /username: alice\n.*\n.*\n.*\n {4}groups:\n {6}- admins/)
  }
  await applied(`${left} }, { username: bob, groups: [admins] }]\n`)
  t.notMatch(await ok('user', 'show', 'alice'), 'admins')
  await applied('users: [{ username: bob }]\n', '--force')
})
