/** The examples that are clients: the curl script, and the command line app. */
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newFolder } from '../helpers/command.ts'
import { addressIn, example, runExample, startExampleServer } from '../helpers/examples.ts'
import { devAlice } from '../helpers/process.ts'
import { newUser } from '../helpers/user.ts'

const { issuer, user } = await startExampleServer(t)

t.test('the curl script runs the seven steps, and is what docs/start.md has to paste', async (t) => {
  const script = readFileSync(example('curl/seven-steps.sh'), 'utf8')
  const page = readFileSync(new URL('../../docs/start.md', import.meta.url), 'utf8')
  const pasted = /\n## Seven steps with curl\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(page)?.[1] ?? 'no block'
  t.equal(script.slice(script.indexOf('issuer=')), pasted)

  const { status, stdout, stderr } = spawnSync(example('curl/seven-steps.sh'), {
    env: { ...process.env, ISSUER: issuer },
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
  const promised = [
    /callback\?code=lyc_code_.*state=af0ifjsldkj.*iss=http/,
    /"access_token":"lyc_access_.*"id_token":"ey/,
    /"caller":"user"/,
    /"caller":"anonymous"/,
    /HTTP\/1\.1 403[\s\S]*insufficient_scope/,
    /"name":"Alice/,
    /HTTP\/1\.1 401[\s\S]*invalid_token/,
  ]
  for (const pattern of promised) t.match(stdout, pattern)
})

/** The command line app of one user of this computer. */
function app(t: Test, at = issuer) {
  const folder = newFolder(t)
  const file = join(folder, 'lychgate-cli-app', 'login.json')
  return {
    file,
    start: (command: string) =>
      runExample(t, ['cli-app/cli.ts', command], { ISSUER: at, XDG_CONFIG_HOME: folder }),
    kept: () => JSON.parse(readFileSync(file, 'utf8')),
  }
}

/** Sends the browser back to the program that waits for it. */
async function deliver(response: URL): Promise<number> {
  return (await fetch(response)).status
}

t.test('the command line app signs in, calls, refreshes and revokes', async (t) => {
  const cli = app(t)
  const login = cli.start('login')
  const address = new URL(addressIn(await login.until(/authorize\?.*\n/)))
  t.match(Object.fromEntries(address.searchParams), {
    redirect_uri: /^http:\/\/127\.0\.0\.1:\d+\/callback$/,
    code_challenge_method: 'S256',
  })
  const response = await user.approve(address)
  t.equal(await deliver(new URL('/favicon.ico', response)), 404, 'it waits for its own path')
  t.equal(await deliver(response), 200)
  t.match(await login.end(), { code: 0, output: /Signed in as / })
  t.equal(statSync(cli.file).mode & 0o777, 0o600)

  t.match(await cli.start('whoami').end(), {
    code: 0,
    output: /Alice[\s\S]*"caller":"user".*courses:read/,
  })
  const before = cli.kept()
  writeFileSync(cli.file, JSON.stringify({ ...before, expiresAt: 0 }))
  t.match(await cli.start('whoami').end(), { code: 0, output: /"caller":"user"/ })
  const after = cli.kept()
  t.not(after.tokens.refresh_token, before.tokens.refresh_token, 'the new refresh token is kept')
  t.equal(after.clientId, before.clientId)
  t.equal(statSync(cli.file).mode & 0o777, 0o600)

  t.match(await cli.start('logout').end(), { code: 0, output: /Signed out.*\nhttp.*\/oauth\/logout\?/ })
  t.notOk(cli.kept().tokens)
  const headers = { authorization: `Bearer ${after.tokens.access_token}` }
  t.equal((await fetch(`${issuer}/api/courses`, { headers })).status, 401)
  t.match(await cli.start('whoami').end(), { code: 1, output: /^no user is signed in\n$/ })
})

t.test(
  'the command line app accepts no response of another server, and names the server that rejected it',
  async (t) => {
    const cli = app(t)
    const mixedUp = cli.start('login')
    const response = await user.approve(addressIn(await mixedUp.until(/authorize\?.*\n/)))
    response.searchParams.set('iss', 'https://attacker.example')
    await deliver(response)
    t.match(await mixedUp.end(), { code: 1, output: /unexpected "iss"/ })
    t.notOk(cli.kept().tokens, 'and no code was sent')

    const rejected = cli.start('login')
    await deliver(await user.deny(addressIn(await rejected.until(/authorize\?.*\n/))))
    t.match(await rejected.end(), { code: 1, output: /access_denied/ })
  },
)

for (const [profile, said] of [
  ['userinfo-other-sub', /unexpected "response" body "sub" property value/],
  ['refresh-other-sub', /the ID Token is about another user/],
] as const) {
  t.test(`the command line app rejects the responses of a misbehaving issuer: ${profile}`, async (t) => {
    const liar = `${issuer}/_dev/issuers/${profile}`
    const cli = app(t, liar)
    const login = cli.start('login')
    const address = addressIn(await login.until(/authorize\?.*\n/))
    await deliver(await newUser({ issuer: liar }, devAlice).approve(address))
    t.match(await login.end(), { code: 0 })
    writeFileSync(cli.file, JSON.stringify({ ...cli.kept(), expiresAt: 0 }))
    t.match(await cli.start('whoami').end(), { code: 1, output: said })
  })
}

t.test('[rfc8628-3.3-interaction] the device shows a code, and is signed in once it was typed', async (t) => {
  const device = runExample(t, ['device-cli/device.ts'], { ISSUER: issuer })
  const output = await device.until(/type ([A-Z]{4}-[A-Z]{4})/)
  const [, code = ''] = /type ([A-Z]{4}-[A-Z]{4})/.exec(output) ?? []
  const approved = await fetch(`${issuer}/_dev/devices/${code}/approve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'alice' }),
  })
  t.equal(approved.status, 200)
  t.match(await device.end(), { code: 0, output: /Signed in as Alice.*, for openid profile courses:read/ })
})
