import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { put, remove } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { addToGroup, changeGroups, groupsOf } from '../../src/users/groups.ts'
import { hashRecoveryCode, secondFactorKind } from '../../src/users/rules/second-factor.ts'
import {
  insertUpstreamLink,
  signInElsewhereKind,
  upstreamLinkId,
  upstreamLinkKind,
} from '../../src/users/rules/upstream-link.ts'
import { newFolder } from '../helpers/command.ts'
import {
  authorizationUrl,
  exchange,
  refresh,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { alice, bob, startServer, type TestServer } from '../helpers/server.ts'
import {
  goAway,
  locationOf,
  pageOf,
  type StandInUpstream,
  startStandInUpstream,
  startWithUpstream,
  textOf,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'

/** The events of a kind, newest last. */
const eventsOf = (
  server: TestServer,
  name: 'sign-in' | 'sign-in-failed' | 'upstream-linked' | 'upstream-unlinked',
) => server.deps.store.audit({ since: 0, name, limit: 20 })

/** Signs in at the account page on which accounts elsewhere are linked. */
const openAccount = async (server: TestServer, here: UserAgent, user = bob) =>
  pageOf(await here.submit(pageOf(await here.open(`${server.issuer}/account/upstreams`)), user))

t.test('a user signs in with another server like this one, to the client that asked', async (t) => {
  const port = await freePort()
  const upstream = await startServer(t)
  const { id: clientId, secret = '' } = await register(upstream, {
    redirect_uris: [`http://localhost:${port}/login/upstream/work/callback`],
    token_endpoint_auth_method: 'client_secret_basic',
  })
  const upstreams = [upstreamOf(t, upstream.issuer, { clientId, secret })]
  const server = await startServer(t, { mode: 'dev', port, upstreams })
  const client = await register(server)

  const [here, there] = [new UserAgent(server.issuer), new UserAgent(upstream.issuer)]
  const page = await openAccount(server, here)
  const away = locationOf(await here.submit(page, { link: 'work' }, page.forms.at(-1)))
  const callback = await signInAndApprove(there, await there.open(away.href), { user: alice })
  t.match(textOf(pageOf(await here.open(callback.href))), 'Remove link')
  t.equal((await eventsOf(server, 'upstream-linked')).length, 1)

  const fresh = new UserAgent(server.issuer)
  const back = await there.open((await goAway(fresh, authorizationUrl(server, client))).href)
  const location = await signInAndApprove(there, back)
  const code = await signInAndApprove(fresh, await fresh.open(location.href))
  const tokens = (await (
    await exchange(server, client, code.searchParams.get('code') ?? '')
  ).json()) as Tokens
  const { sub } = JSON.parse(Buffer.from(tokens.id_token.split('.')[1] ?? '', 'base64url').toString())
  const known = await server.deps.store.find('userByLogin', 'bob')
  t.equal(
    sub,
    known?.id,
    'alice there is bob here, who linked her: that alice here has her address means nothing',
  )
  t.match((await eventsOf(server, 'sign-in')).at(-1)?.facts, { upstream: 'work', methods: '' })
})

t.test(
  '[oidc-core-5.7-rp-user-key] no email address leads to a user, and one is believed only of an authority',
  async (t) => {
    const cases = [
      ['off', {}, /is not linked to an account here/],
      ['domain', { email: 'ann@other.example' }, /is not linked/],
      ['domain', { email_verified: false }, /is not linked/],
      ['domain', { email_verified: 'true' }, /is not linked/],
      ['domain', { email: 'ann@example.com@other.example' }, /is not linked/],
      ['domain', { email: 'ann@example\u3002com' }, /is not linked/],
      ['domain', { email: 'ann@ｅxample.com' }, /is not linked/],
      ['domain', { email: 'alice@example.test' }, /already exists here/],
      ['any', { email: 'alice@example.test' }, /already exists here/],
      ['domain', {}, /value="approve"/, 'ann@example.com'],
      ['any', { email: 'bob@example.test', email_verified: false }, /value="approve"/, 'none'],
      ['any', { email: 'bob@other.example', preferred_username: 'bob' }, /value="approve"/, 'none'],
    ] as const
    const failures = { off: 0, domain: 0, any: 0 }
    const names = ['work-bob', 'work-bob-2']
    const domains = ['example.com', 'example.test']
    const started = async (firstSignIn: 'off' | 'domain' | 'any') =>
      startWithUpstream(t, { firstSignIn, domains })
    const servers = { off: await started('off'), domain: await started('domain'), any: await started('any') }
    for (const [firstSignIn, said, expected, email] of cases) {
      const { upstream, server, client } = servers[firstSignIn]
      const claims = { sub: randomUUID(), ...said }
      const before = (await server.deps.store.list('user')).map(({ id }) => id)
      upstream.says = { claims }
      const here = new UserAgent(server.issuer)
      const page = pageOf(
        await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client)))),
      )
      const what = `${firstSignIn} ${JSON.stringify(claims)}`
      t.match(textOf(page), expected, what)
      const added = (await server.deps.store.list('user')).filter(({ id }) => !before.includes(id))
      t.strictSame(
        added.map((user) => user.email ?? 'none'),
        email === undefined ? [] : [email],
        what,
      )
      if (email === 'none')
        t.equal(added[0]?.username, names.shift(), 'its user name is none of another user')
      if (email === undefined) failures[firstSignIn] += 1
      t.equal((await eventsOf(server, 'sign-in-failed')).length, failures[firstSignIn])
    }
  },
)

t.test('a link goes with its user and stays with its sub, whatever the address becomes', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t, {
    firstSignIn: 'domain',
    domains: ['example.com'],
  })
  const signIn = async (claims: Record<string, unknown>) => {
    upstream.says = { claims }
    const here = new UserAgent(server.issuer)
    const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
    await here.open(back)
    return (await eventsOf(server, 'sign-in')).at(-1)?.userId
  }
  const first = await signIn({})
  t.equal(await signIn({ email: 'other@other.example' }), first)
  t.equal(
    await signIn({ sub: 'another' }),
    first,
    'another user with the address of the first is not signed in',
  )
  t.equal((await eventsOf(server, 'sign-in')).length, 2)
  const user = await server.deps.store.find('user', first ?? '')
  if (user === undefined) throw new Error('the user is there')
  await server.deps.store.write({ op: 'update', kind: 'user', record: { ...user, lockedAt: server.now() } })
  await signIn({})
  t.equal((await eventsOf(server, 'sign-in')).length, 2, 'a locked user is not signed in')
})

t.test(
  'groups there give the groups that the operator names, at each sign-in, and take none that an operator gave',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t, {
      firstSignIn: 'any',
      groupsClaim: 'roles',
      groups: { teachers: 'Staff', cooks: 'Kitchen', ghosts: 'No such group' },
    })
    const { store, random } = server.deps
    const operator = { by: 'operator', at: server.now() } as const
    const create = (name: string) =>
      changeGroups(store, (groups) => createGroup(groups, { name }, random(16), operator))
    const staff = await create('Staff')
    const kitchen = await create('Kitchen')
    await create('constructor')
    const signIn = async (says: StandInUpstream['says']) => {
      upstream.says = says
      const here = new UserAgent(server.issuer)
      const page = pageOf(
        await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client)))),
      )
      t.match(page.html, 'value="approve"')
      const { userId = '' } = (await eventsOf(server, 'sign-in')).at(-1) ?? {}
      const names = (await groupsOf(store, userId)).map(({ name }) => name).toSorted()
      return { userId, names, here }
    }
    const inToken = await signIn({ claims: { roles: ['teachers', 'Kitchen', 'constructor', 7, 'ghosts'] } })
    t.strictSame(inToken.names, ['Staff'], 'by the names of the mapping alone')
    const { userId } = inToken
    t.match((await store.audit({ since: 0, name: 'group-member-added', limit: 9 })).at(-1)?.facts, {
      group: staff.id,
      upstream: upstream.issuer,
    })
    t.strictSame((await signIn({ userInfo: { roles: ['teachers', 'cooks'] } })).names, ['Kitchen', 'Staff'])
    await addToGroup(store, kitchen, userId, operator)
    t.strictSame(
      (await signIn({ claims: { groups: ['teachers'] } })).names,
      ['Kitchen'],
      'by that claim alone',
    )
    t.strictSame((await signIn({ claims: { roles: 'teachers' } })).names, ['Kitchen', 'Staff'])

    const { here } = await signIn({ claims: { roles: 'teachers', auth_time: server.now() } })
    const user = await store.find('user', userId)
    const { passwordHash = '' } = (await store.find('userByLogin', 'bob')) ?? {}
    if (user === undefined) throw new Error('the user is there')
    await store.write({ op: 'update', kind: 'user', record: { ...user, passwordHash } })
    const page = pageOf(await here.open(`${server.issuer}/account/upstreams`))
    const [form] = page.forms
    await here.submit(page, { unlink: form?.buttons[0]?.value ?? '' }, form)
    t.equal((await eventsOf(server, 'upstream-unlinked')).length, 1)
    t.strictSame(
      (await groupsOf(store, userId)).map(({ name }) => name),
      ['Kitchen'],
      'what a link gave goes with it',
    )
  },
)

t.test(
  'another language of a page that a used response led to is that of the page to go on with',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t)
    const here = new UserAgent(server.issuer)
    const failed = pageOf(
      await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client)))),
    )
    const shown = pageOf(await here.submit(failed, { language: 'de' }, failed.languageForm))
    t.equal(shown.status, 200)
    t.match(shown.html, 'Mit <bdi>Work</bdi> anmelden')
  },
)

t.test('a session that began at an upstream ends after its maxAgeSeconds', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t, {
    firstSignIn: 'any',
    maxAgeSeconds: 3600,
  })
  const here = new UserAgent(server.issuer)
  await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client))))
  const asked = async () => pageOf(await here.open(authorizationUrl(server, client))).html
  server.advance(3500)
  t.match(await asked(), 'value="approve"')
  server.advance(200)
  t.match(await asked(), '/login/upstream/work', 'another round trip')
})

t.test('one way to sign in stays, and a link that is removed signs no one in', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
  const here = new UserAgent(server.issuer)
  const now = Math.floor(Date.now() / 1000)
  upstream.says = { claims: { auth_time: now } }
  const account = upstream.respondTo(await goAway(here, `${server.issuer}/account/upstreams`))
  const page = pageOf(await here.open(account))
  const [form] = page.forms
  const [button] = form?.buttons ?? []
  const last = pageOf(await here.submit(page, { unlink: button?.value ?? '' }, form))
  t.match(textOf(last), 'Work is your only way to sign in')

  const id = (await eventsOf(server, 'sign-in')).at(-1)?.userId ?? ''
  const user = await server.deps.store.find('user', id)
  if (user === undefined) throw new Error('the user is there')
  const { passwordHash = '' } = (await server.deps.store.find('userByLogin', 'bob')) ?? {}
  await server.deps.store.write({ op: 'update', kind: 'user', record: { ...user, passwordHash } })
  const other = new UserAgent(server.issuer)
  await other.open(upstream.respondTo(await goAway(other, `${server.issuer}/account`)))
  t.equal((await server.deps.store.listOf('session', id)).length, 2)
  const done = pageOf(await here.submit(page, { unlink: button?.value ?? '' }, form))
  t.match(textOf(done), 'It no longer signs you in')
  t.equal(
    (await server.deps.store.listOf('session', id)).length,
    1,
    'sessions that may have begun with it end',
  )
  t.equal((await eventsOf(server, 'upstream-unlinked')).length, 1)
  await other.open(upstream.respondTo(await goAway(other, authorizationUrl(server, client))))
  t.not((await eventsOf(server, 'sign-in')).at(-1)?.userId, undefined)
  t.not((await eventsOf(server, 'sign-in')).at(-1)?.userId, id)
})

t.test('what came through an upstream ends at the next refresh once it is disabled', async (t) => {
  const [port, store] = [await freePort(), `sqlite:${join(newFolder(t), 'lychgate.db')}`]
  const upstream = await startStandInUpstream(t)
  const config = upstreamOf(t, upstream.issuer, { firstSignIn: 'any' })
  const server = await startServer(t, { mode: 'dev', port, store, upstreams: [config] })
  const client = await register(server)
  const tokensOf = async (here: UserAgent, url: string) => {
    const location = await signInAndApprove(here, await here.open(url))
    const response = await exchange(server, client, location.searchParams.get('code') ?? '')
    return (await response.json()) as Tokens
  }
  const here = new UserAgent(server.issuer)
  const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
  const through = await tokensOf(here, back)
  const other = new UserAgent(server.issuer)
  await other.open(upstream.respondTo(await goAway(other, authorizationUrl(server, client))))
  const beside = await tokensOf(new UserAgent(server.issuer), authorizationUrl(server, client))
  const again = (await (await refresh(server, client, through.refresh_token)).json()) as Tokens
  t.type(again.refresh_token, 'string')
  await server.close()

  for (const [upstreams, stale] of [
    [[{ ...config, enabled: false }], here],
    [[], other],
  ] as const) {
    const after = await startServer(t, { mode: 'dev', port, store, upstreams: [...upstreams] })
    const rejected = await refresh(after, client, again.refresh_token)
    t.equal(rejected.status, 400)
    t.match(await rejected.json(), { error: 'invalid_grant' })
    const page = pageOf(await stale.open(authorizationUrl(after, client)))
    t.match(page.html, 'name="password"', 'a session that began there has ended')
    if (upstreams.length > 0) {
      t.equal((await refresh(after, client, beside.refresh_token)).status, 200, 'other grants stay')
      const login = pageOf(await new UserAgent(after.issuer).open(authorizationUrl(after, client)))
      t.notMatch(login.html, '/login/upstream')
      t.equal((await fetch(`${after.issuer}/login/upstream/work/callback?state=x`)).status, 404)
    }
    await after.close()
  }
})

t.test(
  'a second factor of the user here is asked for, unless the operator accepts that of the upstream',
  async (t) => {
    const sub = '248289761001'
    for (const multiFactor of ['ignore', 'accept'] as const) {
      const { upstream, server, client } = await startWithUpstream(t, { multiFactor })
      const { store, keys } = server.deps
      const userId = (await store.find('userByLogin', 'bob'))?.id ?? ''
      const context = { by: 'user', at: server.now() } as const
      await store.write(
        ...insertUpstreamLink({ userId, issuer: upstream.issuer, sub }, 'Work', context),
        put(secondFactorKind, {
          userId,
          sealedSecret: keys.seal(Buffer.alloc(20, 1), userId, secondFactorKind),
          recoveryHashes: [hashRecoveryCode('7k2m-9xqd-0hjp-c4te')],
          createdAt: context.at,
          confirmedAt: context.at,
        }),
      )
      upstream.says = { claims: { amr: ['pwd', 'mfa'] } }
      const here = new UserAgent(server.issuer)
      const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
      const page = pageOf(await here.open(back))
      const isAsked = multiFactor === 'ignore'
      t.equal(here.cookie('session') === undefined, isAsked, multiFactor)
      if (isAsked) {
        const recovery = pageOf(await here.open(`${page.url}&recovery=1`))
        await here.submit(recovery, { code: '7k2m-9xqd-0hjp-c4te', decision: 'recovery' }, recovery.forms[0])
      }
      const methods = isAsked ? 'otp mfa' : 'mfa'
      t.match((await eventsOf(server, 'sign-in')).at(-1)?.facts, { methods, upstream: 'work' })
      t.equal((await store.listOf(signInElsewhereKind, userId)).length, 1)
    }
  },
)

t.test('a link that is removed before the second factor signs no one in', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t)
  const { store } = server.deps
  const userId = (await store.find('userByLogin', 'bob'))?.id ?? ''
  const context = { by: 'user', at: server.now() } as const
  const hash = hashRecoveryCode('7k2m-9xqd-0hjp-c4te')
  const codes = { userId, sealedSecret: '', recoveryHashes: [hash], createdAt: 0, confirmedAt: 1 }
  const owned = { userId, issuer: upstream.issuer, sub: '248289761001' }
  await store.write(...insertUpstreamLink(owned, 'Work', context), put(secondFactorKind, codes))
  const here = new UserAgent(server.issuer)
  const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
  const page = pageOf(await here.open(back))
  const recovery = pageOf(await here.open(`${page.url}&recovery=1`))
  await store.write(remove(upstreamLinkKind, upstreamLinkId(owned.issuer, owned.sub)))
  const rejected = pageOf(
    await here.submit(recovery, { code: '7k2m-9xqd-0hjp-c4te', decision: 'recovery' }, recovery.forms[0]),
  )
  t.equal(rejected.status, 403)
  t.equal(here.cookie('session'), undefined)
})

t.test(
  '[oidc-core-5.3.2-rp-sub] UserInfo is asked only for what was requested and is not in the ID Token',
  async (t) => {
    for (const [change, status] of [
      [{ scope: 'openid' }, 200],
      [{ scope: 'openid email' }, 400],
      [{ scope: 'openid profile' }, 400],
      [{ scope: 'openid', groups: { teachers: 'Staff' } }, 400],
    ] as const) {
      const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any', ...change })
      // UserInfo of another user ends the sign-in.
      upstream.says = { claims: { name: undefined, email: undefined }, userInfo: { sub: 'another' } }
      const here = new UserAgent(server.issuer)
      const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
      t.equal(pageOf(await here.open(back)).status, status, JSON.stringify(change))
    }
  },
)
