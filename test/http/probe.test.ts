import t from 'tap'
import { openSighting, probeHeader, sealProbe, sightingHeader } from '../../src/domain/probe.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { trustProxy: ['127.0.0.1', '::1'] })
const secret = server.deps.keys.handles.current.secret
const nonce = 'n'.repeat(22)

const ask = (probe: string) =>
  fetch(`${server.issuer}/livez`, { headers: { [probeHeader]: probe, 'x-forwarded-for': '192.0.2.1' } })

t.test('a request marked with a key of the store learns how it arrived', async (t) => {
  const probe = { at: server.now(), nonce }
  const response = await ask(sealProbe(probe, secret))
  const value = response.headers.get(sightingHeader)
  const sighting = openSighting(value, probe, secret)
  for (const name of ['host', 'x-forwarded-for']) t.ok(sighting?.headers.includes(name), name)
  t.match(sighting, {
    peer: /127\.0\.0\.1$|^::1$/,
    countedAs: '192.0.2.1',
    forwardedFor: '192.0.2.1',
    isPeerTrusted: true,
  })
  t.equal(
    openSighting(value, { ...probe, nonce: 'm'.repeat(22) }, secret),
    undefined,
    'to this question alone',
  )
  t.equal(openSighting(`${value?.replace('.', 'A.')}`, probe, secret), undefined, 'as it was sealed')
})

t.test('nobody else learns anything', async (t) => {
  const now = server.now()
  const probes: [string, string][] = [
    ['another key', sealProbe({ at: now, nonce }, 'another secret')],
    ['an old one', sealProbe({ at: now - 301, nonce }, secret)],
    // Well ahead: the clock goes on while the others are asked.
    ['one of tomorrow', sealProbe({ at: now + 360, nonce }, secret)],
    ['another instant', sealProbe({ at: now - 1, nonce }, secret).replace(/^\d+/, String(now))],
    ['no probe', 'x'],
  ]
  for (const [about, probe] of probes) {
    const response = await ask(probe)
    t.equal(response.status, 200, about)
    t.equal(response.headers.get(sightingHeader), null, about)
  }
})
