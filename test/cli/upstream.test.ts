import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { upstreamPresets } from '../../src/users/upstream-presets.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import { startServer } from '../helpers/server.ts'

const data = newFolder(t)
const config = join(data, 'lychgate.yaml')
writeFileSync(config, `data: ${data}\nsecret: a secret for tests that is long enough\n`)
writeFileSync(join(data, 'work.secret'), 'the secret of work\n')
await startServer(t, { store: `sqlite:${data}/lychgate.db` })

async function run(...line: string[]) {
  const [ended] = await runAll([[...line, '--config', config]])
  if (ended === undefined) throw new Error('nothing was run')
  return ended
}

async function ok(...line: string[]) {
  const { code, stdout, stderr } = await run(...line, '--json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function fails(line: string[], reason: RegExp, code = 1) {
  const ended = await run(...line)
  t.equal(ended.code, code, line.join(' '))
  t.match(ended.stderr, reason)
}

const secretFile = ['--client-secret-file', join(data, 'work.secret')]
const work = ['work', '--name', 'Work', '--issuer', 'https://login.example.com', '--client', 'lychgate']

t.test('an upstream is added, changed, disabled and deleted', async (t) => {
  await fails(['upstream', 'add', ...work], /the client secret is missing/)
  const added = await ok('upstream', 'add', ...work, ...secretFile, '--group', 'teachers=Staff')
  t.match(added, { upstream_id: 'work', groups: { teachers: 'Staff' }, enabled: true, source: 'store' })
  t.notMatch(JSON.stringify(added), 'the secret of work')
  await fails(['upstream', 'add', ...work, ...secretFile], /another upstream has this id or issuer/)
  await fails(['upstream', 'add', ...work, '--group', 'teachers'], /a group there and a group here/, 64)
  t.match((await run('upstream', 'list')).stdout, /^work +Work +https:\/\/login.example.com +enabled/)
  t.match((await run('upstream', 'show', 'work')).stdout, /^groups +teachers=Staff$/m)
  const set = ['--first-sign-in', 'domain', '--domain', 'example.com', '--max-age', '8h', '--group', '']
  t.match(await ok('upstream', 'set', 'work', ...set), {
    first_sign_in: 'domain',
    domains: ['example.com'],
    max_age_seconds: 28_800,
  })
  t.strictSame((await ok('upstream', 'show', 'work')).groups, {})
  await fails(['upstream', 'set', 'work'], /nothing to change/, 64)
  await fails(['upstream', 'set', 'home', '--name', 'Home'], /no upstream has this id/)
  await fails(['upstream', 'disable', 'work'], /use --yes/)
  t.match(await ok('upstream', 'disable', 'work', '--yes'), { enabled: false })
  t.match(await ok('upstream', 'enable', 'work'), { enabled: true })
  t.match(await ok('upstream', 'delete', 'work', '--yes'), { deleted: true })
  t.strictSame(await ok('upstream', 'list'), [])
})

t.test('files bring upstreams in line, and name their secrets', async (t) => {
  const file = join(data, 'upstreams.yaml')
  const apply = async (members: string, ...flags: string[]) => {
    writeFileSync(
      file,
      `upstreams:\n  - { upstream_id: work, name: Work, client_id: lychgate, ${members} }\n`,
    )
    return await run('apply', '-f', file, ...flags)
  }
  const usual = 'issuer: https://login.example.com, secretFile: work.secret'
  const first = await apply(usual)
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, /^\+ upstream work\n(?:.*\n)* {4}secret: that of work\.secret\n1 upstream added\n$/)
  t.equal((await apply(usual)).stdout, 'nothing to change\n', 'the secret is compared')
  writeFileSync(join(data, 'work.secret'), 'another secret of work\n')
  t.match((await apply(usual)).stdout, /^~ upstream work\n {4}secret: \(none\) → that of work\.secret\n/)
  t.match((await apply(`${usual}, enabled: false`)).stdout, / {4}enabled: true → false\n/)
  const moved = await apply('issuer: https://id.example.com, secretFile: work.secret')
  t.equal(moved.code, 78)
  t.match(moved.stderr, /upstreams\.yaml:2: issuer: it never changes/)

  const exported = await run('export')
  t.match(exported.stdout, /upstreams:\n {2}- upstream_id: work\n/)
  t.notMatch(exported.stdout, 'secret of work')
  writeFileSync(file, exported.stdout)
  t.equal((await run('apply', '-f', file)).stdout, 'nothing to change\n')
  writeFileSync(file, 'upstreams: []\n')
  t.match(
    (await run('apply', '-f', file, '--prune', '--yes')).stdout,
    /^- upstream work\n1 upstream deleted\n$/,
  )
})

t.test('a well-known server fills in what it needs, and says what is done there', async (t) => {
  const client = ['--client', 'lychgate', ...secretFile]
  const { code, stdout } = await run('upstream', 'add', 'gitlab', '--for', 'gitlab', ...client)
  t.equal(code, 0)
  t.match(stdout, /^issuer +https:\/\/gitlab\.com$/m)
  t.match(stdout, /\nGitLab: Applications in the settings of a user/)
  t.match(await ok('upstream', 'show', 'gitlab'), { name: 'GitLab', groups_claim: 'groups_direct' })
  const own = ['--issuer', 'https://id.example.org', '--name', 'Home', '--scope', 'openid']
  const named = await ok('upstream', 'add', 'home', '--for', 'lychgate', ...own, ...client)
  t.match(named, { name: 'Home', issuer: 'https://id.example.org', scope: 'openid' })

  const microsoft = ['upstream', 'add', 'entra', '--for', 'microsoft', ...client]
  await fails(
    microsoft,
    /^lychgate: --issuer: name it, such as https:\/\/login\.microsoftonline\.com\/TENANT/,
    64,
  )
  for (const tenant of ['common', 'organizations', 'consumers', 'TENANT']) {
    const issuer = `https://login.microsoftonline.com/${tenant}/v2.0`
    await fails([...microsoft, '--issuer', issuer], /issuer must name one tenant/)
  }
  const tenant = 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0'
  t.match(await ok(...microsoft, '--issuer', tenant), { name: 'Microsoft', issuer: tenant })
  await fails(['upstream', 'add', 'other', ...client], /^lychgate: --issuer: name it\n/, 64)
  const unnamed = ['upstream', 'add', 'other', '--issuer', 'https://id.example.net', ...client]
  await fails(unnamed, /^lychgate: --name: name its button\n/, 64)
  await fails(['upstream', 'add', 'other', '--for', 'github', ...client], /Allowed choices are google/, 64)
})

t.test('the documentation has every well-known server', async (t) => {
  const text = readFileSync(new URL('../../docs/upstreams.md', import.meta.url), 'utf8')
  for (const [id, { issuer, advice }] of Object.entries(upstreamPresets))
    t.match(text, `\n| \`${id}\` | \`${issuer}\` | ${advice} |\n`)
})
