import t from 'tap'
import { endSessionsOf, update } from '../../src/domain/decision.ts'
import { deleteLinksOf } from '../../src/users/rules/one-time-link.ts'
import { forgetFailures } from '../../src/users/rules/throttle.ts'
import {
  canonicalEmail,
  canonicalLogin,
  canonicalUsername,
  changePassword,
  createUser,
} from '../../src/users/rules/user.ts'
import { fc } from '../helpers/generated.ts'

const fresh = Buffer.alloc(16, 7)

const usernames: [string, string | undefined][] = [
  [' Alice ', 'alice'],
  ['ＡＬＩＣＥ', 'alice'],
  ['alice@Example.com', 'alice@example.com'],
  ['Ärger', 'ärger'],
  ['A\u0308rger', 'ärger'],
  ['J\u030c', '\u01f0'],
  ['x'.repeat(128), 'x'.repeat(128)],
  ['x'.repeat(129), undefined],
  ['x'.repeat(1_000_000), undefined],
  ['', undefined],
  ['  ', undefined],
  ['al ice', undefined],
  ['al\u00a0ice', undefined],
  ['al\tice', undefined],
  ['al\u0000ice', undefined],
  ['al\u200bice', undefined],
  ['al\u202eice', undefined],
  ['al\u2066ice', undefined],
  ['al\ufe0fice', undefined],
  ['al\u3164ice', undefined],
  ['al\ud800ice', undefined],
]
for (const [text, name] of usernames) {
  t.test(
    `the user name ${JSON.stringify(text).slice(0, 40)} is ${name?.slice(0, 20) ?? 'rejected'}`,
    async (t) => {
      t.equal(canonicalUsername(text), name)
    },
  )
}

const emails: [string, string | undefined][] = [
  [' Alice@Example.COM ', 'alice@example.com'],
  ['alice', undefined],
  ['alice@', undefined],
  ['@example.com', undefined],
  ['a@b@c', undefined],
  ['a b@example.com', undefined],
  ['a\u200b@example.com', undefined],
  [`${'x'.repeat(242)}@example.com`, `${'x'.repeat(242)}@example.com`],
  [`${'x'.repeat(243)}@example.com`, undefined],
]
for (const [text, email] of emails) {
  t.test(
    `the address ${JSON.stringify(text).slice(0, 40)} is ${email?.slice(0, 20) ?? 'rejected'}`,
    async (t) => {
      t.equal(canonicalEmail(text), email)
    },
  )
}

t.test('canonical text is unchanged, and every address signs in as itself', async (t) => {
  const texts = fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.emailAddress())
  fc.assert(
    fc.property(texts, (text) => {
      const [name, email] = [canonicalUsername(text), canonicalEmail(text)]
      if (name !== undefined && canonicalUsername(name) !== name) return false
      if (email === undefined) return true
      return canonicalEmail(email) === email && canonicalLogin(text) === email
    }),
  )
  t.pass('for any text')
})

t.test('a long address signs in although it is no user name', async (t) => {
  const address = `${'x'.repeat(200)}@example.com`
  t.equal(canonicalUsername(address), undefined)
  t.equal(canonicalLogin(address), address)
})

t.test('a new user has claims under their wire names', async (t) => {
  const user = { username: ' Alice', email: 'A@example.com', passwordHash: '$x', claims: { name: 'Alice' } }
  t.strictSame(createUser(user, fresh, 50), {
    id: `user_${fresh.toString('base64url')}`,
    username: 'alice',
    email: 'a@example.com',
    passwordHash: '$x',
    claims: {
      name: 'Alice',
      preferred_username: 'alice',
      email: 'a@example.com',
      email_verified: false,
      updated_at: 50,
    },
    seeded: false,
    createdAt: 50,
    updatedAt: 50,
  })
  const { claims, ...bare } = createUser({ username: 'bob', passwordHash: '$x' }, fresh, 50)
  t.strictSame(claims, { preferred_username: 'bob', updated_at: 50 })
  t.notOk('email' in bare)
})

t.test('a user name that is an address must be the email address of the same user', async (t) => {
  const user = { username: 'v@example.com', passwordHash: '$x' }
  t.throws(() => createUser(user, fresh, 50), {
    code: 'invalid_request',
    message: /^username may be an email/,
  })
  t.throws(() => createUser({ ...user, email: 'w@example.com' }, fresh, 50), {
    message: /^username may be/,
  })
  t.equal(createUser({ ...user, email: 'V@example.com' }, fresh, 50).username, 'v@example.com')
})

t.test('a changed password is written together with the end of the sessions', async (t) => {
  const user = createUser({ username: 'bob', passwordHash: '$old' }, fresh, 50)
  const changed = { ...user, passwordHash: '$new', updatedAt: 60 }
  t.strictSame(changePassword(user, '$new', 60), {
    result: changed,
    writes: [
      update('user', changed),
      ...forgetFailures(user.id),
      ...deleteLinksOf(user.id, 'email-undo'),
      endSessionsOf(user.id, 60),
    ],
  })
})
