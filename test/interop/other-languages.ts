/**
 * Clients of other languages against a listening server: Authlib for Python, golang.org/x/oauth2 and coreos/go-oidc for Go.
 * scripts/clients pins their versions. Where a toolchain is missing, its test prints SKIPPED with the reason, which is a
 * failure with CI=true.
 */
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { newFolder } from '../helpers/command.ts'
import { addDeviceClient, decide } from '../helpers/device.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { addClient } from '../helpers/wire.ts'

const clients = fileURLToPath(new URL('../../scripts/clients/', import.meta.url))
const server = await startServer(t, { clock: 'machine' })
const key = makeClientKey('ES256')
const service = { grantTypes: ['client_credentials'], redirectUris: [], scope: ['courses:read'] }
const arranged = {
  web: await addClient(server, { consent: 'remember' }),
  device: await addDeviceClient(server),
  service: await addClient(server, { ...service, authenticationMethod: undefined }),
  signing: await addClient(server, {
    ...service,
    authenticationMethod: 'private_key_jwt',
    description: { jwks: { keys: [key.jwk] } },
  }),
}
const environment = {
  ISSUER: server.issuer,
  AUTHLIB_INSECURE_TRANSPORT: '1',
  CLIENTS: JSON.stringify({
    web: {
      id: arranged.web.id,
      secret: arranged.web.secret,
      redirect_uri: arranged.web.redirectUri,
    },
    device: { id: arranged.device.id },
    service: { id: arranged.service.id, secret: arranged.service.secret },
    signing: {
      id: arranged.signing.id,
      key: { ...key.privateKey.export({ format: 'jwk' }), kid: key.jwk['kid'] },
    },
  }),
}

/** Runs a command of a toolchain; returns why it cannot be had, or undefined. */
function prepare(commands: readonly (readonly [string, ...string[]])[], cwd: string): string | undefined {
  for (const [file, ...args] of commands) {
    try {
      execFileSync(file, args, { cwd, stdio: 'pipe', timeout: 500_000 })
    } catch (error) {
      const { stderr = '' } = error as { readonly stderr?: Buffer | string } // of execFileSync
      const reason = String(stderr).trim().split('\n').at(-1) || String(error).split('\n', 1)[0]
      return `${[file, ...args].join(' ')}: ${reason}`
    }
  }
  return undefined
}

function skip(t: Test, reason: string): void {
  t.comment(`SKIPPED: ${reason}`)
  t.not(process.env['CI'], 'true', 'nothing is skipped in CI')
}

/** Runs a client. The user opens what it asks to open, or types the code of a device, and allows it. */
async function run(file: string, args: readonly string[], cwd: string): Promise<unknown> {
  const child = spawn(file, args, {
    cwd,
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const user = newUser(server)
  let result: unknown
  for await (const line of createInterface({ input: child.stdout })) {
    const [, what, asked = ''] = /^(OPEN|DEVICE) (\S+)$/.exec(line) ?? []
    if (what === undefined) result = JSON.parse(line)
    else if (what === 'DEVICE') await decide(server, asked)
    else child.stdin.write(`${await user.approve(asked)}\n`)
  }
  return result
}

const acting = { caller: 'client', refresh: false }

t.test('Authlib gets tokens for a user, and for itself by secret and by key', async (t) => {
  const environmentFolder = join(newFolder(t), `python-${randomUUID()}`)
  const [python, source] = [join(environmentFolder, 'bin/python'), join(clients, 'python')]
  const missing = prepare(
    [
      ['python3', '-m', 'venv', environmentFolder],
      [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', 'requirements.txt'],
    ],
    source,
  )
  if (missing !== undefined) return skip(t, missing)
  t.strictSame(await run(python, ['client.py'], source), {
    authorization_code: { same_user: true, rotated: true, active: true, ended: true },
    client_secret_basic: acting,
    client_secret_post: acting,
    private_key_jwt: { caller: 'client' },
  })
})

t.test('x/oauth2 and go-oidc get tokens for a user, and for themselves', async (t) => {
  const [program, source] = [join(newFolder(t), 'client'), join(clients, 'go')]
  const missing = prepare([['go', 'build', '-o', program, '.']], source)
  if (missing !== undefined) return skip(t, missing)
  t.strictSame(await run(program, [], source), {
    authorization_code: { same_user: true, caller: 'user', rotated: true },
    device: { caller: 'user', refresh: true, announced: true },
    auto_detect: acting,
    in_header: acting,
    in_params: acting,
  })
})
