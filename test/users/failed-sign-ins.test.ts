/** Failed sign-ins in the log, as the fail2ban filter of docs/operations.md reads them. */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { put } from '../../src/domain/decision.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { ask, integrate, pageOf } from '../helpers/authorization.ts'
import { alice, bob, type ServerOptions, startServer, type TestServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
const option = (name: string) => new RegExp(`^${name} = (.+)$`, 'm').exec(page)?.[1] ?? ''
const failure = new RegExp(option('failregex').replace('<ADDR>', '([0-9a-f.:]+)'))
const date = new RegExp(option('datepattern').replace('{LEPOCH}', '(\\d{10,11}(?:\\d{3})?)'))

const proxied = { trustProxy: ['127.0.0.1', '::1'] }
const on = { ...proxied, logFailedSignIns: 'on' } as const
const throttle = { failuresPerAccountAndPrefix: 2 }
const typed = { username: 'alice', password: 'hunter2-typed' }

/** What fail2ban makes of the log, once that has its last line: it cuts the date out, then looks for a failure. */
async function blocked({ log, issuer }: TestServer): Promise<readonly (string | undefined)[]> {
  const last = `/last-${log.length}`
  await fetch(issuer + last)
  while (!log.some((line) => line.includes(last))) await setTimeout(10)
  return log.flatMap((line) => failure.exec(line.trim().replace(date, ''))?.slice(1) ?? [])
}

async function door(server: TestServer, from: string) {
  const portal = await integrate(server, { consent: 'skip' })
  const agent = new UserAgent(server.issuer, { 'x-forwarded-for': from })
  const shown = pageOf(await ask(server, portal, { prompt: 'login' }, agent))
  const knock = async (user: typeof typed, at: Page = shown) => pageOf(await agent.submit(at, user)).status
  return { agent, shown, knock }
}

/** Fails once from one address. Returns the server. */
async function failing(options: ServerOptions, from = '203.0.113.7'): Promise<TestServer> {
  const server = await startServer(t, options)
  const { knock } = await door(server, from)
  t.equal(await knock(typed), 400)
  return server
}

t.test(
  'a wrong password, an unknown user and a throttled attempt are read by the filter alike',
  async (t) => {
    const server = await startServer(t, { ...on, signInThrottle: throttle })
    const { knock } = await door(server, '203.0.113.7')
    t.equal(await knock(typed), 400)
    t.equal(await knock({ ...typed, username: 'no-such-user' }), 400)
    t.equal(await knock(typed), 400)
    t.equal(await knock(alice), 429, 'not even looked at')
    t.strictSame(await blocked(server), Array(4).fill('203.0.113.7'))
    const lines = server.log.filter((line) => line.includes('"sign-in failed"'))
    t.strictSame(
      lines.map((line) => (JSON.parse(line) as { rule: string }).rule),
      [...Array(3).fill('lychgate-sign-in'), 'lychgate-sign-in-throttle'],
    )
    t.notMatch(server.log.join(''), /hunter2|no-such-user|"username"/, 'neither what was typed nor for whom')
    const members = ['level', 'time', 'pid', 'hostname', 'reqId', 'rule', 'address', 'msg']
    t.strictSame(Object.keys(JSON.parse(lines[0] ?? '{}')), members)
    const [event] = await server.deps.store.audit({ since: 0, name: 'sign-in-failed', limit: 1 })
    t.equal(event?.from, '203.0.113.0/24', 'the audit log has the network as before')
  },
)

t.test('so is the entry of the journal, which has the host and the process in front', async (t) => {
  const server = await failing(on)
  t.strictSame(await blocked(server), ['203.0.113.7'])
  const { log } = server
  const line = log.find((one) => one.includes('"sign-in failed"'))?.trim() ?? ''
  t.equal(failure.exec(`auth lychgate[42]: ${line}`)?.[1], '203.0.113.7')
  const [, time = ''] = date.exec(line) ?? []
  t.match(time, /^\d{13}$/, 'the date is found')
})

t.test('a wrong second factor, and the wrong current password of a user who is signed in', async (t) => {
  const server = await startServer(t, on)
  const { store, keys } = server.deps
  const userId = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const sealedSecret = keys.seal(Buffer.alloc(20), userId, secondFactorKind)
  const times = { confirmedAt: server.now(), createdAt: server.now() }
  await store.write(put(secondFactorKind, { userId, sealedSecret, recoveryHashes: [], ...times }))
  const { agent, shown } = await door(server, '2001:DB8::7')
  const second = pageOf(await agent.submit(shown, alice))
  t.match(second.html, 'name="code"')
  t.strictSame(await blocked(server), [], 'the password was right')
  t.equal(pageOf(await agent.submit(second, { code: 'not-a-code' })).status, 400)
  t.strictSame(await blocked(server), ['2001:db8::7'])

  const other = await door(server, '198.51.100.9')
  await other.agent.submit(other.shown, bob)
  const change = pageOf(await other.agent.open(`${server.issuer}/account/password`))
  const [form] = change.forms
  const sent = { current: 'wrong', password: 'seven green umbrellas', repeated: 'seven green umbrellas' }
  t.match(pageOf(await other.agent.submit(change, sent, form)).html, 'role="alert"')
  t.strictSame(await blocked(server), ['2001:db8::7', '198.51.100.9'])
})

t.test('an attempt that the rate limit rejected counts, other requests do not', async (t) => {
  const limits = { rateLimits: 'on', requestsPerMinute: { signIn: 1 } } as const
  const server = await startServer(t, { ...on, ...limits })
  const { agent, knock } = await door(server, '203.0.113.7')
  t.equal(await knock(typed), 400)
  t.equal(await knock(typed), 429)
  const link = { method: 'POST', body: new URLSearchParams({ user: 'alice' }) }
  await agent.send(`${server.issuer}/device`, link)
  t.equal((await agent.send(`${server.issuer}/device`, link)).status, 429)
  t.strictSame(await blocked(server), Array(2).fill('203.0.113.7'))
})

t.test('the address is what trustProxy gives, as a firewall writes it', async (t) => {
  for (const [from, address] of [
    ['203.0.113.7:4711', '203.0.113.7'],
    ['[2001:db8::7]:4711', '2001:db8::7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ] as const)
    t.strictSame(await blocked(await failing(on, from)), [address], from)
  const direct = await blocked(await failing({ ...on, trustProxy: [] }))
  t.match(direct[0], /^(?:127\.0\.0\.1|::1)$/, 'a forged header does not count')
})

t.test('what a request contains is no failure of another address', async (t) => {
  const forged = '"address":"192.0.2.1","msg":"sign-in failed"}'
  const server = await startServer(t, on)
  const { agent, knock } = await door(server, forged)
  await agent.send(`${server.issuer}/${encodeURIComponent(forged)}`)
  await agent.send(`${server.issuer}/oauth/authorize?client_id=${encodeURIComponent(forged)}`)
  t.equal(await knock({ username: forged, password: forged }), 400)
  t.strictSame(await blocked(server), [])
  t.ok(server.log.some((line) => line.includes('"sign-in failed"')))
})

t.test('without the option no line has an address', async (t) => {
  const server = await failing(proxied)
  t.strictSame(await blocked(server), [])
  t.notMatch(server.log.join(''), /sign-in failed|203\.0\.113/)
})
