/** What strangers can make the server fetch and store by naming documents (draft-ietf-oauth-client-id-metadata-document). */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { clientDocumentKind, deniedDocumentKind } from '../../src/domain/client-document.ts'
import { insert, put, update } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { Client } from '../../src/domain/model.ts'
import { makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import {
  authorizationUrl,
  authorize,
  exchange,
  obtainCode,
  obtainTokens,
  post,
  refresh,
  type TestClient,
} from '../helpers/flow.ts'
import { type ServerOptions, startServer, type TestServer } from '../helpers/server.ts'
import { startStandInDocuments, webRedirect } from '../helpers/stand-in-documents.ts'
import { addClient, assertRejected } from '../helpers/wire.ts'
import { textOf } from '../pages/account/sections.ts'

const site = await startStandInDocuments(t)
const { host } = new URL(site.origin)
const start = (t: Test, options: ServerOptions = {}) => startServer(t, { mode: 'dev', nodes: 1, ...options })
const invented = (path: string): TestClient => ({
  id: site.origin + path,
  method: 'none',
  redirectUri: webRedirect,
})

/** How often a URL was fetched. */
function fetchesOf({ id }: TestClient): number {
  return site.requests.filter((path) => site.origin + path === id).length
}

/** The reason that the error page of an authorization request shows. */
async function reasonOf(t: Test, server: TestServer, client: TestClient): Promise<string> {
  const response = await authorize(server, client)
  t.equal(response.status, 400)
  t.equal(response.headers.get('location'), null)
  return /<bdi lang="en">([^<]*)<\/bdi>/.exec(await response.text())?.[1] ?? ''
}

/** Asserts that a request of the client gets to the sign-in page. */
async function assertAccepted(t: Test, server: TestServer, client: TestClient, about: string) {
  t.match((await authorize(server, client)).headers.get('location'), /\/login\?interaction=/, about)
}

t.test(
  'documents that strangers invent use up nothing of a known one, nor of keys at the same host',
  async (t) => {
    const known = site.publish({})
    const first = site.publish({})
    const server = await start(t, {
      clientDocuments: { mode: 'allow-list', allowed: [host, known.client.id] },
    })
    const key = makeClientKey('ES256', 'first')
    const keys = site.publish({}, '/operator/keys.json')
    keys.document.body = { keys: [key.jwk] }
    const operators = await addClient(server)
    const added = await server.deps.store.find('client', operators.id)
    if (added === undefined) throw new Error('the client was added')
    const { secretHash: _, ...others } = added
    const keyed = { authenticationMethod: 'private_key_jwt', extra: { jwks_uri: keys.client.id } }
    await server.deps.store.write(update('client', { ...others, ...keyed }))
    const reasons = []
    for (let count = 0; count < 40; count++)
      reasons.push(await reasonOf(t, server, invented(`/none/${count}`)))
    t.match(reasons[0], 'the response has status 404')
    t.match(reasons[14], 'the response has status 404')
    t.match(reasons[15], 'more than 15 fetches a minute (fetch.perNetworkPerMinute)')
    t.match(reasons[39], 'fetch.perNetworkPerMinute')
    t.equal(site.requests.filter((path) => path.startsWith('/none/')).length, 15, 'and no more are sent')
    await assertAccepted(t, server, known.client, 'the known document')
    const proof = signAssertion(key, { id: operators.id, issuer: server.issuer, now: server.now() })
    const revocation = { token: 'x', ...withAssertion(proof) }
    t.equal((await post(server, '/api/oauth/revoke', revocation)).status, 200, 'the keys of a client')
    t.equal(fetchesOf(keys.client), 1, 'the keys are fetched')
    t.match(await reasonOf(t, server, first.client), 'fetch.perNetworkPerMinute', 'an unknown one waits')
    server.advance(60)
    await assertAccepted(t, server, first.client, 'for the next minute')
  },
)

t.test('each document has a part of the budget of its host', async (t) => {
  const limits = { perOriginPerMinute: 9, perNetworkPerMinute: 500 }
  const server = await start(t, { clientDocuments: { mode: 'any' }, fetch: { timeoutSeconds: 1, ...limits } })
  const { client, document } = site.publish({})
  document.status = 500
  for (const _ of [1, 2, 3]) t.match(await reasonOf(t, server, client), 'the response has status 500')
  t.match(await reasonOf(t, server, client), 'more than 3 fetches a minute (fetch.perOriginPerMinute)')
  for (const _ of [4, 5, 6, 7, 8, 9]) await assertAccepted(t, server, site.publish({}).client, 'others')
  t.match(
    await reasonOf(t, server, site.publish({}).client),
    'more than 9 fetches a minute (fetch.perOriginPerMinute)',
    'until the budget of the host is used up',
  )
})

t.test('hosts that do not respond hold up neither known documents nor keys', async (t) => {
  const known = site.publish({})
  const slow = Array.from({ length: 6 }, () => {
    const { client, document } = site.publish({})
    document.silent = true
    return client
  })
  const server = await start(t, {
    clientDocuments: { mode: 'any', allowed: [known.client.id] },
    fetch: { timeoutSeconds: 3, perNetworkPerMinute: 500 },
  })
  const waiting = slow.map((client) => reasonOf(t, server, client))
  const reason = await Promise.race(waiting)
  t.match(reason, '4 fetches of this kind are running', 'a host, and a network, has some places')
  await assertAccepted(t, server, known.client, 'which are not those of a known document')
  const reasons = await Promise.all(waiting)
  t.equal(reasons.filter((one) => one.includes('no response in 3 s')).length, 4)
  await assertAccepted(t, server, site.publish({}).client, 'and they are free again')
})

t.test(
  '[cimd-4.4-no-cache-errors] a document that does not exist is not fetched again for a minute',
  async (t) => {
    const server = await start(t)
    for (const status of [404, 410]) {
      const { client, document } = site.publish({})
      document.status = status
      for (const _ of [1, 2, 3])
        t.match(await reasonOf(t, server, client), `the response has status ${status}`)
      t.equal(fetchesOf(client), 1)
      document.status = 200
      server.advance(60)
      await assertAccepted(t, server, client, '[cimd-4.4-no-cache-errors] once it is published')
    }
  },
)

t.test('a known document is used until the ceiling while it cannot be fetched', async (t) => {
  const named = site.publish({})
  const approved = site.publish({})
  const unknown = site.publish({})
  const server = await start(t, { clientDocuments: { mode: 'any', allowed: [named.client.id] } })
  await obtainTokens(server, approved.client)
  for (const { client } of [named, unknown]) await assertAccepted(t, server, client, 'fresh')
  for (const failure of [{ status: 500 }, { status: 404 }, { silent: true }]) {
    server.advance(301)
    for (const { document } of [named, approved, unknown]) Object.assign(document, failure)
    for (const { client } of [named, approved]) {
      const before = fetchesOf(client)
      for (const _ of [1, 2, 3]) await assertAccepted(t, server, client, JSON.stringify(failure))
      t.equal(fetchesOf(client), before + 1, 'it is tried once a minute')
    }
    await reasonOf(t, server, unknown.client)
    Object.assign(named.document, { status: 200, silent: false })
    Object.assign(approved.document, { status: 200, silent: false })
  }
  server.advance(61)
  await assertAccepted(t, server, named.client, 'fetched again')
  for (const { document } of [named, approved]) document.status = 500
  server.advance(86_401)
  for (const { client } of [named, approved])
    t.match(await reasonOf(t, server, client), 'status 500', 'past the ceiling it is not used')
  named.document.status = 200
  await assertAccepted(t, server, named.client, 'and no failure is remembered then')
  server.advance(301)
  named.document.text = '{}'
  t.match(await reasonOf(t, server, named.client), 'client_id', 'a document that is wrong is no failure')
})

t.test('only the authorization endpoint and pushes fetch an unknown document', async (t) => {
  const server = await start(t)
  const { client } = site.publish({ grant_types: ['authorization_code', 'refresh_token', deviceGrant] })
  const token = { token: 'x', client_id: client.id }
  const redirect = 'post_logout_redirect_uri=https://client.example/out'
  const requests: [string, () => Promise<Response>, number][] = [
    ['token', () => exchange(server, client, 'x'), 400],
    ['refresh', () => refresh(server, client, 'x'), 400],
    ['revoke', () => post(server, '/api/oauth/revoke', token), 400],
    ['introspect', () => post(server, '/api/oauth/introspect', token), 401],
    ['device', () => post(server, '/oauth/device_authorization', { client_id: client.id }), 400],
    [
      'logout',
      () => fetch(`${server.issuer}/oauth/logout?client_id=${encodeURIComponent(client.id)}&${redirect}`),
      400,
    ],
    ['logo', () => fetch(`${server.issuer}/client-logo?client_id=${encodeURIComponent(client.id)}`), 404],
  ]
  for (const [about, send, status] of requests) {
    const response = await send()
    if (about !== 'logout') t.equal(response.status, status, about)
    t.equal(fetchesOf(client), 0, about)
  }
  t.equal((await push(server, client)).status, 201)
  t.equal(fetchesOf(client), 1, 'a push does')
  await assertRejected(t, await push(server, invented('/not-pushed')), 'invalid_client')
})

t.test(
  '[cimd-6.2-key-auth] a client whose document a node remembers authenticates, and nothing of it is stored',
  async (t) => {
    const key = makeClientKey('ES256', 'first')
    const { client } = site.publish({
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['authorization_code', 'refresh_token', deviceGrant],
      jwks: { keys: [{ ...key.jwk, alg: null, d: null, key_ops: [] }] },
    })
    const server = await start(t, { registration: { deviceGrant: 'on' } })
    const prove = (by = key) =>
      withAssertion(signAssertion(by, { id: client.id, issuer: server.issuer, now: server.now() }))
    const refreshWith = (proof: object) =>
      post(server, '/api/oauth/token', { grant_type: 'refresh_token', refresh_token: 'x', ...proof })
    const fetches = (count: number, about: string) => t.equal(fetchesOf(client), count, about)

    await assertRejected(t, await refreshWith(prove()), 'invalid_client', 400, 'not named yet')
    fetches(0, 'and not fetched')
    await assertAccepted(t, server, client, 'an authorization request fetches it')
    const proof = prove()
    await assertRejected(t, await refreshWith(proof), 'invalid_grant', 400, 'authenticated')
    await assertRejected(t, await refreshWith(proof), 'invalid_client', 400, 'the same proof again')
    await assertRejected(
      t,
      await refreshWith(prove(makeClientKey('ES256', 'first'))),
      'invalid_client',
      400,
      'a key',
    )
    await assertRejected(t, await refreshWith({ client_id: client.id }), 'invalid_client', 400, 'no proof')
    t.equal((await post(server, '/api/oauth/revoke', { token: 'x', ...prove() })).status, 200)
    t.strictSame(await (await post(server, '/api/oauth/introspect', { token: 'x', ...prove() })).json(), {
      active: false,
    })
    await assertRejected(
      t,
      await post(server, '/oauth/device_authorization', prove()),
      'invalid_client',
      400,
      'device',
    )
    const alone = await post(server, '/api/oauth/token', { grant_type: 'client_credentials', ...prove() })
    await assertRejected(t, alone, 'unauthorized_client', 400, 'no token')
    fetches(1, 'nothing is fetched for it')
    t.equal(await server.deps.store.find('client', client.id), undefined, 'nor stored')
    t.equal(await server.deps.store.find(clientDocumentKind, client.id), undefined)

    server.advance(server.deps.config.clientDocuments.floorSeconds)
    await assertRejected(t, await refreshWith(prove()), 'invalid_client', 400, 'no longer fresh')
    fetches(1, 'and not fetched again')
    await assertAccepted(t, server, client, 'the next request')
    await assertRejected(t, await refreshWith(prove()), 'invalid_grant', 400, 'authenticated again')
    await server.deps.store.write(put(deniedDocumentKind, { id: client.id, deniedAt: server.now() }))
    await assertRejected(t, await refreshWith(prove()), 'invalid_client', 400, 'denied, at another node too')
  },
)

t.test('a new server accepts the documents that it lists, and what users approved before', async (t) => {
  const server = await startServer(t, { nodes: 1 })
  const setting = 'its operator can add the URL or its host (clientDocuments.allowed)'
  const other = 'https://claude.ai/oauth/other.json'
  t.match(await reasonOf(t, server, { ...invented(''), id: other }), setting)
  const old: Client = {
    id: other,
    origin: 'registered',
    issuedAt: server.now() - 100,
    usedAt: server.now() - 50,
    localized: {},
    contacts: [],
    applicationType: 'web',
    redirectUris: [webRedirect],
    postLogoutRedirectUris: [],
    authenticationMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token'],
    idTokenSignedResponseAlg: 'RS256',
    requireAuthTime: false,
    pkceOptional: false,
    consent: 'remember',
    introspects: [],
    published: { host: 'claude.ai', terms: 'terms' },
  }
  const times = { fetchedAt: server.now() - 50, freshUntil: server.now() + 1000, digest: 'digest' }
  for (const client of [
    old,
    { ...old, id: `${other}?unused`, usedAt: old.issuedAt },
    { ...old, id: 'https://evil.example/client.json' },
  ])
    await server.deps.store.write(
      insert('client', client),
      insert(clientDocumentKind, { id: client.id, ...times }),
    )
  const stored = { ...invented(''), id: other }
  await assertAccepted(t, server, stored, 'a client that a user approved when its host was the default')
  const tokens = await obtainTokens(server, stored)
  t.equal((await refresh(server, stored, tokens.refresh_token)).status, 200, 'as the last version stored it')
  t.match(await reasonOf(t, server, { ...stored, id: `${other}?unused` }), setting)
  t.match(await reasonOf(t, server, { ...stored, id: 'https://evil.example/client.json' }), setting)
  const narrowed = await startServer(t, {
    nodes: 1,
    clientDocuments: { allowed: ['https://claude.ai/oauth/claude-code-client-metadata'] },
  })
  await narrowed.deps.store.write(insert('client', old), insert(clientDocumentKind, { id: other, ...times }))
  t.match(await reasonOf(t, narrowed, stored), setting, 'a list of the operator is the whole list')
})

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

function push(server: TestServer, client: TestClient) {
  return post(server, '/api/oauth/par', {
    client_id: client.id,
    redirect_uri: client.redirectUri,
    response_type: 'code',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    scope: 'openid',
  })
}

/** Everything that a store has, as text. */
async function contentsOf(server: TestServer): Promise<string> {
  return JSON.stringify(await server.deps.store.contents())
}

t.test('nothing of a document is stored before a signed-in user approves its client', async (t) => {
  const server = await start(t, { fetch: { timeoutSeconds: 1, perNetworkPerMinute: 500 } })
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(60_000)])
  const logo = site.publish({}, '/logo.png')
  Object.assign(logo.document, { text: png, headers: { 'content-type': 'image/png' } })
  const { client } = site.publish({ client_name: 'Marked Agent', logo_uri: logo.client.id })
  const isMarked = async () => (await contentsOf(server)).includes('Marked Agent')
  const before = (await contentsOf(server)).length
  const response = await authorize(server, client)
  t.equal((await push(server, client)).status, 201)
  const location = response.headers.get('location') ?? ''
  const interaction = await server.deps.store.find(
    interactionKind,
    new URL(location, server.issuer).searchParams.get('interaction') ?? '',
  )
  t.match(interaction?.request, { clientId: client.id, extra: { clientDocument: /^[\w-]{43}$/ } })
  t.equal(await isMarked(), false, 'a request stores nothing of it')
  t.ok((await contentsOf(server)).length - before < 4096, 'but the two requests')

  const agent = await signedIn(server, client)
  const page = pageOf(await agent.open(authorizationUrl(server, client)))
  t.match(textOf(page), 'Marked Agent', 'the page has it from memory')
  const [, src = ''] = /<img class="client-logo" src="([^"]*)" alt=""/.exec(page.html) ?? []
  const shown = await fetch(server.origin + src.replaceAll('&amp;', '&'))
  t.strictSame(Buffer.from(await shown.arrayBuffer()), png, 'with its logo')
  t.equal(fetchesOf(logo.client), 1)
  t.equal(await isMarked(), false, 'nor does a page')
  t.match(sentAway(await agent.submit(page, { decision: 'deny' })), { error: 'access_denied' })
  t.equal(await isMarked(), false, 'nor a denial')
  t.equal(await server.deps.store.find(clientDocumentKind, client.id), undefined)

  const again = pageOf(await agent.open(authorizationUrl(server, client)))
  t.ok(sentAway(await agent.submit(again, { decision: 'approve' }))['code'])
  t.match(await server.deps.store.find('client', client.id), { name: 'Marked Agent' }, 'an approval does')
  t.match(await server.deps.store.find(clientDocumentKind, client.id), { digest: /^[\w-]{43}$/ })
  const kept = await server.deps.store.find('client', client.id)
  t.notOk(kept?.published && 'namedFrom' in kept.published, 'and not where it was named')
  t.notOk((await contentsOf(server)).includes(png.toString('base64').slice(0, 100)), 'but not the logo')
  t.equal((await exchange(server, client, await obtainCode(server, client))).status, 200)
  await authorize(server, client)
  while (fetchesOf(logo.client) < 2) await once(site.server, 'request')
})

t.test('consent is for the document that was shown, and a changed one asks again', async (t) => {
  const server = await start(t)
  for (const isStored of [false, true]) {
    const { client, document } = site.publish({})
    if (isStored) await obtainTokens(server, client)
    const fields = { scope: 'openid courses:read courses:write' }
    const agent = await signedIn(server, client)
    const page = pageOf(await agent.open(authorizationUrl(server, client, fields)))
    t.notMatch(textOf(page), 'has changed its details')
    const digestOf = async () => (await server.deps.store.find('client', client.id))?.published?.digest
    const shown = await digestOf()
    document.body = { ...(document.body as object), software_version: '2' }
    server.advance(301)
    await assertAccepted(t, server, client, 'another request fetches the changed document')
    const asked = await agent.submit(page, { decision: 'approve' })
    t.match(textOf(pageOf(asked)), 'has changed its details', `stored: ${isStored}`)
    if (isStored) t.not(await digestOf(), shown)
    else t.equal(await digestOf(), undefined, 'nothing is stored by the consent to another document')
    t.ok(sentAway(await agent.submit(pageOf(asked), { decision: 'approve' }))['code'])
    t.ok(await digestOf())
  }
})

t.test('a document obeys the limit of client metadata', async (t) => {
  const server = await start(t, { limits: { clientMetadataBytes: 1024 } })
  await assertAccepted(t, server, site.publish({}).client, 'a small one')
  const uris = Array.from({ length: 40 }, (_, n) => `${webRedirect}/${n}`)
  t.match(
    await reasonOf(t, server, site.publish({ redirect_uris: uris }).client),
    'takes more than 1024 bytes (limits.clientMetadataBytes)',
  )
})
