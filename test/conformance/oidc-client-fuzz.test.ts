/** Hundreds of damaged callbacks of upstreams: none signs in, links or breaks anything, and what was not damaged still works. */
import t from 'tap'
import { upstreamLinkKind } from '../../src/users/rules/upstream-link.ts'
import { createDice, type Dice } from '../fuzz/dice.ts'
import { authorizationUrl, register } from '../helpers/flow.ts'
import { bob, startServer } from '../helpers/server.ts'
import {
  goAway,
  locationOf,
  pageOf,
  startStandInUpstream,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'

const [seed, rounds] = ['upstream callbacks', 300]
const [work, other] = [await startStandInUpstream(t), await startStandInUpstream(t)]
const server = await startServer(t, {
  mode: 'dev',
  trustProxy: ['127.0.0.1', '::1'],
  upstreams: [
    upstreamOf(t, work.issuer, { firstSignIn: 'any' }),
    upstreamOf(t, other.issuer, { id: 'other', name: 'Other', firstSignIn: 'any' }),
  ],
})
const client = await register(server)

/** The browsers of a network have a budget of requests to upstreams: each of these is in one of its own. */
let networks = 0
function browser(): UserAgent {
  networks += 1
  return new UserAgent(server.issuer, { 'x-forwarded-for': `198.18.${networks % 256}.1` })
}

/** Begins a sign-in with the first upstream. @returns The browser, where it goes, and where it comes back to. */
async function begin() {
  const agent = browser()
  const away = await goAway(agent, authorizationUrl(server, client))
  return { agent, away, back: new URL(work.respondTo(away)) }
}

/** Damages one parameter of a response, and sometimes its path. */
function damaged(dice: Dice, back: URL, otherState: string): URL {
  const url = new URL(back)
  const query = url.searchParams
  const name = dice.pick(['state', 'code', 'iss'] as const)
  const value = query.get(name) ?? ''
  const at = dice.below(value.length)
  const foreign = { state: otherState, code: 'another-code', iss: other.issuer }[name]
  const damage = {
    drop: () => query.delete(name),
    double: () => query.append(name, value),
    doubleOther: () => query.append(name, foreign),
    swap: () => query.set(name, foreign),
    cut: () => query.set(name, value.slice(0, at)),
    flip: () =>
      query.set(name, `${value.slice(0, at)}${value[at] === 'x' ? 'y' : 'x'}${value.slice(at + 1)}`),
    long: () => query.set(name, value + 'x'.repeat(5000)),
    longest: () => query.set(name, value + 'x'.repeat(16_384)),
    bytes: () => query.set(name, `${value}\0\u202e%ff`),
  }
  damage[dice.pick(changes)]()
  if (dice.oneIn(6)) query.set('error', dice.pick(['access_denied', '<b>', 'x'.repeat(500)]))
  if (dice.oneIn(5)) url.pathname = url.pathname.replace('/work/', dice.pick(['/other/', '/none/', '/WORK/']))
  return url
}

const changes = ['drop', 'double', 'doubleOther', 'swap', 'cut', 'flip', 'long', 'longest', 'bytes'] as const

t.test(`${rounds} callbacks: none but the one that the browser began signs in`, async (t) => {
  const dice = createDice(seed)
  const statuses = new Map<number, number>()
  const untouched = await begin()
  const otherState = untouched.back.searchParams.get('state') ?? ''
  let used = 0
  for (let left = rounds; left > 0; left -= 1) {
    const { agent, back } = await begin()
    const url = damaged(dice, back, otherState)
    const { status } = await agent.send(url.href)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status === 500 || status < 400 || agent.cookie('session') !== undefined) t.fail(`${status} ${url}`)
    // Only a response that belongs to the attempt ends it, whatever is wrong with the rest.
    const names = [...url.searchParams.keys()]
    const isOwn =
      status !== 431 &&
      !url.search.includes('%00') &&
      url.pathname === back.pathname &&
      names.length === new Set(names).size &&
      url.searchParams.get('state') === back.searchParams.get('state')
    const page = pageOf(await agent.open(back.href))
    const isSignedIn = page.html.includes('value="approve"')
    if (isSignedIn === isOwn) t.fail(`${isOwn ? 'used twice' : 'used up'} by ${status} ${url}`)
    if (isSignedIn) used += 1
  }
  t.comment(`by status: ${JSON.stringify(Object.fromEntries(statuses))}, ${used} signed in after it`)
  for (const status of [400, 404, 431, 502]) t.ok((statuses.get(status) ?? 0) > 5, `enough of ${status}`)
  t.strictSame(other.sent, [], 'no code is sent to another upstream')
  t.ok(work.sent.every(({ form }) => (form.get('code') ?? '').length <= 4096))
  t.equal((await server.deps.store.list('user')).length, 3, 'the one of the stand-in was added, and no other')
  work.respondTo(untouched.away)
  const page = pageOf(await untouched.agent.open(untouched.back.href))
  t.match(page.html, 'value="approve"', 'none of them used the attempt of another browser')
})

t.test('damaged callbacks link nothing', async (t) => {
  const dice = createDice(`${seed} of a link`)
  const agent = browser()
  const login = pageOf(await agent.open(`${server.issuer}/account/upstreams`))
  const page = pageOf(await agent.submit(login, bob))
  const { id = '' } = (await server.deps.store.find('userByLogin', 'bob')) ?? {}
  const begun = async () => {
    const away = locationOf(await agent.submit(page, { link: 'work' }, page.forms.at(-1)))
    return new URL(work.respondTo(away))
  }
  const otherState = (await begun()).searchParams.get('state') ?? ''
  for (let left = 100; left > 0; left -= 1) {
    const url = damaged(dice, await begun(), otherState)
    const { status } = await agent.send(url.href)
    if (status < 400 || status === 500) t.fail(`${status} ${url}`)
  }
  const links = () => server.deps.store.listOf(upstreamLinkKind, id)
  t.strictSame(await links(), [])
  work.says = { claims: { sub: 'bob-there' } }
  await agent.open((await begun()).href)
  t.equal((await links()).length, 1, 'the same without damage links')
})
