/** What the first requests say about the proxy in front of the server. */
import t, { type Test } from 'tap'
import { arrivalPath, proofAt, proofHeader } from '../../src/doctor/arrival.ts'
import { type ServerOptions, startServer } from '../helpers/server.ts'

const forwarded = { 'x-forwarded-for': '203.0.113.7' }
type Sent = readonly Record<string, string>[]

/** @param sent Headers of each request; `peer` is where it comes from. */
async function warnings(t: Test, options: ServerOptions, sent: Sent, path = '/api/oauth/jwks') {
  const server = await startServer(t, options)
  for (const { peer: remoteAddress, ...headers } of sent)
    await server.app.inject({ url: path, headers, ...(remoteAddress && { remoteAddress }) })
  const warned = server.log
    .map((line) => JSON.parse(line) as { level: number; msg: string })
    .filter(({ level }) => level === 40)
    .map(({ msg }) => msg)
  return { warned, finding: server.app.forwardingFinding() }
}

const times = (count: number, headers: Record<string, string> = {}): Sent =>
  Array.from({ length: count }, () => headers)

t.test('a proxy that is not trusted is named once, with the setting', async (t) => {
  const { warned, finding } = await warnings(t, {}, times(12, forwarded))
  t.equal(warned.length, 1)
  t.match(
    warned[0],
    /^forwarded address: X-Forwarded-For of (?:127\.0\.0\.1|::1) does not count: .*\(trustProxy\)$/,
  )
  t.match(finding, {
    level: 'problem',
    check: 'forwarded address',
    change: [/trustProxy|LYCHGATE_TRUST_PROXY/],
  })
})

t.test('a trusted proxy that sends no X-Forwarded-For is named once', async (t) => {
  const { warned, finding } = await warnings(t, { trustProxy: ['127.0.0.1', '::1'] }, times(12))
  t.equal(warned.length, 1)
  t.match(warned[0], /^forwarded address: the proxy at \S+ sends no X-Forwarded-For: .*\(trustProxy\)$/)
  t.match(finding?.change, [/proxy_set_header X-Forwarded-For/])
})

t.test('requests that come directly, from the machine itself, do not end the detection', async (t) => {
  const direct = times(1, { peer: '127.0.0.1' })
  const [proxy, other] = [{ peer: '10.0.0.7' }, { peer: '10.0.0.8' }]
  const mixed = (one: Record<string, string>): Sent => [
    ...direct,
    ...times(5, one),
    ...direct,
    ...times(5, { ...one, ...other }),
    ...times(5, one),
    ...direct,
  ]
  const silent = await warnings(t, { trustProxy: ['10.0.0.0/24'] }, mixed(proxy))
  t.equal(silent.warned.length, 1)
  t.match(silent.warned[0], 'the proxy at 10.0.0.7 sends no X-Forwarded-For')
  const untrusted = await warnings(t, {}, mixed({ ...proxy, ...forwarded }))
  t.equal(untrusted.warned.length, 1)
  t.match(untrusted.warned[0], 'X-Forwarded-For of 10.0.0.7 does not count')
  const late = [...times(1000, { peer: '127.0.0.1' }), ...times(12, { ...proxy, ...forwarded })]
  t.strictSame((await warnings(t, {}, late)).warned, [], 'after a thousand requests nothing is looked at')
})

t.test('there is no warning where addresses arrive, or without a proxy', async (t) => {
  const trustProxy = ['127.0.0.1', '::1']
  const silent: [ServerOptions, Sent, string?][] = [
    [{}, times(12)],
    [{}, times(9, forwarded)],
    [{}, times(12, { ...forwarded, peer: '1.1.1.1' })],
    [{ trustProxy: ['10.0.0.7'] }, times(12, { peer: '127.0.0.1' })],
    [{}, times(12, forwarded), '/livez'],
    [{ trustProxy }, times(12, forwarded)],
    [{ trustProxy }, [...times(9), forwarded, ...times(12)]],
  ]
  for (const [options, sent, path] of silent)
    t.strictSame(await warnings(t, options, sent, path), { warned: [], finding: undefined })
})

t.test('a rejection by the rate limit names trustProxy where X-Forwarded-For does not count', async (t) => {
  const limits = { rateLimits: 'on', requestsPerMinute: { token: 1 } } as const
  const describe = async (options: ServerOptions, headers: Record<string, string>) => {
    const server = await startServer(t, { ...limits, ...options })
    const ask = () =>
      fetch(`${server.issuer}/api/oauth/token`, { method: 'POST', headers, body: new URLSearchParams() })
    await ask()
    const slowed = await ask()
    t.equal(slowed.status, 429)
    return ((await slowed.json()) as Record<string, string>)['error_description']
  }
  const plain = 'too many requests from this network; slow down (requestsPerMinute)'
  t.equal(await describe({}, {}), plain)
  t.equal(await describe({ trustProxy: ['127.0.0.1', '::1'] }, forwarded), plain)
  t.equal(
    await describe({}, forwarded),
    `${plain}; X-Forwarded-For of this proxy does not count (trustProxy)`,
  )
})

t.test('only who has the secret of the server learns how a request arrived', async (t) => {
  const { app, deps } = await startServer(t, { trustProxy: ['127.0.0.1'] })
  const { pseudonym } = deps.keys
  const now = deps.clock()
  const ask = (proof?: string) =>
    app.inject({
      url: arrivalPath,
      headers: { ...forwarded, ...(proof !== undefined && { [proofHeader]: proof }) },
    })
  const proof = proofAt(now, pseudonym)
  const address = forwarded['x-forwarded-for']
  t.strictSame((await ask(proof)).json(), {
    peer: '127.0.0.1',
    isForwarded: true,
    isTrusted: true,
    client: address,
    forwarded: address,
  })
  const wrong = [undefined, '', 'x', `${proof}x`, proof.slice(0, -1), proofAt(now, () => 'x')]
  const old = [-100, 100, 86_400].map((seconds) => proofAt(now + seconds, pseudonym))
  const nothing = (await app.inject('/oauth/nothing')).json()
  for (const one of [...wrong, ...old]) {
    const response = await ask(one)
    t.equal(response.statusCode, 404, one ?? 'none')
    t.equal(response.json().error_description, nothing.error_description)
  }
})
