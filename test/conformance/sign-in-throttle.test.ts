import t, { type Test } from 'tap'
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

/** A sign-in page in a browser, and a way to answer it. */
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
  'failed attempts are answered 429 with Retry-After, and the right password is not looked at any more',
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
  'neither case, spaces, an e-mail address, another spelling nor a forged address makes a new count',
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
  'a browser that the account was signed in to before is not locked out by guesses from elsewhere',
  async (t) => {
    const known = await signedIn(wide, wideClient)
    const guessers = await Promise.all(Array.from({ length: 12 }, () => door(wide, wideClient)))
    for (const { knock } of guessers) await knock('alice', 'wrong')
    t.equal(statusOf(await (await door(wide, wideClient)).knock('alice', alice.password)), 429)
    const { knock } = await door(wide, wideClient, known)
    t.equal(place(await knock('alice', alice.password)), '/consent')
    // Its cookie helps with that account only, and has its own count.
    for (let attempt = 0; attempt < 10; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
    t.equal(statusOf(await knock('alice', alice.password)), 429)
  },
)

t.test('a device cookie that was made up, altered or is of another account opens no new count', async (t) => {
  const genuine = (await signedIn(server, client, bob)).cookies.get('lychgate_device') ?? ''
  const [account = '', nonce = '', mac = ''] = genuine.split('.')
  t.match(genuine, /^person_[\w-]+\.[\w-]{22}\.[\w-]{43}$/)
  const sub = (await server.deps.store.find('accountByLogin', 'alice'))?.id ?? ''
  const cookies = [
    `${sub}.${nonce}.${mac}`,
    `${sub}.${'A'.repeat(22)}.${'A'.repeat(43)}`,
    `${sub}.${nonce}.${mac.slice(0, -1)}`,
    `${account}.${nonce}.${mac}`,
    sub,
  ]
  for (const cookie of cookies) {
    const { agent, knock } = await door(server, client)
    agent.cookies.set('lychgate_device', cookie)
    t.equal(statusOf(await knock('alice', alice.password)), 429, cookie)
  }
})

t.test('of 40 guesses at once only as many are looked at as the limit allows', async (t) => {
  const doors = await Promise.all(Array.from({ length: 40 }, () => door(wide, wideClient)))
  const landings = await Promise.all(doors.map(({ knock }, index) => knock('bob', `guess ${index}`)))
  const statuses = landings.map(statusOf)
  t.equal(statuses.filter((status) => status === 400).length, 10)
  t.equal(statuses.filter((status) => status === 429).length, 30)
})

t.test('behind a proxy that is trusted the address it names counts, by its network', async (t) => {
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

t.test('a name nobody has is throttled like any other', async (t) => {
  const { knock } = await door(server, client)
  const statuses: number[] = []
  for (let attempt = 0; attempt < 4; attempt += 1) statuses.push(statusOf(await knock('nobody', 'wrong')))
  t.same(statuses, [400, 400, 400, 429])
})

t.test('a sign-in that succeeds counts nothing and forgives nothing', async (t) => {
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

t.test('attempts that were refused unread do not use up the count of their network', async (t) => {
  const { knock } = await door(spraying, sprayingClient)
  for (let attempt = 0; attempt < 8; attempt += 1) await knock('alice', 'wrong')
  t.equal(place(await (await door(spraying, sprayingClient)).knock('bob', bob.password)), '/consent')
  const names = ['one', 'two']
  for (const name of names) t.equal(statusOf(await knock(name, 'wrong')), 400)
  assertThrottled(t, pageOf(await knock('three', 'wrong')))
})

t.test(
  'when too many passwords wait to be checked the answer is 503, and no attempt is counted',
  async (t) => {
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

t.test('too many sign-in requests from one network are answered 429 on a page', async (t) => {
  const { knock } = await door(limited, limitedClient)
  for (let attempt = 0; attempt < 4; attempt += 1) t.equal(statusOf(await knock('alice', 'wrong')), 400)
  const page = pageOf(await knock('alice', alice.password))
  t.equal(page.status, 429)
  t.ok(Number(page.headers.get('retry-after')) > 0)
  t.match(page.headers.get('content-type'), 'text/html')
  t.match(title(page), 'Too many attempts')
})

t.test('when the window is over the right password works again, on the page that was kept', async (t) => {
  const { knock } = await door(server, client)
  t.equal(statusOf(await knock('alice', alice.password)), 429)
  server.advance(limits.windowSeconds)
  t.equal(place(await knock('alice', alice.password)), '/consent')
})

t.test(
  'the window of failed attempts runs from the first of them, and each window starts from nothing',
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

t.test('a window opened by a clock that ran ahead locks nobody out once it is set right', async (t) => {
  const own = await startServer(t, { signInThrottle: limits })
  const ownClient = await register(own)
  const ahead = 100_000
  own.advance(ahead)
  const early = await door(own, ownClient)
  for (let attempt = 0; attempt < 3; attempt += 1) t.equal(statusOf(await early.knock('alice', 'wrong')), 400)
  assertThrottled(t, pageOf(await early.knock('alice', alice.password)))
  own.advance(-ahead)
  const { knock } = await door(own, ownClient)
  t.equal(place(await knock('alice', alice.password)), '/consent')
})
