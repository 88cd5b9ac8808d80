import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { entry, newFolder, run } from '../helpers/command.ts'

t.test('--help lists every command with examples, --version names the commit; both end with 0', async (t) => {
  const help = await run(['--help'])
  t.match(help, { code: 0, stderr: '' })
  for (const part of [
    /^ {2}dev /m,
    /^ {2}serve /m,
    /^ {2}client /m,
    /^ {2}user /m,
    /Examples:\n {2}lychgate dev/,
  ]) {
    t.match(help.stdout, part)
  }
  const version = /^\d+\.\d+\.\d+ \((commit [0-9a-f]{40}(-dirty)?|outside git)\)\n$/
  t.match(await run(['--version']), { code: 0, stdout: version, stderr: '' })
})

t.test('each command explains itself', async (t) => {
  const parts: [string[], RegExp][] = [
    [['dev'], /--issuer <url>[\s\S]*--host <address>[\s\S]*--port <number>/],
    [['serve'], /--config <file>[\s\S]*--data <folder>/],
    [['client', 'add'], /--redirect-uri <uri>[\s\S]*--resource <uri>[\s\S]*Examples:/],
    [['user', 'add'], /--family-name <text>[\s\S]*never an argument[\s\S]*Examples:/],
  ]
  const helps = await Promise.all(parts.map(([command]) => run([...command, '--help'])))
  for (const [index, [command, part]] of parts.entries()) {
    t.match(helps[index], { code: 0, stdout: part }, command.join(' '))
  }
})

t.test('wrong usage ends with 64 and one line that names the problem', async (t) => {
  const cases: [string[], RegExp][] = [
    [['sevre'], /^lychgate: unknown command 'sevre' \(Did you mean serve\?\)\n/],
    [['sevre', '--help'], /^lychgate: unknown command 'sevre' \(Did you mean serve\?\)\n/],
    [['nonsense', '-h'], /^lychgate: unknown command 'nonsense'/],
    [['help', 'nonsense'], /^lychgate: unknown command 'nonsense'/],
    [['client', 'nonsense', '--help'], /^lychgate: unknown command 'nonsense'/],
    [['client', 'key', 'ad', '--help'], /^lychgate: unknown command 'ad' \(Did you mean add\?\)\n/],
    [['dev', '--prot', '1'], /^lychgate: unknown option '--prot' \(Did you mean --port\?\)\n/],
    [['client', 'show'], /^lychgate: missing required argument 'client_id'\n/],
    [['client', 'add'], /^lychgate: required option '--name <text>' not specified\n/],
    [
      ['client', 'add', '--name', 'x', '--auth', 'mtls'],
      /^lychgate: option '--auth <method>' argument 'mtls' is invalid/,
    ],
    [['user', 'add', 'carol', 'her-password'], /^lychgate: too many arguments for 'add'/],
    [[], /^Usage: lychgate/],
  ]
  const results = await Promise.all(cases.map(([args]) => run(args)))
  for (const [index, [args, line]] of cases.entries()) {
    t.match(results[index], { code: 64, stdout: '', stderr: line }, args.join(' ') || 'nothing at all')
  }
})

t.test('invalid configuration ends with 78 and one line, for every kind of command', async (t) => {
  const folder = newFolder(t)
  const missing = join(folder, 'missing')
  const taken = join(folder, 'file')
  writeFileSync(taken, '')
  const secret = { LYCHGATE_SECRET: 's'.repeat(40) }
  const cases: [string[], Record<string, string>, RegExp][] = [
    [['dev'], { LYCHGATE_ISUER: 'x' }, /^lychgate: LYCHGATE_ISUER: .* did you mean LYCHGATE_ISSUER\?\n$/],
    [['dev', '--port', 'x'], {}, /^lychgate: port \(--port\): must be an integer [^\n]*\n$/],
    [
      ['dev', '--issuer', 'https://a.example'],
      {},
      /^lychgate: issuer: lychgate dev [^\n]* use lychgate serve\n$/,
    ],
    [['dev', '--data', join(taken, 'x')], {}, /^lychgate: data: cannot create the folder [^\n]*\n$/],
    [['serve'], {}, /^lychgate: secret: is missing; lychgate init [^\n]*\n$/],
    [['serve', '--data', missing], secret, /^lychgate: data: the folder \S+ does not exist[^\n]*\n$/],
    [['serve', '--issuer', 'http://a.example'], secret, /^lychgate: issuer: http is accepted on [^\n]*\n$/],
    [['user', 'list', '--data', missing], {}, /^lychgate: data: the folder \S+ does not exist[^\n]*\n$/],
    [['client', 'list', '--data', taken], {}, /^lychgate: data: \S+ is not a folder\n$/],
    [['client', 'list', '--config', missing], {}, /^lychgate: config: cannot read \S+ \(ENOENT\)\n$/],
  ]
  for (const [args, environment, line] of cases) {
    t.match(await run(args, { environment }), { code: 78, stdout: '', stderr: line }, args.join(' '))
  }
})

t.test('a store that cannot be opened is one line and ends with 1', async (t) => {
  const folder = newFolder(t)
  writeFileSync(join(folder, 'lychgate.db'), 'this is no database, and long enough to have a header')
  const result = await run(['user', 'list', '--data', folder])
  t.match(result, { code: 1, stdout: '', stderr: /^lychgate: store: [^\n]*lychgate\.db[^\n]*\n$/ })
})

t.test('a production server rejects the secret of the development server in its data folder', async (t) => {
  const folder = newFolder(t)
  const secret = 'd'.repeat(43)
  writeFileSync(join(folder, 'dev-secret'), `${secret}\n`)
  const result = await run(['serve', '--data', folder], { environment: { LYCHGATE_SECRET: secret } })
  t.match(result, { code: 78, stderr: /^lychgate: secret: is the one of the development server[^\n]*\n$/ })
})

t.test('a reader that closes the pipe early is no error', async (t) => {
  const folder = newFolder(t)
  const command = `"${process.execPath}" "${entry}" client add --help --data "${folder}"; echo "code $?" >&2`
  const result = spawnSync('sh', ['-c', `( ${command} ) | true`], { encoding: 'utf8' })
  t.match(result.stderr, /^code 0\n$/)
})

// Only an old Node can show this; CI images have one, other machines may not.
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
  const { stdout } = spawnSync(path, ['-p', 'process.versions.napi'], { encoding: 'utf8' })
  return stdout && Number(stdout) < 10
})
t.test('an older Node gets one clear line and 78', { skip: !oldNode && 'no older Node here' }, async (t) => {
  const { status, stdout, stderr } = spawnSync(String(oldNode), [entry, '--version'], { encoding: 'utf8' })
  t.match(
    { status, stdout, stderr },
    { status: 78, stdout: '', stderr: /^lychgate: Node\.js 24\.7 or newer is required[^\n]*\n$/ },
  )
})
