import t from 'tap'
import { sealHandle } from '../../src/domain/handle.ts'
import { changeKeys } from '../../src/keys/change-keys.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { loadKeyRing } from '../../src/keys/key-ring.ts'
import {
  deriveSealingKey,
  ForeignKeys,
  isDevelopmentKey,
  type ServerKind,
  seal,
  unseal,
  WrongSecret,
} from '../../src/keys/seal.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import { seededRandom, testClock } from '../helpers/clock.ts'

const secret = 'a secret for tests that is long enough'
const policy = keyPolicy(loadConfig({ mode: 'dev' }))

async function world() {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const clock = testClock()
  const load = (server: ServerKind, seed: string) =>
    loadKeyRing({ store, secret, policy, clock, random: seededRandom(seed), server })
  return { store, clock, load }
}

t.test('the keys of a development server are marked, also after a rotation', async (t) => {
  const { store, clock, load } = await world()
  const ring = await load('development', 'one')
  clock.advance(policy.rotationSeconds)
  await ring.reload()
  const keys = await store.list('key')
  t.equal(keys.length, 8)
  t.ok(keys.every(isDevelopmentKey))
  const sealingKey = await deriveSealingKey(secret)
  const command = { store, sealingKey, clock, random: seededRandom('two'), operator: 'me@here' }
  await changeKeys(command, {
    needs: () => ['HS256'],
    decide: (_ring, fresh) => {
      t.ok(fresh.every(isDevelopmentKey), 'by a command, too')
      return { result: undefined, writes: [] }
    },
  })
})

t.test('a production server rejects the keys of a development server with the same secret', async (t) => {
  const { store, load } = await world()
  await load('development', 'one')
  const before = await store.list('key')
  await t.rejects(load('production', 'two'), ForeignKeys)
  t.strictSame(await store.list('key'), before)
})

t.test('a development server rejects the keys of a production server', async (t) => {
  const { store, load } = await world()
  await load('production', 'one')
  t.notOk((await store.list('key')).some(isDevelopmentKey))
  await t.rejects(load('development', 'two'), ForeignKeys)
})

t.test('the mark of a development key cannot be removed or added', async (t) => {
  const sealingKey = await deriveSealingKey(secret)
  for (const development of [true, false]) {
    const sealed = seal(Buffer.from('private'), '7', { sealingKey, nonce: Buffer.alloc(12), development })
    t.equal(unseal(sealed, '7', sealingKey).toString(), 'private')
    const other = development ? sealed.replace('dev.', '') : `dev.${sealed}`
    t.throws(() => unseal(other, '7', sealingKey), WrongSecret)
  }
})

t.test(
  'a token of a development server is invalid at a production server with the same secret',
  async (t) => {
    const [development, production] = [await world(), await world()]
    const [theirs, ours] = [
      await development.load('development', 'one'),
      await production.load('production', 'two'),
    ]
    const now = development.clock()
    const contents = { grantId: 'AAAAAAAAAAAAAAAA', seq: 1, issuedAt: now, expiresAt: now + 60 } as const
    const token = sealHandle({ kind: 'access', ...contents }, theirs.handles.current, 's'.repeat(22))
    t.ok(await theirs.open(token, 'access'))
    t.equal(await ours.open(token, 'access'), undefined)
    const jws = await theirs.sign('RS256', 'JWT', { sub: 'somebody' })
    t.strictSame(await theirs.verify(jws, 'JWT'), { sub: 'somebody' })
    t.equal(await ours.verify(jws, 'JWT'), undefined)
  },
)
