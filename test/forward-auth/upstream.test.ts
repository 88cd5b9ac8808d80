/** A user who came to a protected host through an upstream goes with it. */
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { HostBrowser, protect } from '../helpers/protected-host.ts'
import { startServer } from '../helpers/server.ts'
import { goAway, locationOf, pageOf, startStandInUpstream, upstreamOf } from '../helpers/stand-in-upstream.ts'

const host = 'app.example.com'

t.test('the cookie of a host ends with the upstream through which its user came', async (t) => {
  const [port, store] = [await freePort(), `sqlite:${join(newFolder(t), 'lychgate.db')}`]
  const upstream = await startStandInUpstream(t)
  const config = upstreamOf(t, upstream.issuer, { firstSignIn: 'any' })
  const startWith = (upstreams: (typeof config)[]) =>
    startServer(t, { mode: 'dev', port, store, upstreams, trustProxy: ['127.0.0.1', '::1'] })
  const server = await startWith([config])
  await protect(server, host)
  const through = new HostBrowser(server, host)
  const begun = await through.route((await through.ask()).headers.get('location') ?? '')
  const away = await goAway(through.agent, begun.headers.get('location') ?? '')
  await through.route(locationOf(await through.agent.open(upstream.respondTo(away))))
  const direct = new HostBrowser(server, host)
  await direct.signIn()
  for (const browser of [through, direct]) t.equal((await browser.ask()).status, 200)
  await server.close()

  for (const upstreams of [[{ ...config, enabled: false }], []]) {
    const after = await startWith(upstreams)
    const asked = await through.ask()
    t.equal(asked.status, 302)
    t.equal(asked.headers.get('remote-user'), null)
    const script = await through.ask({ headers: { accept: 'application/json' } })
    t.equal(script.status, 401)
    t.match(await script.json(), { error: 'login_required' })
    const again = await through.route(asked.headers.get('location') ?? '')
    const page = pageOf(await through.agent.open(again.headers.get('location') ?? ''))
    t.match(page.html, 'name="password"', 'nor does its session sign in to the host again')
    t.equal((await through.ask()).status, 302)
    t.equal((await direct.ask()).status, 200, 'other users stay')
    await after.close()
  }
  await startWith([config])
  t.equal((await through.ask()).status, 302, 'what has ended does not come back with the upstream')
})
