/** What the browser of `prove` sends from pages that others wrote, and what reports show of it. */
import t from 'tap'
import { type BrowserOptions, openBrowser } from '../../src/prove/browser.ts'
import { formsOf } from '../../src/prove/forms.ts'
import { type Recording, recordingOf } from '../../src/prove/presets.ts'
import { curlOf } from '../../src/prove/redact.ts'

const redirectUri = 'http://127.0.0.1:47999/callback'
const signInPage = `<form method="post" action="/enter">
  <input name="user[email]" type="email"><input name="user[pin]" type="password"><button>Go</button></form>`

/** A server whose page takes one password. */
function wireTo(answer: (body: string) => { status: number; location?: string }): BrowserOptions['wire'] {
  return {
    async send({ method = 'GET', headers = {}, ...more }) {
      const sent = { method, headers, ...more }
      if (method === 'GET') return { sent, status: 200, headers: {}, body: signInPage }
      const { status, location } = answer(more.body ?? '')
      return { sent, status, headers: { ...(location !== undefined && { location }) }, body: signInPage }
    },
    allows: () => true,
  }
}

const credentials = { username: 'tester', password: 'correct horse' }

t.test('a report does not show the password, whatever the name of its field', async (t) => {
  const wire = wireTo(() => ({ status: 302, location: `${redirectUri}?code=x` }))
  const { seen, kind } = await openBrowser({ wire, recordings: [], credentials }).visit(
    { url: 'http://id.example/authorize' },
    { redirectUri },
  )
  t.equal(kind, 'callback')
  t.equal(new URLSearchParams(seen.sent.body).get('user[pin]'), credentials.password)
  t.match(curlOf(seen.sent), '-d "user[pin]=$USER_PIN_"')
  t.match(curlOf(seen.sent), 'user[email]=tester')
  t.notMatch(curlOf(seen.sent), 'horse')
})

t.test('a curl line has the method that was sent, also with a form that has no fields', async (t) => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const methodOf = (method: string, body?: string) =>
    /^curl(?: -X (\w+))?/.exec(
      curlOf({ method, url: 'http://id.example/', headers, ...(body !== undefined && { body }) }),
    )?.[1]
  t.equal(methodOf('GET'), undefined)
  t.equal(methodOf('POST', 'a=b'), undefined)
  t.equal(methodOf('POST', ''), 'POST')
  t.equal(methodOf('PUT', 'a=b'), 'PUT')
})

t.test('a password that is rejected is not sent again', async (t) => {
  let sent = 0
  const wire = wireTo(() => {
    sent += 1
    return { status: 200 }
  })
  const options = { wire, recordings: [], credentials }
  for (const browser of [openBrowser(options), openBrowser(options)])
    await t.rejects(browser.visit({ url: 'http://id.example/authorize' }, { redirectUri }), {
      message: 'the server does not sign in tester',
    })
  t.equal(sent, 1)
})

t.test('the names of forms are checked', async (t) => {
  const signIn = { username: 'email', password: 'secret' }
  const consent = { has: 'challenge', approve: { name: 'answer', value: 'yes' }, deny: { link: '/abort$' } }
  const sound: Recording = { name: 'own', signIn, consent }
  t.strictSame(recordingOf({ ...sound, user: credentials }), sound)
  t.strictSame(recordingOf({ signIn, consent }), sound)
  for (const [wrong, says] of [
    [{}, /signIn/],
    [{ signIn: { username: 'email' }, consent }, /signIn.password/],
    [{ signIn: { ...signIn, press: 1 }, consent }, /signIn.press/],
    [{ signIn, consent: {} }, /consent.has/],
    [{ signIn, consent: { ...consent, approve: 'yes' } }, /consent.approve/],
    [{ signIn, consent: { ...consent, deny: { link: '(' } } }, /consent.deny/],
  ] as const)
    t.match(recordingOf(wrong), says)
})

t.test('a value may contain what ends a tag elsewhere', async (t) => {
  const html = `<form method="post"><input type="hidden" name="state" value='a>b"c'><button name="x" value="1>0">Go</button>`
  const [form] = formsOf(`${html}</form>`, 'http://id.example/')
  t.strictSame(
    form?.controls.map(({ name, value, text }) => [name, value, text]),
    [
      ['state', 'a>b"c', ''],
      ['x', '1>0', 'Go'],
    ],
  )
})
