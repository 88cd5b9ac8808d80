/** The misbehaving issuers as a part of the development server: their URLs, what they share with it, and what not. */

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { lockClient } from '../../../src/clients/operator-client.ts'
import { profiles } from '../../../src/dev/issuers/catalogue.ts'
import type { Listed } from '../../../src/dev/issuers/report.ts'
import { remove, update } from '../../../src/domain/decision.ts'
import { introspectedBy } from '../../../src/guard/guard.ts'
import { cookieName } from '../../../src/http/cookies.ts'
import { pageOf } from '../../helpers/authorization.ts'
import {
  authorizationUrl,
  callApi,
  claimsOf,
  obtainTokens,
  post,
  register,
  responseOf,
} from '../../helpers/flow.ts'
import { alice, startServer, type TestServer } from '../../helpers/server.ts'
import { newUser } from '../../helpers/user.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { addClient } from '../../helpers/wire.ts'
import { issuerOf, reportOf } from './results.ts'

const server = await startServer(t, { mode: 'dev' })
const onPath = await startServer(t, { mode: 'dev', issuerPath: '/t' })
const production = await startServer(t)
const json = { 'content-type': 'application/json' }

async function members(url: string): Promise<Record<string, unknown>> {
  return (await (await fetch(url)).json()) as Record<string, unknown>
}

async function verdictOf(at: TestServer, id: string): Promise<string | undefined> {
  return (await reportOf(at)).profiles.find((profile) => profile.id === id)?.verdict
}

function tell(id: string, body: unknown, headers: Record<string, string> = json): Promise<Response> {
  return fetch(`${issuerOf(server, id)}/outcome`, { method: 'POST', headers, body: JSON.stringify(body) })
}

t.test(
  'the list names each profile with its clause, the row of the ledger, and what a correct client does',
  async (t) => {
    const { issuers } = (await members(`${server.issuer}/_dev/issuers`)) as unknown as { issuers: Listed[] }
    t.strictSame(
      issuers.map(({ id }) => id),
      profiles.map(({ id }) => id),
    )
    const folder = new URL('../../requirements/', import.meta.url)
    const rows = readdirSync(folder)
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => readFileSync(new URL(name, folder), 'utf8'))
      .join('')
    for (const { id, issuer, title, clause, ledger, sound, fooled_when } of issuers) {
      t.equal(issuer, issuerOf(server, id))
      if (id !== 'reference')
        t.equal(
          /^(RFC \d{4}|OpenID Connect (Core|Back-Channel Logout)|OAuth Client ID Metadata Document) §[\d.]+$/.test(
            clause,
          ),
          true,
          clause,
        )
      if (ledger !== undefined) t.equal(rows.includes(`"id": "${ledger}"`), true, `${ledger} is a row`)
      t.equal([title, sound, fooled_when].includes(''), false, id)
    }
  },
)

t.test('an issuer is discovered at every place a client may look', async (t) => {
  for (const at of [server, onPath]) {
    const issuer = issuerOf(at, 'reference')
    const { origin, pathname } = new URL(issuer)
    for (const url of [
      `${issuer}/.well-known/openid-configuration`,
      `${origin}/.well-known/openid-configuration${pathname}`,
      `${issuer}/.well-known/oauth-authorization-server`,
      `${origin}/.well-known/oauth-authorization-server${pathname}`,
    ]) {
      t.equal((await members(url))['issuer'], issuer, url)
    }
    t.strictSame(
      (await members(`${origin}/.well-known/oauth-protected-resource${pathname}`))['resource'],
      issuer,
    )
  }
  t.equal((await members(`${server.issuer}/.well-known/openid-configuration`))['issuer'], server.issuer)
})

t.test('a whole flow works there, and its tokens work nowhere else', async (t) => {
  const issuer = { issuer: issuerOf(onPath, 'reference') }
  const tokens = await obtainTokens(issuer, await register(issuer))
  t.equal(claimsOf(tokens.id_token)['iss'], issuer.issuer)
  t.equal((await callApi(issuer, '/api/oauth/userinfo', tokens.access_token)).status, 200)
  const other = { issuer: issuerOf(onPath, 'iss-wrong') }
  for (const elsewhere of [onPath, other]) {
    t.equal((await callApi(elsewhere, '/api/oauth/userinfo', tokens.access_token)).status, 401)
  }
  t.equal(await verdictOf(onPath, 'reference'), 'passed')
})

t.test('a form of the browser gets the fault, too', async (t) => {
  const issuer = { issuer: issuerOf(server, 'state-changed') }
  const url = authorizationUrl(issuer, await register(issuer), { response_mode: 'form_post', state: '<&">' })
  const posted = new URLSearchParams(await (await newUser(issuer).approveByPost(url)).text())
  t.equal(posted.get('state'), '<&">0')
  t.equal(posted.get('iss'), issuer.issuer)
  t.equal(posted.getAll('code').length, 1)
})

t.test('users are those of the server, also when they are added or changed later', async (t) => {
  const issuer = { issuer: issuerOf(server, 'iss-missing') }
  const client = await register(issuer)
  const tokens = await obtainTokens(issuer, client)
  const { sub } = claimsOf(tokens.id_token)
  const user = await server.deps.store.find('user', String(sub))
  t.equal(user?.username, alice.username)
  if (user === undefined) return
  await server.deps.store.write(
    update('user', { ...user, claims: { ...user.claims, nickname: 'Lissi' }, updatedAt: server.now() }),
  )
  const { nickname } = (await (
    await callApi(
      issuer,
      '/api/oauth/userinfo',
      (
        await obtainTokens(issuer, client, { fields: { scope: 'openid profile' } })
      ).access_token,
    )
  ).json()) as Record<string, unknown>
  t.equal(nickname, 'Lissi')
})

t.test('signing in there ends no session of the server: its cookies belong to its path', async (t) => {
  const issuer = issuerOf(server, 'iss-with-slash')
  const { pathname } = new URL(issuer)
  const agent = new UserAgent(issuer)
  const url = authorizationUrl({ issuer }, await register({ issuer }))
  const opened = await agent.send(url)
  const paths = opened.headers.getSetCookie().map((cookie) => /; Path=([^;]*)/.exec(cookie)?.[1])
  t.strictSame(paths, [pathname])
  const login = pageOf(await agent.open(new URL(opened.headers.get('location') ?? '', issuer).href))
  const [form] = login.forms
  const body = new URLSearchParams(form?.fields.map(({ name, value }): [string, string] => [name, value]))
  body.set('username', alice.username)
  body.set('password', alice.password)
  const signedIn = await agent.send(new URL(form?.action ?? '', issuer).href, { method: 'POST', body })
  const kept = signedIn.headers.getSetCookie()
  t.equal(
    kept.some((cookie) => cookie.startsWith(`${cookieName(issuer, 'session')}=`)),
    true,
  )
  for (const cookie of kept) t.equal(/; Path=([^;]*)/.exec(cookie)?.[1], pathname)
})

t.test('an error there is a line in the log of the server, under its request id', async (t) => {
  const issuer = { issuer: issuerOf(server, 'reference') }
  const rejected = await post(issuer, '/api/oauth/token', { grant_type: 'password' })
  const id = rejected.headers.get('x-request-id') ?? ''
  const line = server.log
    .map((text) => JSON.parse(text) as Record<string, unknown>)
    .find(({ reqId }) => reqId === id)
  t.equal(line?.['status'], rejected.status)
  t.equal(line?.['path'], '/_dev/issuers/reference/api/oauth/token')
  t.type(line?.['rule'], 'string')
})

t.test('a single scope cannot be narrowed: it is granted, and the response names it', async (t) => {
  const issuer = { issuer: issuerOf(server, 'scope-narrowed-silently') }
  const client = await register(issuer)
  for (const scope of ['openid', 'courses:read']) {
    t.equal((await obtainTokens(issuer, client, { fields: { scope } })).scope, scope)
  }
  t.equal(await verdictOf(server, 'scope-narrowed-silently'), 'not reached')
})

t.test('the ETag of a correct document never confirms an altered one', async (t) => {
  const of = (id: string) => fetch(`${issuerOf(server, id)}/.well-known/openid-configuration`)
  t.type((await of('reference')).headers.get('etag'), 'string')
  t.equal((await of('metadata-other-issuer')).headers.get('etag'), null)
})

t.test("a client's own report counts only where the server cannot observe it", async (t) => {
  const issuer = { issuer: issuerOf(server, 'introspection-active-text') }
  t.equal((await tell('introspection-active-text', { outcome: 'rejected' })).status, 204)
  t.equal(await verdictOf(server, 'introspection-active-text'), 'not reached', 'nothing was told yet')
  const client = await register(issuer)
  const asked = await post(issuer, '/api/oauth/introspect', { token: 'dead', client_id: client.id })
  t.strictSame(await asked.json(), { active: 'false' })
  t.equal(await verdictOf(server, 'introspection-active-text'), 'rejected')
  await tell('introspection-active-text', { outcome: 'fooled', reason: 'it is a text' })
  const { profiles: reported } = await reportOf(server)
  t.match(
    reported.find(({ id }) => id === 'introspection-active-text'),
    {
      verdict: 'fooled',
      told: 'fooled: it is a text',
    },
  )

  const metadata = { issuer: issuerOf(server, 'metadata-other-issuer') }
  await members(`${metadata.issuer}/.well-known/openid-configuration`)
  t.equal(await verdictOf(server, 'metadata-other-issuer'), 'rejected', 'it has stopped')
  await register(metadata)
  await tell('metadata-other-issuer', { outcome: 'rejected' })
  t.equal(await verdictOf(server, 'metadata-other-issuer'), 'fooled')
})

t.test('our own guard treats a token as active only if active is true', async (t) => {
  const issuer = { issuer: issuerOf(server, 'introspection-active-text') }
  const client = await register(issuer, { token_endpoint_auth_method: 'client_secret_basic' })
  const endpoint = `${issuer.issuer}/api/oauth/introspect`
  const verify = introspectedBy({ endpoint, clientId: client.id, clientSecret: client.secret ?? '' })
  t.equal(await verify('dead'), undefined)
  const { access_token: live } = await obtainTokens(issuer, client)
  t.type(await verify(live), 'object', 'and asks in the right way')
})

t.test('an invalid outcome is rejected, and so is an unknown profile', async (t) => {
  t.equal((await tell('reference', { outcome: 'fine' })).status, 400)
  t.equal((await tell('reference', 'outcome=fooled', {})).status, 415)
  t.equal(
    (await tell('reference', { outcome: 'fooled' }, { ...json, origin: 'https://evil.example' })).status,
    403,
  )
  t.equal((await tell('no-such-profile', { outcome: 'fooled' })).status, 404)
  t.equal((await fetch(`${server.issuer}/_dev/issuers/no-such-profile/api/courses`)).status, 404)
})

t.test('every issuer knows the clients that an operator added, as long as they are there', async (t) => {
  const { id, secret = '' } = await addClient(server, {
    authenticationMethod: 'client_secret_post',
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
  })
  const ask = (issuer: string) =>
    post({ issuer }, '/api/oauth/token', {
      grant_type: 'client_credentials',
      client_id: id,
      client_secret: secret,
    })
  for (const profile of ['reference', 'service-refresh-token'])
    t.equal((await ask(issuerOf(server, profile))).status, 200, profile)
  const stranger = await register({ issuer: issuerOf(server, 'reference') })
  t.equal(
    await server.deps.store.find('client', stranger.id),
    undefined,
    'a registration stays where it was made',
  )
  await server.deps.store.transact('client', id, (found) =>
    lockClient(found, { by: 'operator', at: server.now() }),
  )
  t.equal((await ask(issuerOf(server, 'reference'))).status, 400, 'locked')
  await server.deps.store.write(remove('client', id))
  t.equal((await ask(issuerOf(server, 'reference'))).status, 400, 'removed')
})

t.test('an assertion that is no JWT is no reason to fail', async (t) => {
  const issuer = { issuer: issuerOf(server, 'assertion-other-audience') }
  for (const client_assertion of ['x', 'e30.e30.x', '..', 'bnVsbA.W10.x']) {
    const sent = { grant_type: 'client_credentials', client_assertion, client_assertion_type: 'x' }
    t.equal((await post(issuer, '/api/oauth/token', sent)).status, 400, client_assertion)
  }
  t.equal(await verdictOf(server, 'assertion-other-audience'), 'not reached')
})

t.test('a report can be reset, and clients stay', async (t) => {
  const issuer = { issuer: issuerOf(server, 'iss-wrong') }
  const client = await register(issuer)
  const agent = new UserAgent(issuer.issuer)
  await obtainTokens(issuer, client, { agent })
  t.equal(await verdictOf(server, 'iss-wrong'), 'fooled')
  t.equal((await fetch(`${server.issuer}/_dev/issuers/report`, { method: 'DELETE' })).status, 204)
  t.equal(await verdictOf(server, 'iss-wrong'), 'not reached')
  const again = await agent.send(authorizationUrl(issuer, client, { prompt: 'none' }))
  t.equal(responseOf(again)['error'], 'consent_required', 'signed in, and known')
})

t.test('a production server has no misbehaving issuers', async (t) => {
  for (const path of ['/_dev/issuers', '/_dev/issuers/report', '/_dev/issuers/reference/oauth/authorize']) {
    t.equal((await fetch(production.issuer + path)).status, 404, path)
  }
  const inserted = `${production.origin}/.well-known/openid-configuration/_dev/issuers/reference`
  t.equal((await fetch(inserted)).status, 404)
})

t.test('issuers do not nest', async (t) => {
  t.equal((await fetch(`${issuerOf(server, 'reference')}/_dev/issuers`)).status, 404)
})
