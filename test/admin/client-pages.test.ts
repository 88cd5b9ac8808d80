/** The pages of an app: added by its recipe, its values, and why it was rejected last, which commands show, too. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { callback, integrate, pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { authorize, type Fields, postAs, type TestClient } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const data = newFolder(t)
const store = `sqlite:${data}/lychgate.db`
const server = await startServer(t, { store, mode: 'dev', admin: { secondFactor: 'off', api: 'on' } })
const root = `${server.issuer}/admin`
const pipeline = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:clients:read', 'admin:audit:read'],
})
writeFileSync(join(data, 'secret'), `${pipeline.secret}\n`)
const doors = [
  ['--data', data],
  ['--server', server.issuer, '--client-id', pipeline.id, '--secret-file', join(data, 'secret')],
]

const operator = () => ({ by: 'operator', at: server.deps.clock() }) as const
const admins = await changeGroups(server.deps.store, (groups) =>
  createGroup(groups, { name: 'Admins' }, systemRandom(16), operator()),
)
const sub = (await server.deps.store.find('userByLogin', 'alice'))?.id ?? ''
await addToGroup(server.deps.store, admins, sub, operator())
const admin = new UserAgent(server.issuer)
await admin.submit(pageOf(await admin.open(root)), alice)

const pageOfClient = async ({ id }: TestClient) => pageOf(await admin.open(`${root}/clients/${id}`))

async function run(...command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(command)
  if (code !== 0) throw new Error(stderr)
  return stdout
}

/** Sends an authorization request that is rejected, and waits until that is stored. */
async function reject(client: TestClient, fields: Fields): Promise<string> {
  const response = await authorize(server, client, fields)
  const { searchParams } = new URL(response.headers.get('location') ?? server.issuer)
  const id = response.headers.get('x-request-id') ?? ''
  while ((await server.deps.store.find('rejection', id)) === undefined) await setTimeout(10)
  const [, reference = ''] =
    / \(reference ([\da-f]{8})\)$/.exec(searchParams.get('error_description') ?? '') ?? []
  t.equal(reference, id.slice(0, reference.length))
  return reference
}

const without = { code_challenge: undefined, code_challenge_method: undefined, state: 'a secret state' }
const actual = { redirectUris: ['https://actual.example.com/openid/callback'], name: 'Actual' }

t.test('the reference that an app gets finds the rejected request', async (t) => {
  const client = await integrate(server)
  const reference = await reject(client, without)
  t.equal(reference.length, 8)
  for (const door of doors) {
    const explained = JSON.parse(await run('explain', reference, '--json', ...door))
    t.match(explained, { rule: 'rfc7636-4.4.1-challenge-required', client: client.id })
    t.notMatch(JSON.stringify(explained), 'a secret state')
  }
  const { code, stderr } = await runHere(['explain', 'ffffffff', '--data', data])
  t.equal(code, 1)
  t.match(stderr, 'no rejected request with this id is stored')
  const errors = pageOf(await admin.open(`${root}/errors?request=${reference}`))
  t.match(errors.html, 'rfc7636-4.4.1-challenge-required')
})

t.test(
  'what to change for a client without PKCE is shown, and one button lets it leave PKCE out',
  async (t) => {
    const client = await integrate(server, actual)
    t.notMatch((await pageOfClient(client)).html, 'Last rejected request')
    await reject(client, without)
    for (const door of doors) {
      const { last_rejection: last } = JSON.parse(await run('client', 'show', client.id, '--json', ...door))
      t.match(last, {
        error: 'invalid_request',
        rule: 'rfc7636-4.4.1-challenge-required',
        change: [
          'switch PKCE on in the app',
          `lychgate client set ${client.id} --pkce optional; an attacker can then redeem a leaked code with the secret of the app`,
        ],
      })
      t.match(await run('client', 'show', client.id, ...door), /^last_rejection\.change 1 +switch PKCE on/m)
    }
    const page = await pageOfClient(client)
    t.match(page.html, 'The app does not use PKCE')
    t.match(page.html, 'anyone with the secret of the app can then use a leaked code')
    await admin.submit(page, { pkce: 'optional' })
    t.match(JSON.parse(await run('client', 'show', client.id, '--json', '--data', data)), {
      pkce: 'optional',
    })
    const events = await server.deps.store.audit({ since: 0, limit: 500 })
    t.match(events.at(-1), { name: 'client-changed', clientId: client.id, facts: { changed: 'pkce' } })
    t.notMatch((await pageOfClient(client)).html, 'name="pkce"', 'there is nothing more to allow')
    t.equal((await authorize(server, client, without, admin)).status, 303)
  },
)

t.test('the setting of the recipe is shown', async (t) => {
  const grafana = { name: 'Grafana', redirectUris: ['https://grafana.example.com/login/generic_oauth'] }
  const client = await integrate(server, grafana)
  await reject(client, without)
  t.match((await pageOfClient(client)).html, 'GF_AUTH_GENERIC_OAUTH_USE_PKCE=true')
})

t.test('a public client cannot be allowed to leave PKCE out', async (t) => {
  const client = await integrate(server, { authenticationMethod: 'none' })
  await reject(client, without)
  const page = await pageOfClient(client)
  t.match(page.html, 'The app does not use PKCE')
  t.notMatch(page.html, 'name="pkce"')
  t.notMatch(await run('client', 'show', client.id, '--data', data), 'last_rejection.change 2')
})

t.test('what else is wrong with an app is on its page, too', async (t) => {
  const client = await integrate(server, { scope: ['openid'] })
  await reject(client, { redirect_uri: `${callback}/other` })
  t.match((await pageOfClient(client)).html, 'The app sends users to an address that is not registered')
  await reject(client, { scope: 'openid email' })
  const { html } = await pageOfClient(client)
  t.match(html, 'The app asks for a scope that it may not have')
  t.notMatch(html, 'not registered', 'the last one counts')
  const wrong = await postAs(server, { ...client, secret: 'x'.repeat(40) }, '/api/oauth/token', {
    grant_type: 'authorization_code',
    code: 'x',
  })
  const id = wrong.headers.get('x-request-id') ?? ''
  while ((await server.deps.store.find('rejection', id)) === undefined) await setTimeout(10)
  t.match((await pageOfClient(client)).html, 'The app does not have the right secret')
})

t.test('an app is added by its recipe, and what that makes weaker is asked', async (t) => {
  const kinds = pageOf(await admin.open(`${root}/clients/add`))
  t.match(kinds.html, /<option value="gitea">Gitea<\/option>/)
  t.match(kinds.html, /<option value="outline">Outline \(not tried\)<\/option>/)
  const wrong = pageOf(
    await admin.open(`${root}/clients/add?recipe=outline&url=http%3A%2F%2Fwiki.example.com`),
  )
  t.equal(wrong.status, 400)
  t.match(wrong.html, 'value="http://wiki.example.com"')
  const form = pageOf(
    await admin.open(`${root}/clients/add?recipe=outline&url=https%3A%2F%2Fwiki.example.com%2F`),
  )
  t.match(form.html, 'This recipe was not tried.')
  t.match(form.html, 'https://wiki.example.com/auth/oidc.callback')
  t.match(form.html, 'PKCE is optional until the app has used it once')
  const filled = {
    name: 'Wiki',
    redirect_uris: 'https://wiki.example.com/auth/oidc.callback',
    scope: ['openid', 'profile', 'email', 'offline_access'],
    token_endpoint_auth_method: 'client_secret_post',
  }
  const asked = pageOf(await admin.submit(form, filled))
  t.equal(asked.status, 400)
  t.match(asked.html, filled.redirect_uris, 'what was filled in stays')
  const { html } = pageOf(await admin.submit(asked, { ...filled, weak: '1' }))
  const [id = ''] = /client_[\w-]{22}/.exec(html) ?? []
  const [secret = ''] = /lyc_\w+_[\w-]{43}/.exec(html) ?? []
  t.match(html, `OIDC_CLIENT_SECRET=${secret}`)
  t.match(html, `OIDC_TOKEN_URI=${server.issuer}/api/oauth/token`)
  t.match(await server.deps.store.find('client', id), {
    name: 'Wiki',
    pkceOptional: true,
    authenticationMethod: 'client_secret_post',
    scope: ['openid', 'profile', 'email', 'offline_access'],
  })
  const page = pageOf(await admin.open(`${root}/clients/${id}`))
  t.match(page.html, 'OIDC_CLIENT_SECRET={client_secret}')
  t.notMatch(page.html, secret)
  const { token_endpoint: token, jwks_uri: keys } = await json(
    await fetch(`${server.issuer}/.well-known/openid-configuration`),
  )
  for (const url of [token, keys])
    t.match(page.html, `<code class="issuer">${url}</code><button type="button"`)
})

t.test('an app is added without knowing whether it uses PKCE', async (t) => {
  const form = pageOf(await admin.open(`${root}/clients/add?kind=web`))
  const added = pageOf(await admin.submit(form, { name: 'App', redirect_uris: callback, pkce: 'auto' }))
  const [id = ''] = /client_[\w-]{22}/.exec(added.html) ?? []
  t.match(JSON.parse(await run('client', 'show', id, '--json', '--data', data)), { pkce: 'auto' })
  const edit = pageOf(await admin.open(`${root}/clients/${id}/edit`))
  t.match(edit.html, /value="auto" checked/)
})

t.test('texts of an app in other languages are added, changed and removed', async (t) => {
  const form = pageOf(await admin.open(`${root}/clients/add?kind=web`))
  const typed = {
    name: 'Courses',
    redirect_uris: callback,
    localized: 'client_name#de=Kurse\nclient_uri#de=https://app.example/de',
  }
  const added = pageOf(await admin.submit(form, typed))
  const [id = ''] = /client_[\w-]{22}/.exec(added.html) ?? []
  const localized = async () => (await server.deps.store.find('client', id))?.localized
  t.strictSame(await localized(), { 'client_name#de': 'Kurse', 'client_uri#de': 'https://app.example/de' })

  const edit = pageOf(await admin.open(`${root}/clients/${id}/edit`))
  t.match(edit.html, '>client_name#de=Kurse\nclient_uri#de=https://app.example/de</textarea>')
  const changed = { ...typed, localized: ' client_name#de=Kurse 2 \n\nclient_name#fr=Cours\n' }
  await admin.submit(edit, changed)
  t.strictSame(await localized(), { 'client_name#de': 'Kurse 2', 'client_name#fr': 'Cours' })

  for (const [text, problem] of [
    ['Kurse', /localized must have lines such as client_name#de=Kurse: client_name, /],
    ['client_id#de=x', /localized must have lines/],
    ['client_name#not a tag=x', /localized must have lines/],
    ['client_uri#de=javascript:alert(1)', /client_uri#de/],
  ] as const) {
    const again = pageOf(await admin.open(`${root}/clients/${id}/edit`))
    const rejected = pageOf(await admin.submit(again, { ...typed, localized: text }))
    t.equal(rejected.status, 400, text)
    t.match(rejected.html, problem)
    t.match(rejected.html, `>${text}</textarea>`, 'what was typed stays')
  }
  t.strictSame(await localized(), { 'client_name#de': 'Kurse 2', 'client_name#fr': 'Cours' })
})
