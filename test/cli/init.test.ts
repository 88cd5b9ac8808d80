/** `lychgate init`: from an empty folder to a server with its first user, in two commands. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { defaultScopeCatalogue, shippedScope } from '../../src/domain/scope-catalogue.ts'
import { resolveConfig } from '../../src/settings/load.ts'
import { ended, executable, printed, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

const issuer = 'https://auth.example.org'
const yes = ['init', '--yes', '--issuer', issuer]

t.test('a server for the suite of the OpenID Foundation is made as docs/testing.md says', async (t) => {
  const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8')
  const [, reload = ''] = /^- `keys\.(reloadSeconds: \d+)`/m.exec(page) ?? []
  const [, ed25519 = ''] = /^- `keys\.(ed25519: \w+)`/m.exec(page) ?? []
  const [, scopeLine = ''] = /^- `(- name: [\w:]+)` under `scopes`/m.exec(page) ?? []
  t.notOk([reload, ed25519, scopeLine].includes(''))
  const folder = t.testdir({})
  t.equal((await run([...yes, '--folder', folder])).code, 0)
  const file = join(folder, 'lychgate.yaml')
  const written = readFileSync(file, 'utf8').replace(/^scopes:$/m, `$&\n  ${scopeLine}`)
  for (const more of ['', 'admin:\n  api: on\n'])
    for (const keys of ['', `  ${ed25519}\n`]) {
      writeFileSync(file, `${written}keys:\n  ${reload}\n${keys}${more}`)
      t.match(await run(['config', 'validate', '--config', file]), { code: 0 }, `${keys}${more}`)
    }
  const { scopes } = parse(readFileSync(file, 'utf8'))
  const offered = scopes.map(({ name }: { readonly name: string }) => name)
  const [, fapi = ''] = /--scope '([^']+courses:read)'/.exec(page) ?? []
  t.ok(fapi.includes(' '))
  t.strictSame(
    fapi.split(' ').filter((name) => !offered.includes(name)),
    [],
    'every scope of the FAPI clients is offered',
  )
})

t.test('init and serve lead to the link of the first user', async (t) => {
  const folder = t.testdir({})
  const port = String(await freePort())
  const made = await run([...yes, '--name', 'Courses: "one"', '--port', port, '--folder', folder])
  t.match(made, { code: 0, stderr: '' })
  t.match(made.stdout, `${executable ?? 'lychgate.js'} serve --config ${folder}/lychgate.yaml`)
  t.match(made.stdout, `auth.example.org {\n\treverse_proxy 127.0.0.1:${port}\n}`)
  t.match(made.stdout, /^ExecStart=\S+ .*serve --config \S+\/lychgate\.yaml$/m)
  t.strictSame(readdirSync(folder).sort(), ['data', 'lychgate.yaml', 'secret'])
  t.equal(statSync(join(folder, 'data')).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, 'secret')).mode & 0o777, 0o600)
  const configuration = statSync(join(folder, 'lychgate.yaml'))
  t.equal(configuration.mode & 0o777, 0o640, 'a password of a mail server may be in it')
  t.equal(configuration.gid, statSync(folder).gid, 'the group of the folder')
  t.match(made.stdout, `\nchgrp lychgate ${folder}/lychgate.yaml\n`)
  t.notMatch(made.stdout, 'is in use')
  const secret = readFileSync(join(folder, 'secret'), 'utf8').trim()
  t.notMatch(made.stdout + readFileSync(join(folder, 'lychgate.yaml'), 'utf8'), secret)

  const config = ['--config', join(folder, 'lychgate.yaml')]
  const printed = await run(['config', 'print', '--json', '--changed', ...config])
  t.match(JSON.parse(printed.stdout).settings, {
    issuer: { value: issuer },
    'service.name': { value: 'Courses: "one"' },
    secret: { value: '***', name: join(folder, 'secret') },
  })
  const server = start(['serve', ...config])
  t.teardown(() => server.kill('SIGKILL'))
  let output = ''
  for await (const chunk of server.stderr ?? []) {
    output += chunk
    if (output.includes('/link?code=')) break
  }
  t.match(output, `${issuer}/link?code=lyc_link_`)
})

t.test('a server on this computer listens on the port of its issuer, without a proxy', async (t) => {
  const folder = t.testdir({})
  const here = `http://localhost:${await freePort()}`
  const made = await run(['init', '--yes', '--issuer', here, '--folder', folder])
  t.match(made, { code: 0, stderr: '' })
  t.notMatch(made.stdout, 'reverse_proxy')
  const server = start(['serve', '--config', join(folder, 'lychgate.yaml')])
  t.teardown(() => server.kill('SIGKILL'))
  const link = await printed(server, /http\S+\/link\?code=lyc_link_[\w-]{43}(?=\n)/)
  t.equal((await fetch(link)).status, 200, 'the link works')
  t.notMatch(readFileSync(join(folder, 'lychgate.yaml'), 'utf8'), 'trustProxy')
})

/** Runs a server until the end of the test; returns its own documents and the status of its API. */
async function offered(t: Test, issuer: string, file: string) {
  const server = start(['serve', '--config', file])
  t.teardown(() => server.kill('SIGKILL'))
  await printed(server, /http\S+\/link\?code=lyc_link_[\w-]{43}(?=\n)/)
  const get = async (path: string) => {
    const response = await fetch(`${issuer}${path}`)
    const text = await response.text()
    const body = text === '' ? undefined : JSON.parse(text)
    return { status: response.status, challenge: response.headers.get('www-authenticate'), body }
  }
  const { body: description } = await get('/openapi.json')
  return {
    scopes: (await get('/.well-known/oauth-authorization-server')).body.scopes_supported,
    resource: (await get('/.well-known/oauth-protected-resource')).body,
    userinfo: await get('/api/oauth/userinfo'),
    courses: await get('/api/courses'),
    notes: await get('/api/notes'),
    areas: Object.keys(description.paths).filter((path) => /^\/api\/[a-z-]+$/.test(path)),
    described: Object.keys(description.paths),
  }
}

t.test('a new server offers who the user is, and no API of a school', async (t) => {
  const five = ['openid', 'profile', 'email', 'groups', 'offline_access']
  const folder = t.testdir({})
  const here = `http://localhost:${await freePort()}`
  t.match(await run(['init', '--yes', '--issuer', here, '--folder', folder]), { code: 0, stderr: '' })
  const file = join(folder, 'lychgate.yaml')
  const { scopes, courses, resource, userinfo, areas, described } = await offered(t, here, file)
  t.strictSame(scopes, five)
  t.match(courses, { status: 404, challenge: null, body: { error: 'invalid_request' } })
  t.strictSame(areas, [])
  t.ok(described.includes('/api/oauth/userinfo'))
  t.match(resource, { resource: here })
  t.strictSame(resource.scopes_supported, five.slice(0, 4), 'offline_access is about no resource')
  t.equal(userinfo.status, 401)
  t.match(userinfo.challenge, `resource_metadata="${here}/.well-known/oauth-protected-resource"`)

  // Each entry has the shipped words, so the pages have them in every language.
  const { config } = resolveConfig({ mode: 'serve', file })
  t.strictSame(
    config.scopes,
    five.map((name) => shippedScope(name)),
  )
})

t.test("an operator's scope opens no path at the issuer of a new server", async (t) => {
  const folder = t.testdir({})
  const here = `http://localhost:${await freePort()}`
  t.match(await run(['init', '--yes', '--issuer', here, '--folder', folder]), { code: 0, stderr: '' })
  const file = join(folder, 'lychgate.yaml')
  const own = '{name: "notes:read", group: Notes, access: read, description: Your notes}'
  const before = readFileSync(file, 'utf8')
  writeFileSync(file, before.replace('  - name: email\n', `  - name: email\n  - ${own}\n`))
  const { scopes, notes, areas } = await offered(t, here, file)
  t.strictSame(scopes, ['openid', 'profile', 'email', 'notes:read', 'groups', 'offline_access'])
  t.equal(notes.status, 404)
  t.strictSame(areas, [])
})

t.test('a folder from before keeps the 38 scopes and their API', async (t) => {
  const folder = t.testdir({})
  const here = `http://localhost:${await freePort()}`
  t.match(await run(['init', '--yes', '--issuer', here, '--folder', folder]), { code: 0, stderr: '' })
  const file = join(folder, 'lychgate.yaml')
  const { scopes: _scopes, builtInApi: _builtInApi, ...former } = parse(readFileSync(file, 'utf8'))
  writeFileSync(file, stringify(former))
  const { scopes, courses, areas } = await offered(t, here, file)
  t.strictSame(scopes, [...defaultScopeCatalogue.map(({ name }) => name), 'groups', 'offline_access'])
  t.equal(defaultScopeCatalogue.length, 38)
  const body = { area: 'courses', operation: 'read', caller: 'anonymous' }
  t.strictSame(courses, { status: 200, challenge: null, body })
  t.ok(areas.includes('/api/courses'))
})

t.test('init names a port that another process listens on', async (t) => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo // `as`: it listens on TCP
  const made = await run([...yes, '--port', String(port), '--folder', t.testdir({})])
  t.match(made, { code: 0, stdout: `\nPort ${port} is in use by another process` })
})

t.test('init replaces nothing', async (t) => {
  for (const present of ['lychgate.yaml', 'secret', 'data']) {
    const folder = t.testdir({})
    writeFileSync(join(folder, present), 'mine')
    const result = await run([...yes, '--folder', folder])
    t.match(result, { code: 1, stderr: `${folder}/${present} exists already; nothing was changed` })
    t.strictSame(readdirSync(folder), [present])
    t.equal(readFileSync(join(folder, present), 'utf8'), 'mine')
  }
})

t.test('init rejects what would not start, before it makes anything', async (t) => {
  const folder = t.testdir({})
  const here = ['--folder', folder]
  const cases: [string[], number, RegExp][] = [
    [['init', ...here], 1, /cannot ask without a terminal; use --yes and --issuer\n/],
    [
      ['init', ...here, '--issuer', 'https://auth.example.org'],
      1,
      /cannot ask without a terminal; use --yes\n/,
    ],
    [['init', '--yes', ...here], 64, /--yes needs --issuer/],
    [['init', '--yes', '--issuer', 'http://auth.example.org', ...here], 78, /issuer: http is accepted on/],
    [['init', '--yes', '--issuer', 'auth', ...here], 78, /issuer: must be an absolute/],
    [[...yes, '--port', '99999', ...here], 78, /port: must be an integer/],
    [[...yes, '--proxy', 'apache', ...here], 64, /Allowed choices are caddy, nginx, none/],
    [[...yes, '--folder', join(folder, 'missing')], 78, /--folder: .* does not exist/],
  ]
  for (const [args, code, stderr] of cases) t.match(await run(args), { code, stderr })
  t.strictSame(readdirSync(folder), [])
})

t.test('a configuration file may refer to secrets in other files', async (t) => {
  const folder = t.testdir({
    secret: `${'s'.repeat(40)}\n`,
    both: 'secret: ssssssssssssssssssssssssssssssssssssssss\nsecretFile: SECRET\n',
    missing: 'secretFile: /nowhere/secret\n',
    number: 'mail: {urlFile: 1}\n',
    mail: 'secretFile: SECRET\nmail: {from: a@example.org, urlFile: MAIL}\nissuer: https://a.example\n',
    url: 'smtps://user:hunter2@mail.example\n',
  })
  for (const name of ['both', 'mail']) {
    const path = join(folder, name)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace('SECRET', join(folder, 'secret')).replace('MAIL', join(folder, 'url')))
  }
  const validate = (name: string) => run(['config', 'validate', '--config', join(folder, name)])
  t.match(await validate('both'), { code: 78, stderr: /secretFile: secret is set as well; keep one of them/ })
  t.match(await validate('missing'), {
    code: 78,
    stderr: /secretFile: cannot read \/nowhere\/secret \(ENOENT\)/,
  })
  t.match(await validate('number'), { code: 78, stderr: /mail\.urlFile: must be the name of a file/ })
  t.match(await validate('mail'), { code: 0 })
  const printed = await run(['config', 'print', '--changed', '--config', join(folder, 'mail')])
  t.match(printed.stdout, /^mail\.url +smtps:\/\/user:\*\*\*@mail\.example/m)
  t.equal(existsSync(join(folder, 'data')), false)
})

t.test('serve next to the file of init says that it was not read, and how to name it', async (t) => {
  const folder = t.testdir({})
  const here = `http://localhost:${await freePort()}`
  t.match(await run(['init', '--yes', '--issuer', here, '--folder', folder]), { code: 0 })
  const { code, stderr } = await ended(start(['serve'], {}, folder))
  t.equal(code, 78)
  t.match(
    stderr,
    'lychgate: config: lychgate.yaml in this folder was not read; name it: --config lychgate.yaml\n',
  )
  const named = await ended(start(['serve'], { LYCHGATE_CONFIG: 'nowhere.yaml' }, folder))
  t.notMatch(named.stderr, 'was not read')
})
