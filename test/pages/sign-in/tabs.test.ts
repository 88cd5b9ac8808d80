import t from 'tap'
import {
  ask,
  integrate,
  pageOf,
  pick,
  place,
  sentAway,
  signedIn,
  title,
} from '../../helpers/authorization.ts'
import { claimsOf, exchange, type Tokens } from '../../helpers/flow.ts'
import { bob, startServer } from '../../helpers/server.ts'

// Two tabs of one browser: what a page showed when it was submitted counts.
const server = await startServer(t)

t.test(
  '[rfc6749-4.1.2.1-access-denied] a denial stands even if another tab has allowed the same in between',
  async (t) => {
    const portal = await integrate(server)
    const user = await signedIn(server, portal)
    const tabs = [await ask(server, portal, {}, user), await ask(server, portal, {}, user)]
    const [one, two] = tabs.map(pageOf)
    if (one === undefined || two === undefined) throw new Error('two pages')
    const { code } = sentAway(await user.submit(one, { decision: 'approve' }))
    const rejected = sentAway(await user.submit(two, { decision: 'deny' }))
    t.equal(rejected['error'], 'access_denied')
    t.notOk('code' in rejected)
    t.equal((await exchange(server, portal, String(code))).status, 200, 'what was allowed is')
    t.equal(pageOf(await user.submit(two, { decision: 'approve' })).status, 400, 'redirected once')
  },
)

t.test('the button chooses the user it names, even if another signs in in a second tab', async (t) => {
  const portal = await integrate(server, { consent: 'skip' })
  const user = await signedIn(server, await integrate(server))
  const choice = pageOf(await ask(server, portal, { prompt: 'select_account' }, user))
  t.equal(title(choice), 'Choose an account')
  t.match(choice.html, 'alice')
  const login = pageOf(await ask(server, portal, { prompt: 'login' }, user))
  t.ok('code' in sentAway(await user.submit(login, bob)))
  const chosen = sentAway(await user.submit(choice, pick(choice)))
  const tokens = (await (await exchange(server, portal, chosen['code'] ?? '')).json()) as Tokens
  const alice = await server.deps.store.find('userByLogin', 'alice')
  t.equal(claimsOf(tokens.id_token)['sub'], alice?.id)
})

t.test('a user signed out in a second tab is not chosen: the page shows the remaining ones', async (t) => {
  const portal = await integrate(server, { consent: 'skip' })
  const user = await signedIn(server, await integrate(server))
  const choice = pageOf(await ask(server, portal, { prompt: 'select_account' }, user))
  const login = pageOf(await ask(server, portal, { prompt: 'login' }, user))
  t.ok('code' in sentAway(await user.submit(login, bob)))
  const both = pageOf(await user.open(choice.url))
  const out = pageOf(await user.open(`${server.issuer}/oauth/logout`))
  await user.submit(out, { decision: 'sign-out' })
  const left = pageOf(await user.submit(both, pick(both, 'bob')))
  t.equal(title(left), 'Choose an account')
  t.strictSame(pick(left, 'bob'), { account: '' })
  t.equal(place(await user.submit(left, pick(left, 'alice'))), 'sent to https://portal.example')
})
