/** The web application as its README starts it: added by an operator, with a secret and its own sessions. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { run } from '../helpers/command.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { freePort } from '../helpers/free-port.ts'
import { newUser } from '../helpers/user.ts'
import { type Landing, UserAgent } from '../helpers/user-agent.ts'

const { issuer, user, location } = await startExampleServer(t)
const origin = `http://127.0.0.1:${await freePort()}`
const added = await run([
  ...['client', 'add', '--json', '--name', 'Course site', ...location],
  ...['--redirect-uri', `${origin}/callback`, '--post-logout-redirect-uri', `${origin}/`],
  ...['--backchannel-logout-uri', `${origin}/backchannel-logout`],
])
const { client_id: CLIENT_ID, client_secret: CLIENT_SECRET } = JSON.parse(added.stdout)
const site = runExample(t, ['web-app/server.ts'], {
  ISSUER: issuer,
  ORIGIN: origin,
  CLIENT_ID,
  CLIENT_SECRET,
})
await site.until(/Course site is ready at .*\n/)

function sentTo(landing: Landing): URL {
  if (landing.at === 'page') throw new Error(`no redirect: ${landing.page.html}`)
  return landing.location
}

function pageOf(landing: Landing) {
  if (landing.at === 'redirect') throw new Error(`redirected to ${landing.location}`)
  return landing.page
}

t.test('the web application signs a user in, and out everywhere', async (t) => {
  const browser = new UserAgent(origin)
  t.match(pageOf(await browser.open(`${origin}/`)).html, /Sign in/)
  const request = sentTo(await browser.open(`${origin}/courses`))
  t.match(Object.fromEntries(request.searchParams), { code_challenge_method: 'S256', nonce: String })
  const before = browser.cookies.get('session')
  const home = pageOf(await browser.open((await user.approve(request)).href))
  t.equal(home.url, `${origin}/`)
  t.match(home.html, /Hello Alice/)
  t.not(browser.cookies.get('session'), before, 'the session has a new id')
  t.notMatch([...browser.cookies.values()].join(), /lyc_/, 'and the browser no token')
  t.match(pageOf(await browser.open(`${origin}/courses`)).html, /caller&#34;:&#34;user/)

  const other = new UserAgent(origin)
  other.cookies.set('session', before ?? '')
  t.match(pageOf(await other.open(`${origin}/`)).html, /Sign in/, 'the old id names nobody')

  const logout = sentTo(await browser.submit(home, {}))
  t.equal(logout.origin + logout.pathname, `${issuer}/oauth/logout`)
  const back = sentTo(await user.agent.open(logout.href))
  t.equal(back.href, `${origin}/`)
  t.match(pageOf(await browser.open(back.href)).html, /Sign in/)
  const again = await user.agent.open(sentTo(await browser.open(`${origin}/login`)).href)
  t.match(pageOf(again).html, /name="password"/, 'and the server asks for the password again')
})

t.test('a session at the web application ends with the one at the server', async (t) => {
  const [browser, other] = [new UserAgent(origin), new UserAgent(origin)]
  await browser.open((await user.approve(sentTo(await browser.open(`${origin}/login`)))).href)
  const bob = newUser({ issuer }, { username: 'bob', password: 'bob-in-dev' })
  await other.open((await bob.approve(sentTo(await other.open(`${origin}/login`)))).href)
  const forged = new URLSearchParams({ logout_token: 'e30.e30.' })
  const rejected = await fetch(`${origin}/backchannel-logout`, { method: 'POST', body: forged })
  t.equal(rejected.status, 400, 'a token that nobody signed ends nothing')
  t.match(pageOf(await browser.open(`${origin}/`)).html, /Hello Alice/)
  t.equal((await run(['session', 'end', '--user', 'alice', '--yes', ...location])).code, 0)
  while (!/Sign in/.test(pageOf(await browser.open(`${origin}/`)).html)) await setTimeout(50)
  t.match(pageOf(await other.open(`${origin}/`)).html, /Hello Bob/, 'and nobody else is signed out')
})

t.test('the web application accepts a response only in the browser that started the request', async (t) => {
  const [browser, victim] = [new UserAgent(origin), new UserAgent(origin)]
  const response = await user.approve(sentTo(await browser.open(`${origin}/login`)))
  t.match(pageOf(await victim.open(response.href)).html, /Sign in/)
  await victim.open(`${origin}/login`)
  t.not(pageOf(await victim.open(response.href)).status, 200, 'not even in one that asked for another')
  t.match(pageOf(await victim.open(`${origin}/`)).html, /Sign in/)

  const rejected = sentTo(await browser.open(`${origin}/login`))
  rejected.searchParams.set('prompt', 'consent')
  t.match(pageOf(await browser.open((await user.deny(rejected)).href)).html, /Sign in/)
})

t.test('the web application sends a user with a dead token to sign in again', async (t) => {
  const bob = newUser({ issuer }, { username: 'bob', password: 'bob-in-dev' })
  const browser = new UserAgent(origin)
  const response = await bob.approve(sentTo(await browser.open(`${origin}/login`)))
  t.match(pageOf(await browser.open(response.href)).html, /Hello Bob/)
  t.equal((await run(['user', 'remove', 'bob', '--yes', ...location])).code, 0)
  t.equal(sentTo(await browser.open(`${origin}/courses`)).pathname, '/oauth/authorize')
  t.equal(await site.stop(), 0)
})
