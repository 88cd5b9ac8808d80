import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import t from 'tap'
import { insert, type Write } from '../../src/domain/decision.ts'
import { approveGrant, mintGrantId, redeemGrant, rotateGrant } from '../../src/domain/grant.ts'
import { openStore } from '../../src/storage/open.ts'
import * as sample from './samples.ts'

const lifetimes = {
  codeSeconds: 60,
  refreshTokenIdleSeconds: 2_592_000,
  refreshTokenAbsoluteSeconds: 7_776_000,
  refreshReuseSeconds: 10,
}
const issue = { accessTokenSeconds: 3600, refreshable: true }
const [grants, users, apps] = [4000, 500, 20]
const scope = ['openid', 'courses:read']
/** 16 random bytes in the form of an id, the same at each run. */
const idOf = (prefix: string, n: number) =>
  prefix + hash('sha256', `${prefix} ${n}`, 'buffer').subarray(0, 16).toString('base64url')

/** The life of a grant: approved, redeemed, refreshed once. */
function lifeOf(n: number): readonly Write[] {
  const now = 1_790_000_000 + 7 * n
  const fresh = hash('sha256', `grant ${n}`, 'buffer')
  const grant = approveGrant(
    {
      clientId: idOf('client_', n % apps),
      redirectUri: 'https://app.example/callback',
      redirectUriSent: true,
      responseMode: 'query',
      scope,
      resource: ['https://id.example.com'],
      codeChallenge: sample.digest(n),
      nonce: sample.bytes(n, 16),
      prompt: [],
      claims: { userinfo: [], idToken: [] },
    },
    {
      ...sample.session,
      userId: idOf('user_', (n * 7919) % users),
      authenticatedAt: now - 9000,
      methods: ['pwd'],
    },
    scope,
    {
      grantId: mintGrantId(fresh.subarray(0, 8), now),
      grantSecret: fresh.subarray(8, 24).toString('base64url'),
      authTimeOwed: false,
    },
    lifetimes,
    now,
  )
  const redeemed = redeemGrant(grant, issue, lifetimes, now + 2)
  if ('rejection' in redeemed) throw redeemed.rejection
  const rotated = rotateGrant(redeemed.result, 1, issue, lifetimes, now + 3400)
  if ('rejection' in rotated) throw rotated.rejection
  return [{ op: 'insertGrant', grant }, ...redeemed.writes, ...rotated.writes]
}

t.test('a stored grant takes at most 200 bytes of the database file, including its index', async (t) => {
  const file = `${t.testdir()}/lychgate.db`
  const numbers = Array.from({ length: grants }, (_, n) => n)
  const fill = async (...writes: readonly Write[]): Promise<number> => {
    const store = await openStore(`sqlite:${file}`)
    await store.write(...writes)
    await store.close()
    return statSync(file).size
  }
  const owners = await fill(
    ...numbers.slice(0, apps).map((n): Write => {
      return insert('client', { ...sample.client, id: idOf('client_', n) })
    }),
    ...numbers.slice(0, users).map((n): Write => {
      return insert('user', { ...sample.user, id: idOf('user_', n), username: `p${n}` })
    }),
  )
  const bytes = ((await fill(...numbers.flatMap(lifeOf))) - owners) / grants
  t.ok(bytes <= 200, `${bytes} bytes`)
  t.ok(bytes > 100, 'and they are there')
})
