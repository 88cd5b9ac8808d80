import { argon2Sync } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { derive } from '../../src/users/password-threads.ts'
import {
  createPasswordQueue,
  decoyHash,
  hashPassword,
  PasswordQueueFull,
  passwordFault,
  preparePassword,
  verifyPassword,
} from '../../src/users/passwords.ts'
import { seededRandom } from '../helpers/clock.ts'

const password = 'correct horse'

t.test('a hash is a PHC string of argon2id with 19 MiB, two passes and its own salt', async (t) => {
  const random = seededRandom()
  const [one, other] = await Promise.all([hashPassword(password, random), hashPassword(password, random)])
  t.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  t.not(one, other)
})

t.test('a password is verified in the form of RFC 8265, whatever keyboard typed it', async (t) => {
  const phc = await hashPassword(' Pässword ', seededRandom())
  for (const right of [' Pässword ', ' Pa\u0308ssword ', '\u00a0Pässword\u3000'])
    t.ok(await verifyPassword(right, phc), JSON.stringify(right))
  for (const wrong of ['Pässword', ' pässword ', ' Password ', ' Pässword', ' Ｐässword ', ''])
    t.notOk(await verifyPassword(wrong, phc), JSON.stringify(wrong))
  t.equal(preparePassword('ﬁ'), 'ﬁ', 'NFC, not NFKC')
})

t.test('a hash that an earlier version made of a password as received is still right', async (t) => {
  const typed = 'Pa\u0308ss\u00a0word'
  const phc = cheapHashAsReceived(typed)
  t.ok(await verifyPassword(typed, phc))
  t.notOk(await verifyPassword('Päss word', phc), 'the space is another')
  const composed = 'Päss\u00a0word'
  t.ok(await verifyPassword(composed, cheapHashAsReceived(composed)))
})

t.test('a hash of decomposed text is right for the same password from another keyboard', async (t) => {
  const phc = cheapHashAsReceived('Pa\u0308sswo\u0308rter')
  for (const right of ['Pässwörter', 'Pässwo\u0308rter', 'Pa\u0308sswo\u0308rter'])
    t.ok(await verifyPassword(right, phc), JSON.stringify(right))
  for (const wrong of ['Passworter', 'Pässwörter ', 'pässwörter'])
    t.notOk(await verifyPassword(wrong, phc), JSON.stringify(wrong))
})

/** A hash as earlier versions made it, which prepared no password. */
function cheapHashAsReceived(typed: string): string {
  const nonce = Buffer.from('0123456789abcdef')
  const cost = { memory: 64, passes: 1, parallelism: 1, tagLength: 24 }
  const tag = argon2Sync('argon2id', { ...cost, message: typed, nonce })
  const [salt, text] = [nonce, tag].map((bytes) => bytes.toString('base64').replaceAll('=', ''))
  return `$argon2id$v=19$m=64,t=1,p=1$${salt}$${text}`
}

t.test('a hash with other cost parameters is verified with those', async (t) => {
  const [salt, parameters] = [Buffer.from('0123456789abcdef'), { memory: 64, passes: 3, parallelism: 2 }]
  const tag = argon2Sync('argon2id', { ...parameters, message: password, nonce: salt, tagLength: 24 })
  const phc = `$argon2id$v=19$m=64,t=3,p=2$${salt.toString('base64').replaceAll('=', '')}$${tag.toString('base64')}`
  t.ok(await verifyPassword(password, phc))
  t.notOk(await verifyPassword(password, phc.replace('t=3', 't=2')))
})

const malformed = [
  '',
  'password',
  '$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=0,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=7,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=9999999,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA',
]
for (const phc of malformed) {
  t.test(`${phc || 'no text'} verifies no password`, async (t) => {
    t.equal(await verifyPassword('', phc), false)
  })
}

t.test('an unknown user costs a whole check and is rejected', async (t) => {
  t.match(decoyHash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  const check = createPasswordQueue(8)
  const phc = await hashPassword(password, seededRandom())
  t.equal(await check(password, phc), true)
  t.equal(await check(password, undefined), false)
  const time = async (hash: string | undefined) => {
    const start = performance.now()
    await check('wrong password', hash)
    return performance.now() - start
  }
  const [known, unknown]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < 5; turn += 1) {
    known.push(await time(phc))
    unknown.push(await time(undefined))
  }
  // A skipped derivation takes microseconds. A busy machine makes each of them longer, and the least of five seldom.
  t.ok(Math.min(...unknown) > Math.min(...known) / 10, `${unknown} against ${known} ms`)
})

t.test('a full queue rejects at once, and queued checks complete', async (t) => {
  const check = createPasswordQueue(2, 1)
  const phc = await hashPassword(password, seededRandom())
  const accepted = [check(password, phc), check('wrong password', phc), check(password, phc)]
  await t.rejects(check(password, phc), PasswordQueueFull)
  t.same(await Promise.all(accepted), [true, false, true])
  t.equal(await check(password, phc), true, 'there is room again')
})

t.test('a check that would begin after its deadline is rejected at once', async (t) => {
  let time = 0
  const phc = await hashPassword(password, seededRandom())
  // Two looks at the clock for each check: one took 6 s.
  const check = createPasswordQueue(32, 1, () => {
    time += 6000
    return time
  })
  t.equal(await check(password, phc), true)
  const accepted = [check(password, phc), check(password, phc)]
  await t.rejects(check(password, phc), PasswordQueueFull, 'it would begin after 12 s')
  t.same(await Promise.all(accepted), [true, true])
})

t.test('hashes are derived in threads of low priority', async (t) => {
  if (process.platform !== 'linux') {
    t.pass('only Linux has a priority for each thread')
    return
  }
  await hashPassword(password, seededRandom())
  const tasks = readdirSync('/proc/self/task').map((id) => {
    const [, name, rest = ''] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/self/task/${id}/stat`, 'utf8')) ?? []
    return { name, nice: Number(rest.split(' ')[16]) }
  })
  const nices = (name: string) => tasks.filter((task) => task.name === name).map(({ nice }) => nice)
  t.strictSame(new Set(nices('passwords')), new Set([10]))
  t.notOk(tasks.some(({ name, nice }) => name !== 'passwords' && nice === 10))
})

t.test('a hash that cannot be derived is an error, and the next one is derived', async (t) => {
  const parameters = {
    message: 'x',
    nonce: Buffer.alloc(16),
    memory: 1,
    passes: 1,
    parallelism: 1,
    tagLength: 16,
  }
  await t.rejects(derive(parameters), RangeError)
  t.equal((await derive({ ...parameters, memory: 8 })).length, 16)
})

t.test('a new password has 8 to 256 characters, not bytes', async (t) => {
  const shown = ['1234567', '😀'.repeat(7), '😀'.repeat(8), 'x'.repeat(256), 'x'.repeat(257), ' '.repeat(8)]
  t.strictSame(shown.map(passwordFault), ['length', 'length', undefined, undefined, 'length', undefined])
  t.equal(passwordFault('a\u0308'.repeat(7)), 'length', 'in the form that is compared')
})

t.test('a commonly guessed password is rejected, however it is capitalised', async (t) => {
  const common = ['password', '12345678', 'qwertyuiop', 'PassWord', 'JENNIFER']
  t.strictSame(common.map(passwordFault), Array(5).fill('common'))
  const list = readFileSync(new URL('../../src/users/common-passwords.txt', import.meta.url), 'utf8')
  const rejected = list.trim().split('\n')
  t.equal(new Set(rejected).size, 3000)
  t.strictSame([...new Set(rejected.map(passwordFault))], ['common'])
  t.strictSame(
    ['password', 'x'].map((word) => passwordFault(`${word} of mine`)),
    [undefined, undefined],
  )
})
