/** `lychgate doctor` asks each protected host whether what a client forges reaches its app. */
import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import { faultsOf, startProxied } from '../helpers/doctor.ts'
import { protect } from '../helpers/protected-host.ts'

const setup = await startProxied(t)
const { store, now } = { store: setup.server.deps.store, now: setup.server.now }
// The proxy in front of the issuer passes everything on, as one that was configured wrong.
const host = `127.0.0.1.example:${setup.proxy.port}`
const ofHosts = async () =>
  (await faultsOf(setup.environment)).filter(({ check }) => check === 'protected host')

t.test('a host without a proxy is a warning; a client that is locked is not asked', async (t) => {
  const id = await protect(setup.server, host)
  t.match(await ofHosts(), [{ level: 'warning', said: `${host} cannot be reached from here` }])
  const client = await store.find('client', id)
  if (client === undefined) throw new Error('the client is there')
  await store.write(update('client', { ...client, lockedAt: now() }))
  t.strictSame(await ofHosts(), [])
})

t.test('a proxy that passes on what a client forges is a problem, and each header is named', async (t) => {
  const name = `localhost:${setup.proxy.port}`
  await protect(setup.server, name)
  const [finding, ...others] = await ofHosts()
  t.strictSame(others, [])
  t.match(finding, {
    level: 'problem',
    said: `${name}: headers that a client forges reach the app`,
    found: /^(?=.*\bremote-user\b)(?=.*\bremote_user\b)(?=.*\bx_lychgate-assertion\b)(?=.*\bcookie\b)/,
    change: ['configure the proxy as in docs/forward-auth.md'],
  })
})
