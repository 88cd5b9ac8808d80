/** The example application as its README starts it: two processes, and `lychgate/guard` as others import it. */
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { newFolder, run, start } from '../helpers/command.ts'
import { authorizationUrl, exchange, post, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { callAt } from '../helpers/guarded-api.ts'
import { newPerson } from '../helpers/person.ts'

const example = (name: string) =>
  fileURLToPath(new URL(`../../examples/fastify-api/${name}`, import.meta.url))

/** Everything a process printed until it said this. */
function until(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = ''
    const read = (chunk: unknown) => {
      seen += chunk
      if (pattern.test(seen)) resolve(seen)
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${seen}`)))
  })
}

const [issuerPort, port] = [await freePort(), await freePort()]
const [issuer, resource] = [`http://localhost:${issuerPort}`, `http://127.0.0.1:${port}`]
const data = newFolder(t)
// The example's own file, at addresses nobody else has now.
const config = join(data, 'lychgate.yaml')
writeFileSync(
  config,
  readFileSync(example('lychgate.yaml'), 'utf8').replace('http://127.0.0.1:9500', resource),
)

const lychgate = start(['dev', '--port', String(issuerPort), '--data', data, '--config', config], {
  LYCHGATE_LOG_LEVEL: 'warn',
  LYCHGATE_DRAIN_SECONDS: '0',
})
t.teardown(() => lychgate.kill('SIGKILL'))
await until(lychgate, /curl .*\n/)
const client = await register({ issuer })
const person = newPerson({ issuer }, { username: 'alice', password: 'alice-in-dev' })

async function startExample(t: Test, environment: Record<string, string> = {}): Promise<ChildProcess> {
  const child = spawn(process.execPath, [example('server.ts')], {
    env: { ...process.env, ISSUER: issuer, RESOURCE: resource, ...environment },
  })
  t.teardown(() => child.kill('SIGKILL'))
  await until(child, /Notes is ready at .*\n/)
  return child
}

async function stop(child: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  return ended
}

async function obtainToken(scope: string): Promise<string> {
  const landed = await person.approve(authorizationUrl({ issuer }, client, { scope, resource }))
  const answer = await exchange({ issuer }, client, landed.searchParams.get('code') ?? '')
  const { access_token: token } = (await answer.json()) as { access_token: string }
  return token
}

t.test(
  'the example sends callers to its authorization server, and lets them in with its tokens',
  async (t) => {
    const child = await startExample(t)
    t.match(await callAt(resource), { status: 200, body: { name: 'Notes' } })
    const challenge = await callAt(`${resource}/notes`)
    t.match(challenge, { status: 401, challenge: `Bearer resource_metadata="${resource}/.well-known/` })
    const metadata = await callAt(`${resource}/.well-known/oauth-protected-resource`)
    t.match(metadata, { status: 200, body: { resource, authorization_servers: [issuer] } })

    const reading = await obtainToken('courses:read')
    t.match(await callAt(`${resource}/notes`, reading), { status: 200, body: [{ author: 'the teacher' }] })
    const note = (token: string) =>
      fetch(`${resource}/notes`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'Bring two' }),
      })
    t.equal((await note(reading)).status, 403)
    const writing = await obtainToken('courses:read courses:write')
    t.equal((await note(writing)).status, 201)
    t.match(await callAt(`${resource}/notes`, reading), { body: [{}, { text: 'Bring two', author: String }] })
    t.equal((await callAt(`${issuer}/api/courses`, reading)).status, 401, 'and only here')
    t.equal(await stop(child), 0)
  },
)

t.test('started with the credentials of a resource server it refuses a revoked token at once', async (t) => {
  const flags = ['--name', 'Notes', '--resource', resource, '--data', data, '--config', config, '--json']
  const { code, stdout, stderr } = await run(['client', 'add', ...flags])
  t.equal(code, 0, stderr)
  const { client_id: CLIENT_ID, client_secret: CLIENT_SECRET } = JSON.parse(stdout)
  const child = await startExample(t, { CLIENT_ID, CLIENT_SECRET })
  const token = await obtainToken('courses:read')
  t.equal((await callAt(`${resource}/notes`, token)).status, 200)
  t.equal((await post({ issuer }, '/api/oauth/revoke', { token, client_id: client.id })).status, 200)
  t.match(await callAt(`${resource}/notes`, token), { status: 401, body: { error: 'invalid_token' } })

  const unrevoked = await obtainToken('courses:read')
  t.equal(await stop(lychgate), 0)
  t.match(await callAt(`${resource}/notes`, unrevoked), { status: 503 }, 'and nobody while it cannot ask')
  t.equal(await stop(child), 0)
})

t.test('its README names the addresses and the file the example has', async (t) => {
  const [readme, server, yaml] = ['README.md', 'server.ts', 'lychgate.yaml'].map((name) =>
    readFileSync(example(name), 'utf8'),
  )
  t.match(readme, 'npm start -- --config examples/fastify-api/lychgate.yaml\n')
  t.match(readme, 'npx node examples/fastify-api/server.ts\n')
  for (const file of [readme, server, yaml]) t.match(file, 'http://127.0.0.1:9500')
  t.match(server, 'http://localhost:9400')
})
