/** `lychgate dev zoo`: what real clients send is sent again, and the run ends where they would stop. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { recordedClients } from '../../src/prove/zoo/replay.ts'
import { newFolder, run } from '../helpers/command.ts'

const redirectUri = 'http://127.0.0.1:47999/callback'
const folder = newFolder(t)

/** A client as an operator adds it for this app. */
function clientFor(name: string, method: string) {
  const client = {
    client_id: name,
    client_name: name,
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: [redirectUri],
    token_endpoint_auth_method: method,
    ...(method !== 'none' && { client_secret: `a-secret-of-a-test-only-${name}`, pkce: 'optional' }),
  }
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(client))
  return client
}

const clients = Object.entries(recordedClients).map(([name, { method }]) => clientFor(name, method))
const server = await start({ clients })
t.teardown(server.stop)
const zoo = (name: string, ...flags: string[]) =>
  run(['dev', 'zoo', name, '--against', server.issuer, '--verbose', ...flags])

for (const [name, { steps }] of Object.entries(recordedClients))
  t.test(`${name} gets through here, with its parameters in its order`, async (t) => {
    const { code, stdout, stderr } = await zoo(name, '--client', join(folder, `${name}.json`))
    t.strictSame({ code, stderr }, { code: 0, stderr: '' }, stdout)
    const passed = [...stdout.matchAll(/^pass (\S+):/gm)].map(([, id]) => id)
    t.strictSame(
      passed,
      steps.map(({ send }, at) => `${name}-${at + 1}-${send.replace('_endpoint', '')}`),
    )
    const flow = (await server.flows()).find(({ client }) => client?.id === name)
    const sent = flow?.exchanges.find(({ url }) => url.includes('/oauth/authorize?'))?.url ?? ''
    const expected = Object.keys(steps[0]?.with ?? {})
    t.strictSame([...new URLSearchParams(sent.split('?')[1]).keys()], expected)
    const token = flow?.exchanges.find(({ url }) => url === '/api/oauth/token')
    const agent = token?.request.headers.find(([header]) => header.toLowerCase() === 'user-agent')?.[1]
    t.equal(agent, steps[1]?.headers?.['user-agent'])
    t.strictSame(
      [...new URLSearchParams(token?.request.body?.text).keys()],
      Object.keys(steps[1]?.with ?? {}),
    )
    const times = steps.reduce((sum, step) => sum + (step.times ?? 1), 0)
    const calls = flow?.exchanges.filter(({ url }) => /oauth\/(?:authorize|token|userinfo|logout)/.test(url))
    t.ok((calls?.length ?? 0) >= times, `${calls?.length} of ${times}`)
  })

t.test('a run ends where the client would stop, with the request and the error', async (t) => {
  const file = join(folder, 'gitea.xml')
  const { code, stdout, stderr } = await zoo('gitea', '--junit', file)
  t.equal(code, 1)
  t.equal(stderr, 'lychgate: Gitea stops at gitea-1-authorization\n')
  t.match(stdout, 'FAIL gitea-1-authorization: the user comes back with a code')
  t.match(stdout, /found: no code comes: a redirect with the error invalid_request/)
  t.match(stdout, 'gitea-2-token: the code gets the tokens that were asked for')
  t.match(stdout, 'the client stops before this request')
  t.notMatch(stdout, 'clients that remain', 'the client that was registered is deleted')
  t.match(readFileSync(file, 'utf8'), /failures="1"/)
})

t.test('what a response lacks is found at a server that misbehaves', async (t) => {
  for (const [issuer, fault] of [
    ['state-changed', 'state is not the one of the request'],
    ['id-token-missing', 'there is no id_token'],
    ['userinfo-other-sub', 'sub is not the one of the ID Token'],
  ] as const) {
    const at = ['--against', `${server.issuer}/_dev/issuers/${issuer}`]
    const { code, stdout } = await run([
      'dev',
      'zoo',
      'actual',
      ...at,
      '--client',
      join(folder, 'actual.json'),
    ])
    t.equal(code, 1, issuer)
    t.match(stdout, `found: ${fault}`, issuer)
  }
})

t.test('the clients are listed, and what is missing is said', async (t) => {
  const { code, stdout } = await run(['dev', 'zoo'])
  t.equal(code, 0)
  t.match(stdout, /^gitea +Gitea 1\.26\.0 +2026-11-28, installed from its Go module/m)
  t.equal(stdout.trim().split('\n').length, Object.keys(recordedClients).length)
  for (const [args, why] of [
    [['nobody'], 'there is no client nobody'],
    [['gitea'], '--against names the issuer'],
    [['gitea', '--against', 'localhost'], 'the issuer must be an http or https URL'],
  ] as const) {
    const wrong = await run(['dev', 'zoo', ...args])
    t.equal(wrong.code, 64)
    t.match(wrong.stderr, why)
  }
})
