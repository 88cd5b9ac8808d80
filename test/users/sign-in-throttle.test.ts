import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import type { User } from '../../src/domain/model.ts'
import { systemRandom } from '../../src/system/system.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { hashPassword } from '../../src/users/passwords.ts'
import { failuresOf, throttleKind } from '../../src/users/rules/throttle.ts'
import { changePassword, createUser, unlockUser } from '../../src/users/rules/user.ts'
import { ask, bodyOf, pageOf, place, signedIn, title } from '../helpers/authorization.ts'
import { register, type TestClient } from '../helpers/flow.ts'
import { alice, bob, startServer, type TestServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const limits = {
  failuresPerAccountAndPrefix: 3,
  failuresPerPrefix: 100,
  failuresPerAccount: 100,
  windowSeconds: 900,
}
const server = await startServer(t, { signInThrottle: limits })
const client = await register(server)
const wide = await startServer(t)
const wideClient = await register(wide)
const spraying = await startServer(t, { signInThrottle: { ...limits, failuresPerPrefix: 5 } })
const sprayingClient = await register(spraying)
const narrow = await startServer(t, { passwordQueue: 1 })
const narrowClient = await register(narrow)
const limited = await startServer(t, { rateLimits: 'on', requestsPerMinute: { signIn: 4 } })
const limitedClient = await register(limited)

const proxied = await startServer(t, {
  signInThrottle: { ...limits, failuresPerAccount: 5 },
  trustProxy: ['127.0.0.1', '::1'],
})
const proxiedClient = await register(proxied)

/** A sign-in page in a browser, and a function that submits it. */
async function door(at: TestServer, who: TestClient, agent = new UserAgent(at.issuer)) {
  const page = pageOf(await ask(at, who, { prompt: 'login' }, agent))
  const knock = (username: string, password: string): Promise<Landing> =>
    agent.submit(page, { username, password })
  return { agent, page, knock }
}

function statusOf(landing: Landing): number {
  return pageOf(landing).status
}

function assertThrottled(t: Test, page: Page): void {
  t.equal(page.status, 429)
  const seconds = Number(page.headers.get('retry-after'))
  t.ok(seconds > 0 && seconds <= 900, `Retry-After ${seconds}`)
  t.match(page.html, /Too many failed attempts\. Try again in \d+ minutes/)
}

t.test(
  'after too many failures the response is 429 with Retry-After, and even the right password is not checked',
  async (t) => {
    const { knock } = await door(server, client)
    for (let attempt = 0; attempt < 3; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
    assertThrottled(t, pageOf(await knock('alice', 'wrong')))
    assertThrottled(t, pageOf(await knock('alice', alice.password)))
    t.equal(
      place(await (await door(server, client)).knock('bob', bob.password)),
      '/consent',
      'others sign in',
    )
  },
)

t.test(
  'neither case, spaces, an email address, another spelling nor a forged address makes a new count',
  async (t) => {
    const spellings = ['ALICE', ' alice ', 'alice@example.test', 'Alice@Example.Test', 'ａｌｉｃｅ']
    for (const [index, spelling] of spellings.entries()) {
      const { agent, page } = await door(server, client)
      for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'client-ip', 'true-client-ip']) {
        const body = bodyOf(page)
        body.set('username', spelling)
        body.set('password', alice.password)
        const address = `203.0.${index}.7`
        const response = await agent.send(`${server.issuer}/login`, {
          method: 'POST',
          body,
          headers: { [name]: name === 'forwarded' ? `for=${address}` : address },
        })
        t.equal(response.status, 429, `${spelling} with ${name}`)
      }
    }
  },
)

t.test(
  'a browser that the user signed in with before is not locked out by guesses from elsewhere',
  async (t) => {
    const known = await signedIn(wide, wideClient)
    const guessers = await Promise.all(Array.from({ length: 12 }, () => door(wide, wideClient)))
    for (const { knock } of guessers) await knock('alice', 'wrong')
    t.equal(statusOf(await (await door(wide, wideClient)).knock('alice', alice.password)), 429)
    const { knock } = await door(wide, wideClient, known)
    t.equal(place(await knock('alice', alice.password)), '/consent')
    // Its cookie applies to that user only, and has its own count.
    for (let attempt = 0; attempt < 10; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
    t.equal(statusOf(await knock('alice', alice.password)), 429)
  },
)

t.test(
  'a known-browser cookie that is invented, altered or of another user makes no new count',
  async (t) => {
    const genuine = (await signedIn(server, client, bob)).cookie('device') ?? ''
    const [user = '', nonce = '', mac = ''] = genuine.split('.')
    t.match(genuine, /^user_[\w-]+\.[\w-]{22}\.[\w-]{43}$/)
    const sub = (await server.deps.store.find('userByLogin', 'alice'))?.id ?? ''
    const cookies = [
      `${sub}.${nonce}.${mac}`,
      `${sub}.${'A'.repeat(22)}.${'A'.repeat(43)}`,
      `${sub}.${nonce}.${mac.slice(0, -1)}`,
      `${user}.${nonce}.${mac}`,
      sub,
    ]
    for (const cookie of cookies) {
      const { agent, knock } = await door(server, client)
      agent.setCookie('device', cookie)
      t.equal(statusOf(await knock('alice', alice.password)), 429, cookie)
    }
  },
)

t.test('of 40 simultaneous guesses only as many are checked as the limit allows', async (t) => {
  const doors = await Promise.all(Array.from({ length: 40 }, () => door(wide, wideClient)))
  const landings = await Promise.all(doors.map(({ knock }, index) => knock('bob', `guess ${index}`)))
  const statuses = landings.map(statusOf)
  t.equal(statuses.filter((status) => status === 400).length, 10)
  t.equal(statuses.filter((status) => status === 429).length, 30)
})

t.test('behind a trusted proxy the forwarded address counts, by its network', async (t) => {
  const attempt = async (address: string) => {
    const { agent, page } = await door(proxied, proxiedClient)
    const body = bodyOf(page)
    body.set('username', 'alice')
    body.set('password', 'wrong')
    const headers = { 'x-forwarded-for': `198.51.100.1, ${address}` }
    return (await agent.send(`${proxied.issuer}/login`, { method: 'POST', body, headers })).status
  }
  for (const address of ['203.0.113.7', '203.0.113.8', '203.0.113.9']) t.equal(await attempt(address), 400)
  t.equal(await attempt('203.0.113.10'), 429, 'the same network')
  t.equal(await attempt('203.0.112.10'), 400, 'another network')
  t.equal(await attempt('203.0.111.10'), 400, 'the fifth for this account')
  t.equal(await attempt('203.0.110.10'), 429, 'guesses from everywhere count together')
})

t.test('an unknown user name is throttled like any other', async (t) => {
  const { knock } = await door(server, client)
  const statuses: number[] = []
  for (let attempt = 0; attempt < 4; attempt += 1) statuses.push(statusOf(await knock('nobody', 'wrong')))
  t.same(statuses, [400, 400, 400, 429])
})

t.test('a successful sign-in is not counted and resets nothing', async (t) => {
  const statuses: string[] = []
  for (const password of [
    'wrong',
    bob.password,
    bob.password,
    'wrong',
    bob.password,
    'wrong',
    bob.password,
  ]) {
    const landing = await (await door(server, client)).knock('bob', password)
    statuses.push(landing.at === 'page' ? `${landing.page.status} ${place(landing)}` : '')
  }
  const [failed, passed] = ['400 /login', '200 /consent']
  t.same(statuses, [failed, passed, passed, failed, passed, failed, '429 /login'])
})

t.test('rejected attempts that were not checked do not count for their network', async (t) => {
  const { knock } = await door(spraying, sprayingClient)
  for (let attempt = 0; attempt < 8; attempt += 1) await knock('alice', 'wrong')
  t.equal(place(await (await door(spraying, sprayingClient)).knock('bob', bob.password)), '/consent')
  // Three failures of one name count once, and bob raises the limit by two.
  const names = ['one', 'two', 'three', 'four', 'five', 'six']
  for (const name of names) t.equal(statusOf(await knock(name, 'wrong')), 400)
  const full = pageOf(await knock('seven', 'wrong'))
  t.equal(full.status, 429)
  t.ok(Number(full.headers.get('retry-after')) > 0)
  t.match(
    full.html,
    /Too many failed attempts from your network\. Try again in \d+ (second|minute|hour)s?\. Until then you can use a browser/,
  )
})

t.test('the limit of a network grows with the number of users who sign in from it', async (t) => {
  const school = await startServer(t, {
    signInThrottle: { ...limits, failuresPerPrefix: 4, failuresPerPrefixAndUser: 3 },
  })
  const schoolClient = await register(school)
  const fails = async (from: number, to: number) => {
    for (let pupil = from; pupil < to; pupil += 1) {
      const { knock } = await door(school, schoolClient)
      t.equal(statusOf(await knock(`pupil-${pupil}`, 'wrong')), 400, `pupil-${pupil}`)
    }
  }
  await fails(0, 4)
  const late = await door(school, schoolClient)
  t.equal(statusOf(await late.knock('alice', alice.password)), 429, 'no user signed in from there before')
  school.advance(limits.windowSeconds)
  for (const user of [alice, bob, alice]) await signedIn(school, schoolClient, user)
  const week = 7 * 86_400
  school.advance(week)
  await fails(10, 20)
  const twentieth = await door(school, schoolClient)
  t.equal(statusOf(await twentieth.knock('pupil-20', 'wrong')), 429)
  school.advance(2 * week)
  await fails(30, 34)
  const after = await door(school, schoolClient)
  t.equal(statusOf(await after.knock('pupil-34', 'wrong')), 429, 'users who stay away make no room')
})

t.test('a browser keeps its cookie, and its count, from sign-in to sign-in', async (t) => {
  const own = await startServer(t, { signInThrottle: limits })
  const ownClient = await register(own)
  const agent = await signedIn(own, ownClient)
  const cookie = agent.cookie('device')
  const { knock } = await door(own, ownClient, agent)
  for (const status of [400, 400]) t.equal(statusOf(await knock('alice', 'wrong')), status)
  t.equal(place(await knock('alice', alice.password)), '/consent')
  t.equal(agent.cookie('device'), cookie)
  const again = await door(own, ownClient, agent)
  t.equal(statusOf(await again.knock('alice', 'wrong')), 400)
  t.equal(statusOf(await again.knock('alice', 'wrong')), 429, 'a success opens no new count')
})

t.test('known browsers of one user share a count, and none is known after a new password', async (t) => {
  const own = await startServer(t, { signInThrottle: limits })
  const ownClient = await register(own)
  const { store } = own.deps
  const agents: UserAgent[] = []
  for (let browser = 0; browser < 6; browser += 1) agents.push(await signedIn(own, ownClient))
  const guess = async () => {
    const statuses: number[] = []
    for (const agent of agents) {
      const { knock } = await door(own, ownClient, agent)
      for (let n = 0; n < 3; n += 1) statuses.push(statusOf(await knock('alice', 'wrong')))
    }
    return statuses.filter((status) => status === 400).length
  }
  t.equal(await guess(), 2 * limits.failuresPerAccountAndPrefix)
  own.advance(limits.windowSeconds)
  const passwordHash = await hashPassword('another-in-tests', systemRandom)
  const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
  await store.transact('user', id, (user) =>
    changePassword(user as User, passwordHash, { by: 'operator', at: own.now() }),
  )
  t.equal(await guess(), limits.failuresPerAccountAndPrefix, 'as many as for a stranger')
})

t.test('known-browser cookies of an earlier version are still accepted, and share one count', async (t) => {
  const own = await startServer(t, { signInThrottle: limits })
  const ownClient = await register(own)
  const { store, keys } = own.deps
  const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const stranger = await door(own, ownClient)
  for (let n = 0; n < 3; n += 1) await stranger.knock('alice', 'wrong')
  t.equal(statusOf(await stranger.knock('alice', alice.password)), 429)
  const earlier = async (email: string) => {
    const nonce = email.repeat(22)
    const mac = createHmac('sha256', keys.handles.current.secret).update(`device ${id} ${nonce}`)
    const agent = new UserAgent(own.issuer)
    agent.setCookie('device', `${id}.${nonce}.${mac.digest('base64url')}`)
    return door(own, ownClient, agent)
  }
  const [one, two] = [await earlier('a'), await earlier('b')]
  for (const { knock } of [one, two]) t.equal(statusOf(await knock('alice', 'wrong')), 400)
  t.equal(place(await one.knock('alice', alice.password)), '/consent')
  t.equal(statusOf(await two.knock('alice', 'wrong')), 400)
  t.equal(statusOf(await two.knock('alice', alice.password)), 429)
  const { knock } = await door(own, ownClient, one.agent)
  t.equal(place(await knock('alice', alice.password)), '/consent', 'the sign-in gave it one of its own')
})

t.test('consecutive failures require another way to sign in, and do not lock the user', async (t) => {
  const own = await startServer(t, { signInThrottle: { ...limits, failuresInARow: 4 } })
  const ownClient = await register(own)
  const { store } = own.deps
  const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const known = await signedIn(own, ownClient)
  const guess = async (times: number) => {
    for (let n = 0; n < times; n += 1) {
      const { knock } = await door(own, ownClient)
      t.equal(statusOf(await knock('alice', 'wrong')), 400)
    }
  }
  const knock = async (agent?: UserAgent) => {
    const landing = await (await door(own, ownClient, agent)).knock('alice', alice.password)
    return `${landing.at === 'page' ? landing.page.status : ''} ${place(landing)}`
  }
  const [passed, stopped] = ['200 /consent', '429 /login']
  const fill = async () => {
    await guess(3)
    own.advance(limits.windowSeconds)
    await guess(1)
    own.advance(limits.windowSeconds)
  }
  await guess(3)
  own.advance(limits.windowSeconds)
  t.equal(await knock(), passed, 'the fourth is right')
  await fill()
  own.advance(30 * 86_400)
  const page = pageOf(await (await door(own, ownClient)).knock('alice', alice.password))
  t.equal(page.status, 429)
  t.match(page.html, /Too many failed attempts in a row\. Use a passkey/)
  t.equal(page.headers.get('retry-after'), null, 'waiting does not help')
  const events = await store.audit({ since: 0, name: 'sign-in-failed', limit: 99 })
  const told = events.filter(({ facts }) => 'failuresInARow' in facts)
  t.match(told, [{ by: 'server', userId: id, facts: { failuresInARow: 4 } }])
  t.equal(told.length, 1)
  t.equal(await knock(known), passed, 'a known browser goes on')
  t.equal(await knock(), passed, 'and its right sign-in begins a new row')
  await fill()
  t.equal(await knock(), stopped)
  await store.transact('user', id, (user) => unlockUser(user as User, { by: 'operator', at: own.now() }))
  t.equal(await knock(), passed, 'an operator ends it')
  await fill()
  t.equal(await knock(), stopped)
  const { passwordHash = '' } = (await store.find('user', id)) ?? {}
  await store.transact('user', id, (user) =>
    changePassword(user as User, passwordHash, { by: 'operator', at: own.now() }),
  )
  t.equal(await knock(), passed, 'so does a new password, as by a reset link')
})

t.test(
  'a password and a user name are right on every keyboard, and a wrong password counts once',
  async (t) => {
    const own = await startServer(t, { signInThrottle: limits })
    const ownClient = await register(own)
    const { store, random } = own.deps
    const passwordHash = await hashPassword('Pässwörter 1', systemRandom)
    const user = createUser({ username: 'student42', passwordHash }, random(16), own.now())
    await store.write(insert('user', user))
    for (const [name, password] of [
      ['student42', 'Pässwörter 1'],
      ['Student٤٢ ', 'Pässwörter 1'.normalize('NFD')],
      ['ｓｔｕｄｅｎｔ４２', 'Pässwörter\u00a01'],
    ] as const)
      t.equal(place(await (await door(own, ownClient)).knock(name, password)), '/consent', name)
    const { knock } = await door(own, ownClient)
    for (let n = 0; n < 3; n += 1) {
      const wrong = await knock('student٤٢', 'wrong\u00a0o\u0308ne')
      t.equal(statusOf(wrong), 400)
    }
    t.equal((await store.find(throttleKind, failuresOf(user.id, 'all')))?.failures, 3)
    t.equal(statusOf(await knock('student42', 'Pässwörter 1')), 429, 'the same count for each spelling')
  },
)

t.test('an operator, or a new password by a link, ends every wait of that user, and no other', async (t) => {
  const own = await startServer(t, { signInThrottle: limits })
  const ownClient = await register(own)
  const { config, store, random } = own.deps
  const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const knows = await signedIn(own, ownClient)
  const knock = async (password: string, agent?: UserAgent, name = 'alice') => {
    const landing = await (await door(own, ownClient, agent)).knock(name, password)
    return landing.at === 'page' ? `${landing.page.status} ${place(landing)}` : place(landing)
  }
  const [passed, wrong, stopped] = ['200 /consent', '400 /login', '429 /login']
  const fill = async () => {
    for (const agent of [undefined, knows]) {
      for (let n = 0; n < 3; n += 1) t.equal(await knock('wrong', agent), wrong)
      t.equal(await knock(alice.password, agent), stopped)
    }
  }
  for (let n = 0; n < 3; n += 1) await knock('wrong', undefined, 'bob')
  const ofNetworks = async () =>
    (await store.listFrom(throttleKind, { prefix: 'prefix ', limit: 9 })).map(({ failures }) => failures)
  await fill()
  const network = await ofNetworks()
  t.ok(network[0])
  await store.transact('user', id, (user) => unlockUser(user as User, { by: 'operator', at: own.now() }))
  t.strictSame(await ofNetworks(), network, 'the failures of the network stay')
  t.equal(await knock(alice.password, undefined, 'bob'), stopped, 'and those of other users')
  t.equal(await knock(alice.password, knows), passed)
  t.equal(await knock(alice.password), passed)
  await fill()
  const link = await makeLink(
    { config, store, random },
    { purpose: 'password-reset', userId: id },
    { by: 'operator', at: own.now() },
  )
  const agent = new UserAgent(own.issuer)
  const password = 'another-in-tests'
  const done = await agent.submit(pageOf(await agent.open(link.url)), { password, repeated: password })
  t.match(pageOf(done).url, /done=password/)
  t.equal(await knock(password), passed)
  t.equal(await knock(password, knows), passed)
})

t.test(
  'when too many passwords wait to be checked the response is 503, and no attempt is counted',
  async (t) => {
    const { store } = narrow.deps
    const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
    const hash = await hashPassword(alice.password, systemRandom)
    await store.transact('user', id, (user) =>
      changePassword(user as User, hash, { by: 'operator', at: narrow.now() }),
    )
    const doors = await Promise.all(Array.from({ length: 9 }, () => door(narrow, narrowClient)))
    for (const round of [1, 2]) {
      const landings = await Promise.all(doors.map(({ knock }) => knock('alice', 'wrong')))
      const busy = landings.map(pageOf).filter(({ status }) => status !== 400)
      t.ok(busy.length > 2, `round ${round}`)
      if (round === 1) {
        for (const page of busy) {
          t.equal(page.status, 503)
          t.ok(Number(page.headers.get('retry-after')) > 0)
          t.match(page.html, 'Too many people are signing in')
          t.match(page.html, 'name="password"')
        }
      }
    }
    t.equal(place(await (await door(narrow, narrowClient)).knock('alice', alice.password)), '/consent')
  },
)

t.test('too many sign-in requests from one network get a page with 429', async (t) => {
  const { knock } = await door(limited, limitedClient)
  for (let attempt = 0; attempt < 4; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
  const page = pageOf(await knock('alice', alice.password))
  t.equal(page.status, 429)
  t.ok(Number(page.headers.get('retry-after')) > 0)
  t.match(page.headers.get('content-type'), 'text/html')
  t.match(title(page), 'Too many attempts')
})

t.test('when the window is over the right password works again, on the page that was open', async (t) => {
  const { knock } = await door(server, client)
  t.equal(statusOf(await knock('alice', alice.password)), 429)
  server.advance(limits.windowSeconds)
  t.equal(place(await knock('alice', alice.password)), '/consent')
})

t.test(
  'the window of failed attempts starts with the first of them, and each window starts from zero',
  async (t) => {
    const own = await startServer(t, { signInThrottle: limits })
    const ownClient = await register(own)
    const { knock } = await door(own, ownClient)
    for (const seconds of [400, 400, 0]) {
      t.equal(statusOf(await knock('alice', 'wrong')), 400)
      own.advance(seconds)
    }
    const early = pageOf(await knock('alice', alice.password))
    assertThrottled(t, early)
    t.ok(Number(early.headers.get('retry-after')) <= 100, 'from the first')
    own.advance(90)
    t.equal(statusOf(await knock('alice', alice.password)), 429)
    own.advance(10)
    for (let attempt = 0; attempt < 3; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
    const again = pageOf(await knock('alice', alice.password))
    assertThrottled(t, again)
    t.ok(Number(again.headers.get('retry-after')) > 890, 'a whole window')
  },
)

t.test(
  'a window opened by a clock that ran ahead locks no user out once the clock is corrected',
  async (t) => {
    const own = await startServer(t, { signInThrottle: limits })
    const ownClient = await register(own)
    const ahead = 100_000
    own.advance(ahead)
    const early = await door(own, ownClient)
    for (let attempt = 0; attempt < 3; attempt += 1)
      t.equal(statusOf(await early.knock('alice', 'wrong')), 400)
    assertThrottled(t, pageOf(await early.knock('alice', alice.password)))
    own.advance(-ahead)
    const { knock } = await door(own, ownClient)
    t.equal(place(await knock('alice', alice.password)), '/consent')
  },
)
