import t from 'tap'
import { ask, integrate, pageOf, place, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { exchange } from '../helpers/flow.ts'
import { bob, startServer } from '../helpers/server.ts'

// Two tabs of one browser: what a page showed when it was answered is what counts.
const server = await startServer(t)

t.test(
  '[rfc6749-4.1.2.1-access-denied] a refusal stays one when another tab has allowed the same meanwhile',
  async (t) => {
    const portal = await integrate(server)
    const person = await signedIn(server, portal)
    const tabs = [await ask(server, portal, {}, person), await ask(server, portal, {}, person)]
    const [one, two] = tabs.map(pageOf)
    if (one === undefined || two === undefined) throw new Error('two pages')
    const { code } = sentAway(await person.submit(one, { decision: 'approve' }))
    const refused = sentAway(await person.submit(two, { decision: 'deny' }))
    t.equal(refused['error'], 'access_denied')
    t.notOk('code' in refused)
    t.equal((await exchange(server, portal, String(code))).status, 200, 'what was allowed is')
    t.equal(pageOf(await person.submit(two, { decision: 'approve' })).status, 400, 'answered once')
  },
)

t.test('an account chosen in one tab is not another one that signed in in a second tab', async (t) => {
  const portal = await integrate(server, { consent: 'skip' })
  const person = await signedIn(server, await integrate(server))
  const choice = pageOf(await ask(server, portal, { prompt: 'select_account' }, person))
  t.equal(title(choice), 'Choose an account')
  t.match(choice.html, 'alice')
  const login = pageOf(await ask(server, portal, { prompt: 'login' }, person))
  t.ok('code' in sentAway(await person.submit(login, bob)))
  const stale = pageOf(await person.submit(choice, { decision: 'continue' }))
  t.equal(stale.status, 403)
  t.equal(title(stale), 'This page is out of date')
  const again = pageOf(await person.open(choice.url))
  t.match(again.html, 'bob')
  t.equal(place(await person.submit(again, { decision: 'continue' })), 'sent to https://portal.example')
})

t.test('the sign-in page chooses no account: only the page that shows one does', async (t) => {
  const portal = await integrate(server, { consent: 'skip' })
  const person = await signedIn(server, await integrate(server))
  const login = pageOf(await ask(server, portal, { prompt: 'login' }, person))
  const chosen = pageOf(await person.submit(login, { decision: 'continue' }))
  t.equal(chosen.status, 403)
  t.equal(title(chosen), 'This page is out of date')
  t.ok('code' in sentAway(await person.submit(login, bob)), 'the page still works')
})
