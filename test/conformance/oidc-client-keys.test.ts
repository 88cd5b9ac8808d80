/** Keys towards an upstream, which is a second server like this one: those of its ID Tokens, and ours in place of a secret. */
import { decodeProtectedHeader } from 'jose'
import t from 'tap'
import type { JsonObject } from '../../src/clients/members.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { rotateKeys, rotationNeeds } from '../../src/keys/rules.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { authorizationUrl, register, signInAndApprove } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { recordOf } from '../helpers/rejection.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { goAway, pageOf, textOf, UserAgent, upstreamOf } from '../helpers/stand-in-upstream.ts'
import { addClient } from '../helpers/wire.ts'

/** Two servers, one of which is the upstream of the other and knows it by the keys at its `jwks_uri`. */
async function startBoth(t: Parameters<typeof startServer>[0], keys?: JsonObject) {
  const port = await freePort()
  const upstream = await startServer(t, { mode: 'dev', nodes: 1 })
  const { id: clientId } = await addClient(upstream, {
    redirectUris: [`http://localhost:${port}/login/upstream/work/callback`],
    authenticationMethod: 'private_key_jwt',
    idTokenSignedResponseAlg: 'RS256',
    description: keys ?? { jwks_uri: `http://localhost:${port}/api/oauth/jwks` },
  })
  const { clientSecretFile: _, ...config } = upstreamOf(t, upstream.issuer, {
    clientId,
    clientAuthentication: 'private_key_jwt',
    firstSignIn: 'any',
  })
  const server = await startServer(t, { mode: 'dev', nodes: 1, port, upstreams: [config] })
  const client = await register(server)
  const there = new UserAgent(upstream.issuer)
  /** Signs in with the upstream, in a new browser. @returns The page after it. */
  const signIn = async () => {
    const here = new UserAgent(server.issuer)
    const away = await goAway(here, authorizationUrl(server, client))
    const back = await signInAndApprove(there, await there.open(away.href))
    return pageOf(await here.open(back.href))
  }
  const advance = (seconds: number) => {
    for (const one of [server, upstream]) one.advance(seconds)
  }
  return { server, upstream, signIn, advance }
}

/** Rotates the keys: `published` as a server does by itself, `once` as `lychgate keys rotate --now` does. */
async function rotate({ deps: { keys, config } }: TestServer, at: 'published' | 'once'): Promise<void> {
  const algorithms = ['RS256', 'ES256'] as const
  await keys.change(
    {
      needs: (ring, now) => rotationNeeds(ring, algorithms, now),
      decide: (ring, made, now) => rotateKeys(ring, { algorithms, at }, made, keyPolicy(config), now),
    },
    {},
  )
}

const userIdOf = async ({ deps: { store } }: TestServer) =>
  (await store.find('userByLogin', 'alice'))?.id ?? ''

const approval = 'value="approve"'
const failure = 'Signing in with Work does not work'

t.test(
  '[oidc-core-9-rp-private-key-jwt] a server without a secret authenticates at the upstream by its published keys, with another assertion each time',
  async (t) => {
    const { upstream, signIn } = await startBoth(t)
    for (const _ of [1, 2]) t.match((await signIn()).html, approval)
    t.equal((await upstream.deps.store.listOf('grant', await userIdOf(upstream))).length, 2)
  },
)

t.test('an upstream that has other keys of this server rejects it, and no user is signed in', async (t) => {
  const { server, signIn } = await startBoth(t, { jwks: { keys: [makeClientKey('RS256').jwk] } })
  const page = await signIn()
  t.equal(page.status, 502)
  t.match(textOf(page), failure)
  t.match(page.html, 'name="password"', 'the user can still sign in here')
  t.match(await recordOf(server, page), { rule: 'lychgate-upstream-reached' })
  t.equal((await server.deps.store.list('user')).length, 2)
})

t.test(
  '[oidc-core-10.1.1-rp-rotation] keys of the upstream that are new are fetched when they sign, once a minute',
  async (t) => {
    const { server, upstream, signIn, advance } = await startBoth(t)
    t.match((await signIn()).html, approval)
    await rotate(upstream, 'once')
    advance(5)
    const early = await signIn()
    t.equal((await recordOf(server, early)).rule, 'oidc-core-3.1.3.7-rp-signature', 'not within a minute')
    advance(61)
    t.match((await signIn()).html, approval)
  },
)

t.test('keys of this server that are new sign its assertions, and the upstream fetches them', async (t) => {
  const { server, signIn, advance } = await startBoth(t)
  t.match((await signIn()).html, approval)
  await rotate(server, 'once')
  advance(5)
  t.match(textOf(await signIn()), failure, 'the upstream does not fetch them within a minute')
  advance(61)
  t.match((await signIn()).html, approval)
})

t.test('keys that are published before they sign interrupt no sign-in', async (t) => {
  const { server, upstream, signIn, advance } = await startBoth(t)
  t.match((await signIn()).html, approval)
  const signers = () =>
    Promise.all(
      [server, upstream].map(({ deps: { keys } }) =>
        keys.sign('RS256', 'JWT', {}).then(decodeProtectedHeader),
      ),
    )
  const before = await signers()
  for (const one of [server, upstream]) await rotate(one, 'published')
  advance(server.deps.config.keys.publishAheadSeconds + 5)
  const after = await signers()
  t.ok(after.every(({ kid }, at) => kid !== before[at]?.kid))
  t.match((await signIn()).html, approval)
})
