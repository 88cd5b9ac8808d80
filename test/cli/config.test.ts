import { join } from 'node:path'
import t from 'tap'
import { newFolder, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

const secret = 's'.repeat(40)

t.test(
  'flags win over variables, variables over the file: in what is printed and in what runs',
  async (t) => {
    const port = String(await freePort())
    const data = newFolder(t)
    const folder = t.testdir({
      'lychgate.yaml': `port: 1\nhost: 127.0.0.9\nissuer: https://file.example\nservice: {name: From the file}\n`,
    })
    const file = join(folder, 'lychgate.yaml')
    const environment = {
      LYCHGATE_SECRET: secret,
      LYCHGATE_PORT: '2',
      LYCHGATE_HOST: '127.0.0.1',
      LYCHGATE_ISSUER: 'https://variable.example',
      LYCHGATE_LOG_LEVEL: '',
    }
    const flags = ['--config', file, '--data', data, '--issuer', 'https://flag.example', '--port', port]
    const printed = await run(['config', 'print', '--json', ...flags], { environment })
    t.match(printed, { code: 0, stderr: '' })
    t.match(JSON.parse(printed.stdout), {
      mode: 'serve',
      file,
      settings: {
        issuer: { value: 'https://flag.example', source: 'flag', name: '--issuer' },
        port: { value: Number(port), source: 'flag', name: '--port' },
        host: { value: '127.0.0.1', source: 'variable', name: 'LYCHGATE_HOST' },
        'service.name': { value: 'From the file', source: 'file', name: file },
        logLevel: { value: 'info', source: 'default' },
        store: { value: `sqlite:${data}/lychgate.db`, source: 'default' },
      },
    })
    const server = start(['serve', ...flags], environment)
    t.teardown(() => server.kill('SIGKILL'))
    const url = `http://127.0.0.1:${port}/.well-known/openid-configuration`
    while (!(await fetch(url).catch(() => undefined))) {
      if (server.exitCode !== null) throw new Error('it ended')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    t.match(await (await fetch(url)).json(), { issuer: 'https://flag.example' })
  },
)

t.test('config print masks the secret and the password of the database, wherever they are set', async (t) => {
  const folder = t.testdir({
    secret: `${secret}\n`,
    'lychgate.yaml': 'store: "postgres://app:hunter2@db.example/auth?password=hunter3"\n',
  })
  const environment = {
    LYCHGATE_SECRET_FILE: join(folder, 'secret'),
    LYCHGATE_CONFIG: join(folder, 'lychgate.yaml'),
  }
  const results = await Promise.all([
    run(['config', 'print'], { environment }),
    run(['config', 'print', '--json', '--changed'], { environment }),
    run(['config', 'print', '--changed'], {
      environment: {
        ...environment,
        LYCHGATE_CONFIG: '',
        LYCHGATE_STORE: 'postgres://a:hunter2@/x?host=/run',
      },
    }),
  ])
  for (const { code, stdout, stderr } of results) {
    t.strictSame([code, stderr], [0, ''])
    t.notMatch(stdout, new RegExp(`hunter|${secret}`))
    t.match(stdout, 'LYCHGATE_SECRET_FILE')
  }
  const [all, changed, odd] = results.map(({ stdout }) => stdout)
  t.match(all, /^store +postgres:\/\/app:\*\*\*@db\.example\/auth\?\*\*\* +\S*lychgate\.yaml$/m)
  t.match(all, /^secret +\*\*\* +LYCHGATE_SECRET_FILE$/m)
  t.match(all, /^scopes +38 entries +default$/m)
  t.strictSame(Object.keys(JSON.parse(changed ?? '').settings), ['store', 'secret'])
  t.match(odd, /^store +postgres:\/\/a:\*\*\*@\/x\?\*\*\* +LYCHGATE_STORE\nsecret/)
})

t.test('config validate lists what it read, or every error at once and ends with 78', async (t) => {
  const folder = t.testdir({
    'lychgate.yaml': 'issuer: https://auth.example.org\n',
    'wrong.yaml': 'prot: 1\n',
  })
  const file = join(folder, 'lychgate.yaml')
  const environment = { LYCHGATE_SECRET: secret, LYCHGATE_CONFIG: file }
  const [valid, json, development, faulty, faultyJson, public_] = await Promise.all([
    run(['config', 'validate', '--port', '80'], { environment }),
    run(['config', 'validate', '--json'], { environment }),
    run(['config', 'validate', '--dev']),
    run(['config', 'validate', '--config', join(folder, 'wrong.yaml'), '--port', 'x']),
    run(['config', 'validate', '--json']),
    run(['config', 'validate', '--dev', '--config', file]),
  ])
  t.match(valid, {
    code: 0,
    stdout: `valid for lychgate serve: ${file}, LYCHGATE_SECRET, --port\n`,
    stderr: '',
  })
  t.strictSame(JSON.parse(json.stdout), { valid: true, mode: 'serve', sources: [file, 'LYCHGATE_SECRET'] })
  t.match(development, { code: 0, stdout: 'valid for lychgate dev: every option has its default\n' })
  t.match(faulty, {
    code: 78,
    stdout: '',
    stderr:
      /^lychgate: prot \(\S+wrong\.yaml\): [^\n]+ did you mean port\?\nlychgate: port \(--port\): must be [^\n]+\n$/,
  })
  t.match(faultyJson, { code: 78, stderr: /^lychgate: secret: is missing[^\n]+\n$/ })
  t.match(JSON.parse(faultyJson.stdout), { valid: false, mode: 'serve', faults: [/^secret: is missing/] })
  t.match(public_, {
    code: 78,
    stdout: '',
    stderr: /^lychgate: issuer: lychgate dev [^\n]+ runs on localhost[^\n]+\n$/,
  })
})

t.test('the variables that Kubernetes sets for a Service named lychgate are ignored', async (t) => {
  const environment = {
    LYCHGATE_SECRET: secret,
    LYCHGATE_PORT: 'tcp://10.0.0.1:80',
    LYCHGATE_SERVICE_HOST: '10.0.0.1',
  }
  t.match(await run(['config', 'validate'], { environment }), {
    code: 0,
    stdout: 'valid for lychgate serve: LYCHGATE_SECRET\n',
    stderr: '',
  })
})

t.test('no command shows a part of a password that is not percent-encoded', async (t) => {
  const urls = [
    'postgres://app:pa@Geheim1/w#rd@db.invalid:5432/x',
    'postgres://app:pa@Geheim1@db.invalid/x',
    'postgres://app:Geheim1/2@db.invalid/x',
    'postgres://app:pa@Geheim1?2@db.invalid/x',
    'postgres://app:Geheim1%zz@db.invalid/x',
    'host=db.invalid password=Geheim1',
  ]
  for (const url of urls) {
    const environment = {
      LYCHGATE_SECRET: secret,
      LYCHGATE_ISSUER: 'https://id.example',
      LYCHGATE_STORE: url,
    }
    const commands = [
      ['config', 'print', '--changed'],
      ['user', 'list'],
      ['doctor', '--offline'],
    ]
    const results = await Promise.all(commands.map((words) => run(words, { environment })))
    for (const [index, { code, stdout, stderr }] of results.entries()) {
      t.notMatch(stdout + stderr, /geheim1/i, `${commands[index]} ${url}`)
      if (index === 1) t.not(code, 0)
    }
    if (/Geheim1[/?]/.test(url)) t.match(results[1]?.stderr, '@ as %40, / as %2F', url)
  }
})
