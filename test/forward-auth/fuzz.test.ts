/** Thousands of generated questions of a proxy, and callbacks: what passes is compared with how any app may read it. */
import { Agent, get } from 'node:http'
import t from 'tap'
import { put } from '../../src/domain/decision.ts'
import { groupKind, membershipKind } from '../../src/domain/group.ts'
import { createDice } from '../fuzz/dice.ts'
import { HostBrowser, protect } from '../helpers/protected-host.ts'
import { bob, startServer } from '../helpers/server.ts'

const host = 'app.example.com'
const [seed, questions, callbacks] = ['forward auth', 6000, 400]
const server = await startServer(t, { trustProxy: ['127.0.0.1', '::1'] })
const { store } = server.deps
const staff = { id: `group_${'A'.repeat(21)}A`, name: 'staff', createdAt: server.now() }
const alice = (await store.find('userByLogin', 'alice'))?.id ?? ''
await store.write(
  put(groupKind, staff),
  put(membershipKind, { groupId: staff.id, userId: alice, addedAt: server.now() }),
)
await protect(server, host, [
  { path: '/admin/*', groups: [staff.id] },
  { path: '/pub/*', access: 'public' },
  { path: '/form', methods: ['GET'], access: 'public' },
])
await protect(server, 'open.example.com', [{ path: '/*', access: 'public' }])
const cookies = new Map<string, string>()
for (const user of [undefined, bob]) {
  const browser = new HostBrowser(server, host)
  await browser.signIn('/', user)
  cookies.set(user?.username ?? 'alice', browser.cookies.get('__Host-lychgate_host') ?? '')
}

const agent = new Agent({ keepAlive: true, maxSockets: 8 })
t.teardown(() => agent.destroy())

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

function send(path: string, headers: Readonly<Record<string, string>>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    get(server.origin + path, { agent, headers }, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }))
    }).on('error', reject)
  })
}

/** Every path that a server may take this one for: decoded or not, in capitals or not, with segments resolved or not. */
function readings(uri: string): ReadonlySet<string> {
  const all = new Set([uri.split('?', 1)[0] ?? ''])
  const steps: readonly ((path: string) => string)[] = [
    (path) =>
      path.replaceAll(/%([\dA-Fa-f]{2})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16))),
    (path) => path.replaceAll('\\', '/'),
    (path) => path.replaceAll(/\/{2,}/g, '/'),
    (path) => path.replaceAll(/;[^/]*/g, ''),
    (path) => path.replace(/[?#\0].*$/s, ''),
    (path) => path.toLowerCase(),
    (path) => new URL(`https://x${path.startsWith('/') ? path : `/${path}`}`).pathname,
  ]
  for (const path of all) {
    for (const step of steps) {
      try {
        all.add(step(path))
      } catch {
        // No URL: no server reads it so.
      }
    }
    if (all.size > 300) break
  }
  return all
}

const isIn = (folder: string) => (path: string) => path === folder || path.startsWith(`${folder}/`)
const segments = [
  'pub',
  'admin',
  'form',
  'Admin',
  'ADMIN',
  'x',
  '..',
  '.',
  '',
  'a;b',
  '..;',
  'pub;/..',
] as const
const odd = [
  '%2e%2e',
  '%2E.',
  '%2f',
  '%5c',
  '%00',
  '%252e',
  '\\..',
  '%c3%a5',
  '%C3%A5',
  '%',
  '#',
  '%41dmin',
] as const
const slashes = ['/', '/', '/', '/', '/', '//', '%2f', '\\', '/./', '/%2e/'] as const

t.test(`${questions} questions: no path passes for one that it may not have`, async (t) => {
  const dice = createDice(seed)
  const counts = new Map<string, number>()
  const faults: string[] = []
  const ask = async () => {
    const length = 1 + dice.below(4)
    const parts = Array.from({ length }, () => {
      const segment = dice.oneIn(4) ? dice.pick(odd) : dice.pick(segments)
      return (dice.oneIn(8) ? dice.pick(slashes) : '/') + segment
    })
    const uri = parts.join('') + (dice.oneIn(6) ? '?x=/../admin' : '')
    const asked = dice.oneIn(20)
      ? dice.pick([
          'open.example.com:443',
          'APP.example.com',
          'app.example.com.',
          'app.example.com:8443',
          'evil',
        ])
      : host
    const method = dice.pick(['GET', 'GET', 'HEAD', 'POST', 'PUT', 'get'])
    const user = dice.pick(['alice', 'bob', 'none', 'damaged'])
    const good = cookies.get(user) ?? ''
    const damaged = (cookies.get('alice') ?? '').slice(0, -1 - dice.below(3))
    const cookie = user === 'damaged' ? damaged : good
    const reply = await send('/forward-auth', {
      'x-forwarded-host': asked,
      'x-forwarded-method': method,
      'x-forwarded-uri': uri,
      accept: dice.pick(['text/html', 'application/json', '*/*']),
      ...(cookie && { cookie: `a=1; __Host-lychgate_host=${cookie}` }),
      'remote-user': 'forged',
    })
    counts.set(`${reply.status}`, (counts.get(`${reply.status}`) ?? 0) + 1)
    const fault = faultOf(reply, { uri, asked, method, user })
    if (fault !== undefined) faults.push(`${fault}: ${method} ${asked}${uri} as ${user}: ${reply.status}`)
  }
  for (let left = questions; left > 0; left -= 20) await Promise.all(Array.from({ length: 20 }, ask))
  t.strictSame(faults.slice(0, 10), [])
  t.comment(`by status: ${JSON.stringify(Object.fromEntries(counts))}`)
  for (const status of ['200', '302', '401', '403'])
    t.ok((counts.get(status) ?? 0) > 50, `enough of ${status}`)
})

function faultOf(
  { status, headers }: Reply,
  { uri, asked, method, user }: { readonly uri: string; asked: string; method: string; user: string },
): string | undefined {
  if (![200, 302, 400, 401, 403].includes(status)) return 'an odd status'
  if (status === 302) {
    const isSignIn = String(headers['location']).startsWith(`https://${host}/.lychgate/sign-in?to=%2F`)
    return isSignIn && asked === host ? undefined : 'a redirect to elsewhere'
  }
  if (status !== 200) return headers['remote-user'] === undefined ? undefined : 'a user of a rejected request'
  if (asked !== host) return 'another host passed'
  if (method === 'get') return 'a method in small letters passed'
  if (headers['cookie'] !== (user === 'none' ? '' : 'a=1')) return 'the cookie of the host reaches the app'
  const names = ['remote-user', 'remote-email', 'remote-name', 'remote-groups', 'x-lychgate-assertion']
  if (names.some((name) => typeof headers[name] !== 'string')) return 'a header is missing'
  const shown = headers['remote-user']
  const paths = [...readings(uri)]
  if (shown === '') {
    const isPublic =
      paths.every(isIn('/pub')) || (method !== 'POST' && paths.every((path) => path === '/form'))
    return isPublic ? undefined : 'passed without a user'
  }
  if (shown !== user) return 'another user'
  return user !== 'alice' && paths.some(isIn('/admin')) ? 'passed without the group' : undefined
}

t.test(`${callbacks} callbacks: none but the one that the browser began signs in`, async (t) => {
  const dice = createDice(`${seed} callbacks`)
  const [one, other] = [new HostBrowser(server, host), new HostBrowser(server, host)]
  const [mine, theirs] = [await one.reach('/mine'), await other.reach('/theirs')]
  const cookie = [...one.cookies].map((pair) => pair.join('=')).join('; ')
  const statuses = new Set<number>()
  for (let left = callbacks; left > 0; left -= 1) {
    const query = new URLSearchParams(mine.search)
    const name = dice.pick(['code', 'state', 'iss'] as const)
    const value = query.get(name) ?? ''
    const at = dice.below(value.length)
    const change = dice.pick(['drop', 'double', 'swap', 'cut', 'flip', 'empty'] as const)
    if (change === 'drop' && name !== 'iss') query.delete(name)
    else if (change === 'double') query.append(name, value)
    else if (change === 'swap' && name !== 'iss') query.set(name, theirs.searchParams.get(name) ?? '')
    else if (change === 'cut') query.set(name, value.slice(0, at))
    else if (change === 'empty' && name !== 'iss') query.set(name, '')
    else query.set(name, `${value.slice(0, at)}${value[at] === 'x' ? 'y' : 'x'}${value.slice(at + 1)}`)
    if (query.get('iss') === '') continue // absent, as servers without RFC 9207 send it
    const path = `/.lychgate/callback?${query}`
    const reply = await send(path, { 'x-forwarded-host': host, cookie, accept: 'text/html' })
    statuses.add(reply.status)
    const isSignedIn = reply.headers['set-cookie'] !== undefined
    if (reply.status >= 500 || reply.status === 303 || isSignedIn)
      t.fail(`${reply.status} ${name} ${change} ${path}`)
  }
  t.strictSame([...statuses].sort(), [400, 403])
  t.equal((await other.route(theirs)).status, 303, 'none of them used the code of the other')
  t.equal((await one.route(mine)).status, 303, 'nor the one of this browser')
})
