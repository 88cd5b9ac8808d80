import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { accept, insert, remove, update } from '../../../src/domain/decision.ts'
import type { User } from '../../../src/domain/model.ts'
import { addAdministrator } from '../../../src/users/administrators.ts'
import { mostPasskeys, passkeyKind } from '../../../src/users/rules/passkey.ts'
import { insertUpstreamLink } from '../../../src/users/rules/upstream-link.ts'
import {
  Authenticator,
  askedOf,
  type Cbor,
  type CreationOptions,
  cbor as cborOf,
  type SentCredential,
} from '../../helpers/authenticator.ts'
import { pageOf, place } from '../../helpers/authorization.ts'
import { watchConnections } from '../../helpers/connections.ts'
import { startServer, type TestServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { doneOf, enter, offered, press } from './sections.ts'

const connections = watchConnections(t)
const problemOf = ({ html }: Page) => /role="alert">([^<]*)</.exec(html)?.[1]
const formOf = (page: Page) =>
  page.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))

async function add(server: TestServer, agent: UserAgent, device: Authenticator, changes?: CreationOptions) {
  const page = await enter(server, agent, '/passkeys')
  return send(agent, page, device.create(askedOf(page), changes))
}

const send = async (agent: UserAgent, page: Page, credential: unknown) =>
  pageOf(await agent.submit(page, { credential: JSON.stringify(credential) }, formOf(page)))

const passkeysOf = async ({ deps: { store } }: TestServer) =>
  store.listOf(passkeyKind, (await store.find('userByLogin', 'alice'))?.id ?? '')

/** Opens the sign-in page and sends the credential of the device, altered or not. */
async function signIn(server: TestServer, device: Authenticator, change?: (sent: SentCredential) => unknown) {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(`${server.issuer}/account/apps`))
  const sent = device.get(askedOf(page))
  const body = { credential: JSON.stringify(change === undefined ? sent : change(sent)) }
  return agent.submit(page, body, formOf(page))
}

const bytes = (length: number) => Buffer.alloc(length, 1)
const statements: readonly (readonly [string, (hash: Buffer) => ReadonlyMap<string, Cbor>])[] = [
  ['none', () => new Map()],
  ['none', () => new Map([['unexpected', true]])],
  [
    'packed',
    () =>
      new Map<string, Cbor>([
        ['alg', -7],
        ['sig', bytes(70)],
      ]),
  ],
  [
    'packed',
    () =>
      new Map<string, Cbor>([
        ['alg', -7],
        ['sig', bytes(70)],
        ['x5c', [bytes(500)]],
      ]),
  ],
  [
    'fido-u2f',
    () =>
      new Map<string, Cbor>([
        ['sig', bytes(70)],
        ['x5c', [bytes(500)]],
      ]),
  ],
  ['apple', () => new Map([['x5c', [bytes(500), bytes(500)]]])],
  [
    'android-safetynet',
    () =>
      new Map<string, Cbor>([
        ['ver', '1'],
        ['response', bytes(900)],
      ]),
  ],
  [
    'tpm',
    () =>
      new Map<string, Cbor>([
        ['ver', '2.0'],
        ['alg', -257],
        ['x5c', [bytes(500)]],
        ['sig', bytes(256)],
      ]),
  ],
  ['unheard-of', () => new Map([['anything', [bytes(5)]]])],
]

t.test('an attestation of any format is dropped: nothing is fetched, and the passkey works', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer)
  const fetched: string[] = []
  const trap = createServer((request, response) => {
    fetched.push(request.url ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
  t.teardown(() => trap.close())
  const { port } = trap.address() as AddressInfo // it listens
  const android = androidKey(t, server, `http://127.0.0.1:${port}/crl`)
  t.match(doneOf(await add(server, agent, android.device, android)), /passkey/i, 'android-key')
  for (const [format, statement] of statements) {
    const device = new Authenticator(server.issuer)
    t.match(doneOf(await add(server, agent, device, { format, statement })), /passkey/i, format)
    t.equal(place(await signIn(server, device)), '/account/apps', format)
  }
  t.strictSame(fetched, [])
  t.strictSame(connections.except(new URL(server.origin).port), [])
  t.equal((await passkeysOf(server)).length, statements.length + 1)
})

/** Values of every JSON type, and texts that are no base64url or too long. */
const wrong: readonly unknown[] = [
  null,
  5,
  true,
  '',
  '***',
  'A',
  'AAAA',
  'A'.repeat(2000),
  {},
  [],
  ['AAAA'],
  { toString: 'x' },
  { byteLength: 1 },
]
const members = ['id', 'rawId', 'type', 'response']
const assertionMembers = ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle']

t.test('a passkey that the user did not name is named after what keeps it', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer, {
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
  })
  const keepassxc = 'fdb141b25d84443e8a354698c205a502'
  const named = async (aaguid: string, name?: string) => {
    const before = (await passkeysOf(server)).map(({ id }) => id)
    const page = await enter(server, agent, '/passkeys')
    const credential = new Authenticator(server.issuer).create(askedOf(page), { aaguid })
    const fields = { credential: JSON.stringify(credential), ...(name !== undefined && { name }) }
    await agent.submit(page, fields, formOf(page))
    const after = await passkeysOf(server)
    return after.find(({ id }) => !before.includes(id))?.name
  }
  t.equal(await named(keepassxc), 'KeePassXC')
  t.equal(await named(keepassxc, ''), 'KeePassXC')
  t.equal(await named(keepassxc, 'On the desk'), 'On the desk')
  t.equal(await named(''), 'Firefox, Linux')
  t.equal(await named('', ''), 'Firefox, Linux')
})

t.test('a sign-in with malformed passkey JSON gets the ordinary error', async (t) => {
  const server = await startServer(t)
  const device = new Authenticator(server.issuer)
  await add(server, new UserAgent(server.issuer), device)
  t.equal(place(await signIn(server, device)), '/account/apps', 'as it is, it signs in')
  const agent = new UserAgent(server.issuer)
  const rejected = async (change: (sent: SentCredential) => unknown, about: string) => {
    const page = pageOf(await agent.open(`${server.issuer}/account/apps`))
    const after = await send(agent, page, change(device.get(askedOf(page))))
    t.equal(after.status, 400, about)
    t.match(problemOf(after), /passkey/i, about)
  }
  for (const value of wrong) {
    const about = JSON.stringify(value).slice(0, 40)
    await rejected(() => value, `the whole ${about}`)
    for (const name of members) await rejected((sent) => ({ ...sent, [name]: value }), `${name} ${about}`)
    for (const name of assertionMembers) {
      const change = (sent: SentCredential) => ({ ...sent, response: { ...sent.response, [name]: value } })
      await rejected(change, `${name} ${about}`)
    }
  }
  const clientData = (value: unknown) => (sent: SentCredential) => {
    const clientDataJSON = Buffer.from(JSON.stringify(value)).toString('base64url')
    return { ...sent, response: { ...sent.response, clientDataJSON } }
  }
  for (const value of wrong) {
    await rejected(clientData(value), 'client data')
    for (const name of ['type', 'challenge', 'origin']) {
      const whole = { type: 'webauthn.get', challenge: 'x', origin: server.origin }
      await rejected(clientData({ ...whole, [name]: value }), name)
    }
  }
  // Members that are not verified may have any value.
  for (const clientExtensionResults of wrong) {
    const landing = await signIn(server, device, (sent) => ({ ...sent, clientExtensionResults }))
    t.equal(place(landing), '/account/apps')
  }
})

t.test('authenticator data with malformed or deeply nested CBOR is rejected', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer)
  const deep = Buffer.concat([Buffer.alloc(3000, 0x81), Buffer.from([0])])
  const extensions: readonly (readonly [string, Buffer])[] = [
    ['nested 3000 levels', deep],
    ['a map nested 10 levels', Buffer.concat([Buffer.from([0xa1, 0x61, 0x61]), deep.subarray(-10)])],
    ['an array of 2^32 items', Buffer.from([0x9a, 255, 255, 255, 255])],
    ['a map of 2^64 members', Buffer.from([0xbb, 255, 255, 255, 255, 255, 255, 255, 255])],
    ['a string of 2^63 bytes', Buffer.from([0xa1, 0x7b, 0x80, 0, 0, 0, 0, 0, 0, 0])],
    ['an indefinite map', Buffer.from([0xbf, 0xff])],
    ['a tag', Buffer.from([0xa1, 0x61, 0x61, 0xc1, 0])],
    ['a key twice', Buffer.from([0xa2, 0x61, 0x61, 0, 0x61, 0x61, 0])],
    ['no map', Buffer.from([0x80])],
    ['two maps', Buffer.from([0xa0, 0xa0])],
    ['nothing', Buffer.alloc(0)],
  ]
  for (const [about, each] of extensions) {
    const page = await add(server, agent, new Authenticator(server.issuer), { extensions: each })
    t.match(problemOf(page), 'That passkey could not be added', about)
  }
  const key = new Authenticator(server.issuer).publicKey
  const keys: readonly (readonly [string, Cbor])[] = [
    ['another algorithm', new Map([...key, [3, -47]])],
    ['another curve', new Map([...key, [-1, 2]])],
    ['a short coordinate', new Map([...key, [-2, bytes(31)]])],
    ['a further member', new Map([...key, [-4, bytes(32)]])],
    ['an RSA key of 16384 bits', rsaKey(2048)],
    ['an RSA key of 512 bits', rsaKey(64)],
    ['no map', [1, 2]],
  ]
  for (const [about, credential] of keys) {
    const page = await add(server, agent, new Authenticator(server.issuer), { credential })
    t.match(problemOf(page), 'That passkey could not be added', about)
  }
  t.strictSame(await passkeysOf(server), [])
  const device = new Authenticator(server.issuer)
  const some = cborOf(new Map([['credProtect', 2]]))
  t.match(doneOf(await add(server, agent, device, { extensions: some })), /passkey/i, 'extensions are fine')
  const browser = new UserAgent(server.issuer)
  for (const [about, each] of extensions) {
    const page = pageOf(await browser.open(`${server.issuer}/account/apps`))
    const after = await send(browser, page, device.get(askedOf(page), each))
    t.equal(after.status, 400, about)
  }
  const page = pageOf(await browser.open(`${server.issuer}/account/apps`))
  const landing = await browser.submit(
    page,
    { credential: JSON.stringify(device.get(askedOf(page), some)) },
    formOf(page),
  )
  t.equal(place(landing), '/account/apps', 'and so they are at a sign-in')
})

function rsaKey(size: number): Cbor {
  return new Map<number, Cbor>([
    [1, 3],
    [3, -257],
    [-1, bytes(size)],
    [-2, bytes(3)],
  ])
}

t.test('of two simultaneous requests for the last passkey, one gets an error', async (t) => {
  const server = await startServer(t)
  const [one, other] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const device = new Authenticator(server.issuer)
  await add(server, one, device)
  const login = pageOf(await other.open(`${server.issuer}/account/apps`))
  await send(other, login, device.get(askedOf(login)))
  const { id: userId = '' } = (await server.deps.store.find('userByLogin', 'alice')) ?? {}
  const times = { createdAt: 1, usedAt: 1 }
  const passkey = {
    userId,
    publicKey: 'AAAA',
    counter: 0,
    transports: [],
    name: '',
    backedUp: false,
    ...times,
  }
  for (let n = 2; n < mostPasskeys; n += 1)
    await server.deps.store.write(insert(passkeyKind, { ...passkey, id: `${n}` }))
  const pages = [await enter(server, one, '/passkeys'), await enter(server, other, '/passkeys')] as const
  const made = pages.map((page) => new Authenticator(server.issuer).create(askedOf(page)))
  const after = await Promise.all([send(one, pages[0], made[0]), send(other, pages[1], made[1])])
  t.equal((await passkeysOf(server)).length, mostPasskeys)
  t.strictSame(after.map(({ status }) => status).sort(), [200, 400])
  t.match(after.map(problemOf).join(), 'as many passkeys as this service allows')
})

/** An attestation that names a revocation list; the sender is its own authority. */
function androidKey(t: Test, { issuer }: TestServer, crl: string) {
  const folder = t.testdir({})
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout']
  openssl('req', '-x509', ...curve, 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Mine')
  openssl('req', '-new', ...curve, 'leaf.key', '-out', 'leaf.csr', '-subj', '/CN=Leaf')
  const device = new Authenticator(issuer, readFileSync(join(folder, 'leaf.key'), 'utf8'))
  const statement = (clientDataHash: Buffer) => {
    const description = `30340201030a01010201040a01010420${clientDataHash.toString('hex')}040030003000`
    const extensions = `1.3.6.1.4.1.11129.2.1.17=DER:${description}\ncrlDistributionPoints=URI:${crl}\n`
    writeFileSync(join(folder, 'leaf.cnf'), extensions)
    const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '1']
    openssl('x509', '-req', '-in', 'leaf.csr', ...authority, '-extfile', 'leaf.cnf', '-out', 'leaf.pem')
    const x5c = ['leaf.pem', 'ca.pem'].map((name) => {
      const [, base64 = ''] =
        /-----BEGIN CERTIFICATE-----([^-]*)/.exec(readFileSync(join(folder, name), 'utf8')) ?? []
      return Buffer.from(base64, 'base64')
    })
    return new Map<string, Cbor>([
      ['alg', -7],
      ['sig', bytes(70)],
      ['x5c', x5c],
    ])
  }
  return { device, format: 'android-key', statement }
}

t.test('a passkey that is removed during its sign-in gives no session', async (t) => {
  const server = await startServer(t)
  const { store } = server.deps
  const agent = new UserAgent(server.issuer)
  const device = new Authenticator(server.issuer)
  await add(server, agent, device)
  const [passkey] = await passkeysOf(server)
  const { transact } = store
  store.transact = async (kind, key, decide) => {
    if (typeof kind === 'object' && kind.name === 'signIn') {
      store.transact = transact
      await store.write(remove(passkeyKind, passkey?.id ?? ''))
    }
    return transact(kind, key, decide)
  }
  const before = await store.listOf('session', passkey?.userId ?? '')
  t.equal(place(await signIn(server, device)), '/login')
  t.equal(store.transact, transact, 'it was removed in between')
  t.strictSame(await store.listOf('session', passkey?.userId ?? ''), before)
})

t.test('the last administrator, who has no password, keeps the last passkey', async (t) => {
  const server = await startServer(t)
  const { store, clock } = server.deps
  const agent = new UserAgent(server.issuer)
  await add(server, agent, new Authenticator(server.origin))
  const user = (await store.find('userByLogin', 'alice')) as User
  await addAdministrator(store, 'admins', user.id, randomBytes(16), { by: 'operator', at: clock() })
  const { passwordHash: _, ...without } = user
  await store.transact('user', user.id, () => accept(undefined, update('user', without)))
  const page = await enter(server, agent, '/passkeys')
  const [handle = ''] = offered(page, 'remove')
  const kept = pageOf(await press(agent, page, 'remove', handle))
  t.match(problemOf(kept), 'This passkey is your only way to sign in')
  t.equal((await passkeysOf(server)).length, 1)
  const linked = { userId: user.id, issuer: 'https://work.example', sub: 'alice' }
  await store.write(...insertUpstreamLink(linked, 'Work', { by: 'user', at: clock() }))
  const asAdministrator = pageOf(await press(agent, page, 'remove', handle))
  t.match(problemOf(asAdministrator), 'You are the last administrator', 'an upstream may be gone tomorrow')
  t.equal((await passkeysOf(server)).length, 1)
  await store.transact('user', user.id, () => accept(undefined, update('user', user)))
  t.match(doneOf(pageOf(await press(agent, page, 'remove', handle))), /passkey/i)
  t.strictSame(await passkeysOf(server), [])
})
