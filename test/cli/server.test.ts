import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { type Ended, ended, newFolder, run, start } from '../helpers/command.ts'

const secret = 'the secret of this test, long enough'

/** A running server, and how to stop it. */
interface Running {
  readonly issuer: string
  readonly banner: string
  stop(signal: NodeJS.Signals): Promise<Ended>
}

async function running(
  t: Test,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const child = start(args, { LYCHGATE_DRAIN_SECONDS: '0', LYCHGATE_LOG_LEVEL: 'warn', ...environment })
  const end = ended(child)
  t.teardown(() => child.kill('SIGKILL'))
  const stop = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return end
  }
  const banner = args[0] === 'dev' ? await bannerOf(child, end) : ''
  const issuer = / issuer +(\S+)/.exec(banner)?.[1] ?? environment['LYCHGATE_ISSUER'] ?? ''
  return { issuer, banner, stop }
}

/** Everything printed up to the line to paste. */
function bannerOf(child: ChildProcess, end: Promise<Ended>): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = ''
    child.stdout?.on('data', (chunk) => {
      seen += chunk
      if (/curl .*\n/.test(seen)) resolve(seen)
    })
    end.then(({ stderr }) => reject(new Error(`it ended: ${stderr}`)), reject)
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

async function firstResponse(url: string): Promise<Response> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const response = await fetch(url).catch(() => undefined)
    if (response) return response
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${url} does not answer`)
}

t.test(
  'a development server on a free port has the issuer of that port, and ends with 0 on SIGTERM',
  async (t) => {
    const data = join(newFolder(t), 'made', 'by dev')
    const server = await running(t, ['dev', '--port', '0', '--data', data], {
      LYCHGATE_PORT: 'tcp://10.0.0.1:80',
      LYCHGATE_SERVICE_HOST: '10.0.0.1',
    })
    t.match(server.issuer, /^http:\/\/localhost:[1-9]\d{3,}$/)
    for (const part of [
      `${server.issuer}/.well-known/openid-configuration`,
      'alice / alice-in-dev',
      'bob / bob-in-dev',
      data,
      `curl -s ${server.issuer}/api/oauth/register`,
    ]) {
      t.ok(server.banner.includes(part), part)
    }
    const discovery = await fetch(`${server.issuer}/.well-known/openid-configuration`)
    t.match(await discovery.json(), { issuer: server.issuer })
    t.equal(statSync(data).mode & 0o777, 0o700)
    t.equal(statSync(join(data, 'dev-secret')).mode & 0o777, 0o600)
    const { code, stdout, stderr } = await server.stop('SIGTERM')
    t.match({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, /ignored what Kubernetes set for a Service: LYCHGATE_PORT, LYCHGATE_SERVICE_HOST\n/)
  },
)

t.test('a development server keeps its secret, keys and users, and adds no user twice', async (t) => {
  const data = newFolder(t)
  const jwks = async () => {
    const server = await running(t, ['dev', '--port', '0', '--data', data])
    // `as`: the body of a JWK Set, RFC 7517 §5.
    const { keys } = (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as { keys: unknown[] }
    t.match(await server.stop('SIGINT'), { code: 0 })
    return keys
  }
  const first = await jwks()
  t.equal(first.length, 3)
  t.equal((await run(['user', 'passwd', 'bob', '--data', data], { input: 'another one' })).code, 0)
  const bob = async () => {
    const store = await openStore(`sqlite:${data}/lychgate.db`)
    const [user, all] = [await store.find('userByLogin', 'bob'), await store.list('user')]
    await store.close()
    return { hash: user?.passwordHash, count: all.length }
  }
  const before = await bob()
  t.same(await jwks(), first)
  t.same(await bob(), before)
  t.equal(before.count, 2)
})

t.test('the first development user has every claim of profile and email', async (t) => {
  const data = newFolder(t)
  const server = await running(t, ['dev', '--port', '0', '--data', data])
  await server.stop('SIGTERM')
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  t.teardown(() => store.close())
  const alice = await store.find('userByLogin', 'alice@example.com')
  t.equal(alice?.seeded, true)
  t.match(alice?.claims, { email_verified: true, updated_at: Number, email: 'alice@example.com' })
  const texts = [
    'name',
    'family_name',
    'given_name',
    'middle_name',
    'nickname',
    'preferred_username',
    'profile',
  ]
  for (const claim of [...texts, 'picture', 'website', 'gender', 'birthdate', 'zoneinfo', 'locale']) {
    const value = alice?.claims[claim]
    t.ok(typeof value === 'string' && value !== '', claim)
  }
})

t.test('a port in use is one line and ends with 1', async (t) => {
  const other = createServer()
  t.teardown(() => other.close())
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const address = other.address()
  const port = typeof address === 'object' && address ? String(address.port) : ''
  const result = await run(['dev', '--port', port, '--data', newFolder(t)], {
    environment: { LYCHGATE_HOST: '127.0.0.1', LYCHGATE_LOG_LEVEL: 'warn' },
  })
  t.match(result, {
    code: 1,
    stderr: `lychgate: port ${port} on 127.0.0.1 is in use; choose another with --port or LYCHGATE_PORT\n`,
  })
})

t.test(
  'a production server starts with a secret, and publishes its configured issuer on any address',
  async (t) => {
    const data = newFolder(t)
    const port = await freePort()
    const environment = {
      LYCHGATE_SECRET: secret,
      LYCHGATE_ISSUER: 'https://auth.example.com',
      LYCHGATE_PORT: `${port}`,
      LYCHGATE_LOG_LEVEL: 'info',
    }
    const server = await running(t, ['serve', '--data', data], environment)
    const discovery = await firstResponse(`http://127.0.0.1:${port}/.well-known/openid-configuration`)
    t.match(await discovery.json(), { issuer: 'https://auth.example.com' })
    const { code, stdout } = await server.stop('SIGTERM')
    t.equal(code, 0)
    t.match(stdout, /"issuer":"https:\/\/auth\.example\.com","msg":"ready"/, 'the log says it, too')
    const users = await run(['user', 'list', '--data', data])
    t.match(users, { code: 0, stdout: '' }, 'nobody is seeded')
  },
)

t.test('a production server rejects development users until they are removed', async (t) => {
  const data = newFolder(t)
  const environment = { LYCHGATE_SECRET: secret }
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  for (const username of ['alice', 'bob']) {
    const user = { username, passwordHash: '', seeded: true }
    await store.write(insert('user', createUser(user, randomBytes(16), 1_700_000_000)))
  }
  await store.close()
  const port = String(await freePort())
  for (const name of ['alice', 'bob']) {
    t.match(await run(['serve', '--data', data, '--port', port], { environment }), {
      code: 78,
      stdout: '',
      stderr: new RegExp(`^lychgate: store: made by [^\\n]*; lychgate user delete ${name}\\n$`),
    })
    t.equal((await run(['user', 'remove', name, '--yes', '--data', data])).code, 0)
  }
  const server = await running(t, ['serve', '--data', data, '--port', port], environment)
  t.equal((await firstResponse(`http://127.0.0.1:${port}/.well-known/openid-configuration`)).status, 200)
  t.match(await server.stop('SIGTERM'), { code: 0 })
  t.match(await run(['dev', '--data', data, '--port', port], { environment }), {
    code: 78,
    stdout: '',
    stderr: /^lychgate: store: its keys are not those of a development server; [^\n]*\n$/,
  })
})

t.test('a production server rejects the store of a development server with the same secret', async (t) => {
  const data = newFolder(t)
  const environment = { LYCHGATE_SECRET: secret }
  const development = await running(t, ['dev', '--port', '0', '--data', data], environment)
  await development.stop('SIGTERM')
  for (const name of ['alice', 'bob']) await run(['user', 'remove', name, '--yes', '--data', data])
  t.match(await run(['serve', '--data', data, '--port', String(await freePort())], { environment }), {
    code: 78,
    stdout: '',
    stderr: /^lychgate: store: made by the development server: its keys, [^\n]*\n$/,
  })
})

t.test('a server with the wrong secret is one line, ends with 78 and changes no key', async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'lychgate-cli-'))
  t.teardown(() => rmSync(data, { recursive: true }))
  const args = ['serve', '--data', data, '--port', String(await freePort())]
  const environment = { LYCHGATE_SECRET: `${secret}!` }
  const first = await running(t, args, { LYCHGATE_SECRET: secret })
  await firstResponse(`http://127.0.0.1:${args[4]}/.well-known/openid-configuration`)
  await first.stop('SIGTERM')
  t.match(await run(args, { environment }), {
    code: 78,
    stderr: /^lychgate: secret: the secret does not open the stored keys[^\n]*\n$/,
  })
  const again = await running(t, args, { LYCHGATE_SECRET: secret })
  t.equal((await firstResponse(`http://127.0.0.1:${args[4]}/api/oauth/jwks`)).status, 200)
  t.match(await again.stop('SIGTERM'), { code: 0 })
})
