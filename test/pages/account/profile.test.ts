import t from 'tap'
import { pageOf } from '../../helpers/authorization.ts'
import { callApi, obtainTokens, register } from '../../helpers/flow.ts'
import { bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { json } from '../../helpers/wire.ts'
import { doneOf, enter, textOf } from './sections.ts'

const server = await startServer(t)
const agent = new UserAgent(server.issuer)
const client = await register(server)
const tokens = await obtainTokens(server, client, { agent, fields: { scope: 'openid profile email' } })
const userInfo = async () => json(await callApi(server, '/api/oauth/userinfo', tokens.access_token))
const stored = () => server.deps.store.find('userByLogin', 'alice')

const fill = async (page: Page, fields: Record<string, string>) =>
  pageOf(await agent.submit(page, fields, page.forms.find((form) => form.fields.length > 2) ?? page.forms[0]))
const faultOf = ({ html }: Page) => /class="fault"[^>]*>([^<]*)</.exec(html)?.[1]

t.test('a user changes what the operator allows, and apps see it', async (t) => {
  const page = await enter(server, agent, '/profile')
  const names = page.forms.flatMap(({ fields }) => fields.map(({ name }) => name))
  t.strictSame(names, ['csrf', 'name', 'given_name', 'family_name', 'nickname'])
  server.advance(5)
  const after = await fill(page, { name: ' Alicia "<Ångström>" ', nickname: '', gender: 'other', sub: 'x' })
  t.equal(doneOf(after), 'Saved.')
  const now = await userInfo()
  t.equal(now['name'], 'Alicia "<Ångström>"')
  t.notOk('nickname' in now, 'a claim without a value is left out')
  t.equal(now['gender'], 'female', 'what the operator keeps stays')
  t.equal(now['given_name'], 'Alice')
  t.equal(now['updated_at'], (await stored())?.updatedAt)
  t.match(textOf(after), /Set by Lychgate User name alice .*Gender female .*Address Storgatan 1, Uppsala/)
  const events = await server.deps.store.audit({ since: 0, name: 'user-changed', limit: 9 })
  t.strictSame(
    events.map(({ by, facts }) => [by, facts]),
    [['user', { changed: 'name nickname' }]],
  )
  await fill(after, {})
  t.equal((await server.deps.store.audit({ since: 0, name: 'user-changed', limit: 9 })).length, 1)
})

t.test(
  'names that deceive or do not fit are rejected next to their field, and nothing changes',
  async (t) => {
    const page = await enter(server, agent, '/profile')
    const before = await userInfo()
    for (const [name, fault] of [
      ['x'.repeat(201), /^That is too long/],
      ['Alice\u202Eecila', /^It contains invisible characters/],
      ['Ali\u200Bce', /^It contains invisible characters/],
      ['Ali\nce', /^It contains invisible characters/],
    ] as const) {
      const after = await fill(page, { name })
      t.equal(after.status, 400)
      t.match(faultOf(after), fault)
    }
    t.strictSame(await userInfo(), before)
  },
)

t.test('the profile of one user does not affect another', async (t) => {
  const other = new UserAgent(server.issuer)
  const page = await enter(server, other, '/profile', bob)
  t.notMatch(page.html, /Ångström/)
  const mine = await enter(server, agent, '/profile')
  const csrf = mine.forms[0]?.fields[0]?.value ?? ''
  const crossed = await other.send(page.url, {
    method: 'POST',
    body: new URLSearchParams({ csrf, name: 'Mallory' }),
  })
  t.equal(crossed.status, 403)
  t.equal((await server.deps.store.find('userByLogin', 'bob'))?.claims['name'], 'Bob')
})

t.test('the operator chooses what users may change', async (t) => {
  const strict = await startServer(t, { accounts: { editable: ['website', 'zoneinfo'], deletion: 'off' } })
  const browser = new UserAgent(strict.issuer)
  const page = await enter(strict, browser, '/profile')
  const [form] = page.forms
  t.strictSame(
    form?.fields.map(({ name }) => name),
    ['csrf', 'website', 'zoneinfo'],
  )
  for (const path of ['/account/email', '/account/delete']) {
    t.equal(pageOf(await browser.open(strict.issuer + path)).status, 404, path)
    t.notMatch(page.html, `"${path}"`)
  }
  t.notMatch((await enter(strict, browser, '/privacy')).html, '/account/delete')
  const bad = pageOf(await browser.submit(page, { website: 'javascript:alert(1)' }, form))
  t.match(faultOf(bad), /^Enter a web address/)
  const good = pageOf(
    await browser.submit(page, { website: 'https://a.example', zoneinfo: 'Asia/Tokyo' }, form),
  )
  t.equal(doneOf(good), 'Saved.')
})
