/** The start page: the apps that a user may open, and the end of every session. */
import t from 'tap'
import { put, remove, update } from '../../../src/domain/decision.ts'
import { createGroup } from '../../../src/domain/group.ts'
import type { Client } from '../../../src/domain/model.ts'
import { systemRandom } from '../../../src/system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../../src/users/groups.ts'
import { secondFactorKind } from '../../../src/users/rules/second-factor.ts'
import { integrate, pageOf, place, title } from '../../helpers/authorization.ts'
import { register } from '../../helpers/flow.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import type { Page } from '../../helpers/user-agent.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { parseElements } from '../samples/read-page.ts'
import { enter, press, textOf } from './sections.ts'

const server = await startServer(t)
const { store } = server.deps
const url = `${server.issuer}/account/start`
const operator = { by: 'operator', at: server.now() } as const
const aliceId = (await store.find('userByLogin', 'alice'))?.id ?? ''

const add = (name: string, clientUri: string, members: Partial<Client> = {}) =>
  integrate(server, { name }, { clientUri, ...members })
const change = async (id: string, changed: Partial<Client>) => {
  const client = await store.find('client', id)
  if (client === undefined) throw new Error('no client')
  await store.write(update('client', { ...client, ...changed }))
}
/** The links of the page that leave the server. */
const linksOf = ({ html }: Page) =>
  parseElements(html).flatMap(({ name, attributes }) => {
    const href = attributes.get('href') ?? ''
    return name === 'a' && !href.startsWith('/') ? [href.replaceAll('&amp;', '&')] : []
  })
const startPage = (user = alice) => enter(server, new UserAgent(server.issuer), '/start', user)

t.beforeEach(async () => {
  for (const { row } of await store.page('client', { limit: 1000, after: undefined, only: undefined }))
    await store.write(remove('client', row.id))
})

t.test('a user sees the apps of the operator, by name, and each link passes no referrer', async (t) => {
  await add('Wiki', 'https://wiki.example/')
  await add('Étude', 'https://study.example/home?tab=1')
  await add('Forum', 'http://127.0.0.1:7777/')
  const page = await startPage()
  t.equal(title(page), 'Your apps')
  t.match(textOf(page), /Étude study\.example .*Forum 127\.0\.0\.1:7777 .*Wiki wiki\.example/)
  t.strictSame(linksOf(page), [
    'https://study.example/home?tab=1',
    'http://127.0.0.1:7777/',
    'https://wiki.example/',
  ])
  for (const { name, attributes } of parseElements(page.html))
    if (name === 'a' && attributes.get('href')?.startsWith('http'))
      t.equal(attributes.get('rel'), 'noopener noreferrer')
  for (const { action } of page.forms) t.match(action, /^\/(?!\/)/, 'no form leads away')
})

t.test(
  '[oidc-core-4-initiate-login] an app that starts sign-ins itself is opened there, with the issuer',
  async (t) => {
    const starts = 'https://app.example/begin?x=%20y'
    await add('Portal', 'https://app.example/', { extra: { initiate_login_uri: starts } })
    await add('Plain', 'https://plain.example/', {
      extra: { initiate_login_uri: 'http://plain.example/login' },
    })
    t.strictSame(linksOf(await startPage()), [
      'https://plain.example/',
      `${starts}&${new URLSearchParams({ iss: server.issuer })}`,
    ])
  },
)

t.test('no link leads to anything but https and this computer', async (t) => {
  for (const uri of [
    'http://app.example/',
    'javascript:alert(1)',
    'data:text/html,x',
    'myapp://home',
    '//app.example',
    '/account',
  ])
    await add('Portal', uri, { extra: { initiate_login_uri: uri } })
  const page = await startPage()
  t.strictSame(linksOf(page), [])
  t.match(textOf(page), 'has no app for you to open yet')
})

t.test('no app is there that registered itself, is locked, has no page, or serves no user', async (t) => {
  const clientUri = 'https://app.example/'
  await register(server, { client_name: 'Self', client_uri: clientUri })
  for (const origin of ['registered', 'resource-server'] as const) await add('Other', clientUri, { origin })
  await integrate(server, { name: 'No page' })
  await add('Backup job', clientUri, { redirectUris: [], grantTypes: ['client_credentials'] })
  const locked = await add('Locked', clientUri, { lockedAt: server.now() })
  t.strictSame(linksOf(await startPage()), [])
  await change(locked.id, { lockedAt: undefined as never })
  t.strictSame(linksOf(await startPage()), [clientUri], 'only the lock kept it away')
})

t.test('an app for some groups is there for their members alone, from one request to the next', async (t) => {
  const staff = await changeGroups(store, (groups) =>
    createGroup(groups, { name: 'staff' }, systemRandom(16), operator),
  )
  await add('Payroll', 'https://pay.example/', { extra: { allowed_groups: [staff.id] } })
  t.strictSame(linksOf(await startPage()), [])
  await addToGroup(store, staff, aliceId, operator)
  const page = await startPage()
  t.strictSame(linksOf(page), ['https://pay.example/'])
  t.strictSame(linksOf(await startPage(bob)), [])
  t.notMatch(textOf(await startPage(bob)), 'second step', 'a factor would not help')
  await removeFromGroup(store, staff, aliceId, operator)
  t.strictSame(linksOf(await startPage()), [])
})

t.test(
  'an app whose policy the user cannot meet is not there, and the page says what to set up',
  async (t) => {
    await add('Vault', 'https://vault.example/', { extra: { required_sign_in: 'second factor' } })
    await add('Later', 'https://later.example/', { extra: { required_sign_in: 'passkey from 2999-01-01' } })
    const page = await startPage()
    t.strictSame(linksOf(page), ['https://later.example/'])
    t.match(
      textOf(page),
      'Some apps open only once you have set up a second step or a passkey. Password and sign-in',
    )
    const agent = new UserAgent(server.issuer)
    await enter(server, agent, '/start')
    await store.write(
      put(secondFactorKind, {
        userId: aliceId,
        sealedSecret: 'sealed',
        confirmedAt: server.now(),
        recoveryHashes: [],
        createdAt: server.now(),
      }),
    )
    const able = pageOf(await agent.open(url))
    t.strictSame(linksOf(able), ['https://later.example/', 'https://vault.example/'])
    t.notMatch(textOf(able), 'Some apps open only')
    await store.write(remove(secondFactorKind, aliceId))
  },
)

t.test('the name is in the language of the browser and escaped, the logo is from this server', async (t) => {
  const client = await add('<b>Kurse</b>', 'https://kurse.example/', {
    localized: { 'client_name#fr': 'Cours', 'client_uri#fr': 'https://cours.example/' },
    logoUri: 'https://kurse.example/logo.png',
  })
  const page = await startPage()
  t.match(page.html, '&lt;b&gt;Kurse')
  const logos = parseElements(page.html).filter(({ name }) => name === 'img')
  t.strictSame(
    logos.map(({ attributes }) => attributes.get('src')),
    [`/client-logo?client_id=${client.id}`],
  )
  const french = new UserAgent(server.issuer, { 'accept-language': 'fr' })
  t.strictSame(linksOf(await enter(server, french, '/start')), ['https://cours.example/'])
})

t.test('two hundred clients are looked at for a page, and the next page has the others', async (t) => {
  for (let count = 0; count < 200; count += 1) await integrate(server, { name: 'No page' })
  const agent = new UserAgent(server.issuer)
  const full = await enter(server, agent, '/start')
  t.notMatch(textOf(full), 'More apps')
  await add('Last', 'https://last.example/')
  const first = pageOf(await agent.open(url))
  t.strictSame(linksOf(first), [])
  t.notMatch(textOf(first), 'has no app for you', 'there may be one')
  const [, next = ''] = /<a href="([^"]*)">More apps</.exec(first.html) ?? []
  t.strictSame(linksOf(pageOf(await agent.open(server.issuer + next))), ['https://last.example/'])
  for (const after of ['x', '-1', '99999999999999999999']) {
    const { status } = pageOf(await agent.open(`${url}?${new URLSearchParams({ after })}`))
    t.ok(status < 500, `after=${after} is ${status}`)
  }
})

t.test('signing out everywhere ends every session of the user, and no other', async (t) => {
  const agents = [new UserAgent(server.issuer), new UserAgent(server.issuer)] as const
  const other = new UserAgent(server.issuer)
  for (const agent of agents) await enter(server, agent, '/start')
  await enter(server, other, '/start', bob)
  const [here, phone] = agents
  const page = pageOf(await here.open(url))
  const out = pageOf(await press(here, page, 'everywhere', '1'))
  t.equal(title(out), 'You are signed out')
  t.strictSame(await store.listOf('session', aliceId), [])
  for (const agent of agents) t.equal(place(await agent.open(url)), '/login')
  t.equal(place(await other.open(url)), '/account/start')
  const [event, ...more] = await store.audit({ since: 0, name: 'session-ended', limit: 9 })
  t.match(event, { by: 'user', facts: { which: 'all' } })
  t.equal(more.length, 0)
  await enter(server, phone, '/start')
  t.match(textOf(pageOf(await phone.open(`${server.issuer}/account/activity`))), 'You signed out everywhere.')
  // The form of the session that ended is of no other.
  const again = await here.submit(page, { everywhere: '1' }, page.forms[0])
  t.not(place(again), '/account/start')
  t.equal((await store.listOf('session', aliceId)).length, 1)
})

t.test('only the form of this page in this browser signs out everywhere', async (t) => {
  const agent = new UserAgent(server.issuer)
  await enter(server, agent, '/start')
  const sessions = (await store.listOf('session', aliceId)).length
  const ofBob = await startPage(bob)
  const theirs = new URLSearchParams(
    ofBob.forms.flatMap(({ fields }) => fields.map(({ name, value }): [string, string] => [name, value])),
  )
  for (const body of [new URLSearchParams(), theirs]) {
    body.set('everywhere', '1')
    const response = await agent.send(url, { method: 'POST', body, redirect: 'manual' })
    t.equal(response.status, 403)
  }
  t.equal(place(await agent.open(url)), '/account/start', 'the session is still there')
  const page = pageOf(await agent.open(url))
  t.equal(place(await agent.submit(page, {}, page.forms[0])), '/account/start', 'nor without its button')
  t.equal((await store.listOf('session', aliceId)).length, sessions)
})
