import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { endSessionsOf, update } from '../../../src/domain/decision.ts'
import type { User } from '../../../src/domain/model.ts'
import { beginChange, sealWithAfter, sealWithBoth } from '../../../src/keys/reseal.ts'
import { deriveSealingKey } from '../../../src/keys/seal.ts'
import type { Store } from '../../../src/storage/store.ts'
import { userCredentials } from '../../../src/users/factors.ts'
import { secondFactorKind } from '../../../src/users/rules/second-factor.ts'
import { lockUser } from '../../../src/users/rules/user.ts'
import { sealedKinds } from '../../../src/users/sealed-kinds.ts'
import { ask, integrate, pageOf, sentAway, title } from '../../helpers/authorization.ts'
import { claimsOf, exchange, type Tokens } from '../../helpers/flow.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { doneOf, enter, press, textOf } from './sections.ts'

const server = await startServer(t)
const portal = await integrate(server, { consent: 'skip' })
const section = '/one-time-codes'
const mfa = 'https://refeds.org/profile/mfa'

/** The user's authenticator app. */
function program(page: Page) {
  const [, secret = ''] = /<code>([A-Z2-7 ]+)<\/code>/.exec(page.html) ?? []
  const totp = new TOTP({ secret: Secret.fromBase32(secret.replaceAll(' ', '')) })
  return { code: (seconds = 0) => totp.generate({ timestamp: (server.now() + seconds) * 1000 }) }
}

const recoveryCodesOf = ({ html }: Page) =>
  [...html.matchAll(/<li><code>([0-9a-z]{4}(?:-[0-9a-z]{4}){3})<\/code><\/li>/g)].map(([, code = '']) => code)

const fullWidth = (text: string) =>
  text.replaceAll(/[!-~]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0))

async function setUp(agent: UserAgent, user = alice) {
  const before = await enter(server, agent, section, user)
  const begun = pageOf(await press(agent, before, 'decision', 'begin'))
  const telephone = program(begun)
  const form = begun.forms.find(({ fields }) => fields.some(({ name }) => name === 'code'))
  const confirm = (code: string) => agent.submit(begun, { code, decision: 'confirm' }, form)
  return { begun, telephone, confirm }
}

async function tokensOf(code: string | undefined): Promise<Record<string, unknown>> {
  const tokens = (await (await exchange(server, portal, code ?? '')).json()) as Tokens
  return claimsOf(tokens.id_token)
}

const agent = new UserAgent(server.issuer)
const { begun, telephone, confirm } = await setUp(agent)
let recovery: readonly string[] = []

t.test(
  'the secret is shown as a QR code and as text, and codes are required only after the first was entered',
  async (t) => {
    const picture = /<img class="qr" src="([^"]+)"/.exec(begun.html)?.[1] ?? ''
    const image = await agent.send(new URL(picture, server.issuer).href)
    t.equal(image.headers.get('content-type'), 'image/svg+xml')
    t.match(await image.text(), /^<svg/)
    t.equal(image.headers.get('cache-control'), 'no-store')
    const stranger = await new UserAgent(server.issuer).send(new URL(picture, server.issuer).href)
    t.equal(stranger.status, 303)
    const other = new UserAgent(server.issuer)
    const landing = await other.submit(pageOf(await ask(server, portal, {}, other)), alice)
    t.ok('code' in sentAway(landing))
  },
)

t.test('a wrong code turns nothing on, the right one does and shows ten recovery codes once', async (t) => {
  const wrong = pageOf(await confirm('000000'))
  t.equal(wrong.status, 400)
  t.match(wrong.html, 'That code is wrong')
  const typed = telephone.code().replaceAll(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit)))
  const done = pageOf(await confirm(typed.replace(/.../, '$&-')))
  recovery = recoveryCodesOf(done)
  t.equal(new Set(recovery).size, 10)
  t.match(done.html, 'data-recovery="recovery-codes.txt" hidden>', 'without the script no button shows')
  t.match(done.headers.get('cache-control'), 'no-store')
  t.match(done.headers.get('content-security-policy'), "script-src 'self';")
  const [, script = ''] = /<script src="([^"]+)" defer>/.exec(done.html) ?? []
  const served = await agent.send(new URL(script, server.issuer).href)
  t.match(served.headers.get('content-type'), 'text/javascript')
  t.notMatch(await served.text(), /fetch|XMLHttpRequest|sendBeacon/, 'the codes stay in the browser')
  const later = await enter(server, agent, section)
  t.strictSame(recoveryCodesOf(later), [])
  t.notMatch(later.html, /<script|data-recovery/)
  t.match(textOf(later), 'One-time codes are on')
  t.match(textOf(later), '10 recovery codes are left')
})

t.test('after the password a code is required, and the ID Token says so', async (t) => {
  const visitor = new UserAgent(server.issuer)
  const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
  t.equal(title(second), 'Confirm that it is you')
  t.equal(visitor.cookie('session'), undefined, 'the password alone signs no user in')
  const taken = telephone.code()
  const used = pageOf(await visitor.submit(second, { code: taken }))
  t.equal(used.status, 400, 'the code that turned it on is used up')
  server.advance(30)
  const { code } = sentAway(
    await visitor.submit(used, { code: ` ${fullWidth(telephone.code()).replace(/.../, '$&ー')} ` }),
  )
  t.match(await tokensOf(code), { acr: mfa, amr: ['pwd', 'otp', 'mfa'] })
})

t.test(
  'a code is accepted once, no older one after it, and only codes next to the current time',
  async (t) => {
    server.advance(300)
    const codes = [-60, -30, 60].map((seconds) => telephone.code(seconds))
    const [tooOld = '', justNow = '', tooNew = ''] = codes
    const visitor = new UserAgent(server.issuer)
    let page = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
    for (const code of ['', 'abcdef', tooOld, tooNew, `${justNow}0`]) {
      page = pageOf(await visitor.submit(page, { code }))
      t.equal(page.status, 400, code)
      t.match(page.html, 'That code is wrong, or it was already used')
      t.notMatch(page.html, `value="${code || '-'}"`)
    }
    t.ok('code' in sentAway(await visitor.submit(page, { code: justNow })))
    const replay = new UserAgent(server.issuer)
    const second = pageOf(await replay.submit(pageOf(await ask(server, portal, {}, replay)), alice))
    t.equal(pageOf(await replay.submit(second, { code: justNow })).status, 400)
    t.equal(
      pageOf(await replay.submit(second, { code: telephone.code(-30) })).status,
      400,
      'nor any older one',
    )
  },
)

t.test('of two simultaneous forms with the same code one signs in', async (t) => {
  server.advance(60)
  const code = telephone.code()
  const pages = await Promise.all(
    [1, 2, 3].map(async () => {
      const visitor = new UserAgent(server.issuer)
      const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
      return { visitor, second }
    }),
  )
  const landings = await Promise.all(pages.map(({ visitor, second }) => visitor.submit(second, { code })))
  t.equal(landings.filter(({ at }) => at === 'redirect').length, 1)
})

t.test('each recovery code replaces a code once, however it is typed', async (t) => {
  // The failures so far are forgotten: how many of the simultaneous ones were counted depends on their order.
  server.advance(900)
  const visitor = new UserAgent(server.issuer)
  const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
  const link = /href="([^"]*recovery=1)"/.exec(second.html)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const page = pageOf(await visitor.open(new URL(link, server.issuer).href))
  t.match(page.html, 'Recovery code')
  const [first = ''] = recovery
  const typed = { code: fullWidth(first.toUpperCase()), decision: 'recovery' }
  const { code } = sentAway(await visitor.submit(page, typed))
  t.match(await tokensOf(code), { amr: ['pwd', 'otp', 'mfa'] })
  const again = new UserAgent(server.issuer)
  const other = pageOf(await again.submit(pageOf(await ask(server, portal, {}, again)), alice))
  const rejected = pageOf(await again.submit(other, typed))
  t.equal(rejected.status, 400)
  t.match(rejected.html, 'That is not one of your recovery codes')
})

t.test('guesses at codes are throttled, also across repeated sign-ins with the password', async (t) => {
  const guess = async (code: string) => {
    const visitor = new UserAgent(server.issuer)
    const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
    return pageOf(await visitor.submit(second, { code }))
  }
  const statuses = []
  for (let count = 0; count < 12; count += 1) statuses.push((await guess('000000')).status)
  t.strictSame([statuses.at(0), statuses.at(-1)], [400, 429])
  const full = await guess(telephone.code())
  t.match(full.html, 'Too many failed attempts')
  t.ok(full.headers.get('retry-after'))
  server.advance(901)
  const visitor = new UserAgent(server.issuer)
  const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
  t.ok('code' in sentAway(await visitor.submit(second, { code: telephone.code() })), 'later it works again')
})

t.test('a pending second factor expires after ten minutes and when the password changes', async (t) => {
  const visitor = new UserAgent(server.issuer)
  const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
  server.advance(600)
  const late = pageOf(await visitor.submit(second, { code: telephone.code() }))
  t.equal(title(late), 'Sign in')
  const retried = pageOf(await visitor.submit(late, alice))
  const { store } = server.deps
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('no alice')
  const { passwordHash = '' } = user
  await store.write(update('user', { ...user, passwordHash: `${passwordHash.slice(0, -1)}x` }))
  const voided = pageOf(await visitor.submit(retried, { code: telephone.code() }))
  t.equal(title(voided), 'Sign in')
  await store.write(update('user', user))
})

t.test(
  'the factors of a user are changed only with a recent sign-in that used the second factor',
  async (t) => {
    server.advance(60)
    const visitor = new UserAgent(server.issuer)
    const login = pageOf(await visitor.open(`${server.issuer}/account${section}`))
    const second = pageOf(await visitor.submit(login, alice))
    t.equal(title(second), 'Confirm that it is you')
    const there = pageOf(await visitor.submit(second, { code: telephone.code() }))
    t.match(textOf(there), 'One-time codes are on')
    server.advance(601)
    const again = pageOf(await press(visitor, there, 'decision', 'renew'))
    t.equal(title(again), 'Confirm that it is you')
    t.match(again.html, 'name="password"')
  },
)

t.test('turning codes off signs out every other session, and is audited', async (t) => {
  server.advance(60)
  const signIn = async () => {
    server.advance(60)
    const visitor = new UserAgent(server.issuer)
    const second = await visitor.submit(
      pageOf(await visitor.open(`${server.issuer}/account${section}`)),
      alice,
    )
    return { visitor, page: pageOf(await visitor.submit(pageOf(second), { code: telephone.code() })) }
  }
  const [other, here] = [await signIn(), await signIn()]
  const renewed = pageOf(await press(here.visitor, here.page, 'decision', 'renew'))
  const fresh = recoveryCodesOf(renewed)
  t.equal(fresh.length, 10)
  t.strictSame(
    fresh.filter((code) => recovery.includes(code)),
    [],
  )
  const off = pageOf(await press(here.visitor, here.page, 'decision', 'remove'))
  t.equal(doneOf(off), 'One-time codes are off.')
  t.equal(title(pageOf(await other.visitor.open(`${server.issuer}/account`))), 'Sign in')
  const plain = new UserAgent(server.issuer)
  const { code } = sentAway(await plain.submit(pageOf(await ask(server, portal, {}, plain)), alice))
  t.strictSame((await tokensOf(code))['amr'], ['pwd'])
  const user = await server.deps.store.find('userByLogin', 'alice')
  const events = await server.deps.store.audit({ since: 0, userId: user?.id, limit: 200 })
  const names = events.map(({ name }) => name)
  for (const name of [
    'second-factor-added',
    'recovery-code-used',
    'recovery-codes-made',
    'second-factor-removed',
  ]) {
    t.ok(
      names.some((each) => each === name),
      name,
    )
  }
})

t.test('a secret that was never confirmed can be discarded, and is stored sealed', async (t) => {
  const visitor = new UserAgent(server.issuer)
  const { begun: shown } = await setUp(visitor, bob)
  const user = await server.deps.store.find('userByLogin', 'bob')
  const stored = await server.deps.store.find(secondFactorKind, user?.id ?? '')
  const [, secret = ''] = /<code>([A-Z2-7 ]+)<\/code>/.exec(shown.html) ?? []
  const bytes = Buffer.from(Secret.fromBase32(secret.replaceAll(' ', '')).bytes)
  t.equal(server.deps.keys.unseal(stored?.sealedSecret ?? '', user?.id ?? '').equals(bytes), true)
  t.notMatch(JSON.stringify(stored), bytes.toString('base64url'))
  const gone = pageOf(await press(visitor, shown, 'decision', 'remove'))
  t.equal(doneOf(gone), 'One-time codes are off.')
  t.equal(await server.deps.store.find(secondFactorKind, user?.id ?? ''), undefined)
})

t.test('codes are not turned on for a session that ended or a user who was locked in between', async (t) => {
  const { store } = server.deps
  const userId = (await store.find('userByLogin', 'bob'))?.id ?? ''
  const lock = () =>
    store.transact('user', userId, (user) => lockUser(user as User, { by: 'operator', at: server.now() }))
  for (const end of [() => store.write(endSessionsOf(userId, 0)), lock]) {
    const visitor = new UserAgent(server.issuer)
    const page = await enter(server, visitor, section, bob)
    const { transact } = store
    const delayed: Store['transact'] = async (kind, key, decide) => {
      if (kind === userCredentials) {
        store.transact = transact
        await end()
      }
      return transact(kind, key, decide)
    }
    store.transact = delayed
    await press(visitor, page, 'decision', 'begin')
    t.not(store.transact, delayed, 'it was ended')
    t.equal(await store.find(secondFactorKind, userId), undefined)
  }
})

t.test(
  'a server that was left with the secret before stores no codes that the new one does not open',
  async (t) => {
    const server = await startServer(t)
    const { store, config } = server.deps
    const agent = new UserAgent(server.issuer)
    const page = await enter(server, agent, section)
    const [before, after] = await Promise.all(
      [config.secret ?? '', `${config.secret} after`].map(deriveSealingKey),
    )
    if (before === undefined || after === undefined) throw new Error('two keys are derived')
    const context = { by: 'operator', at: server.now() } as const
    const sources = { store, random: randomBytes, kinds: sealedKinds }
    const change = await beginChange(sources, before, after, context)
    await sealWithBoth(sources, change, after, server.now())
    await sealWithAfter(sources, change, after, context)

    const rejected = pageOf(await press(agent, page, 'decision', 'begin'))
    t.equal(rejected.status, 503)
    t.match(rejected.html, 'Nothing was changed. Try again in a moment.')
    const user = await store.find('userByLogin', 'alice')
    t.equal(await store.find(secondFactorKind, user?.id ?? ''), undefined)
  },
)
