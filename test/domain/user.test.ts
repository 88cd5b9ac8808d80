import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { endSessionsOf, update } from '../../src/domain/decision.ts'
import { deleteLinksOf } from '../../src/users/rules/one-time-link.ts'
import { forgetFailures } from '../../src/users/rules/throttle.ts'
import {
  canonicalEmail,
  canonicalLogin,
  canonicalPrefix,
  canonicalUsername,
  changePassword,
  createUser,
  describeUser,
  isNamed,
  subPattern,
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
  // Spaces around it count only towards the length that is looked at.
  [`${' '.repeat(507)}alice`, 'alice'],
  [`${' '.repeat(508)}alice`, undefined],
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

t.test('a user signs in by name or by address, however they are spelled', async (t) => {
  t.equal(canonicalLogin(' Alice '), 'alice')
  t.equal(canonicalLogin('A@Example.com'), 'a@example.com')
  t.equal(canonicalLogin('al ice'), undefined)
})

t.test('users are found by what their name or address begins with', async (t) => {
  t.equal(canonicalPrefix(' Ali'), 'ali')
  const longest = 'x'.repeat(254)
  t.equal(canonicalPrefix(longest), longest)
  for (const none of ['', '  ', 'a b', 'a\u200b', `${longest}x`]) t.equal(canonicalPrefix(none), undefined)
  const alice = { username: 'alice', email: 'al@example.com' }
  for (const text of ['a', 'ALI', 'alice', 'al@', ' al@example.com']) t.ok(isNamed(alice, text), text)
  for (const text of ['', ' ', 'lice', 'com', 'alicex', 'a b']) t.notOk(isNamed(alice, text), text)
  t.ok(isNamed({ username: 'alice' }, 'ali'))
  t.notOk(isNamed({ username: 'alice' }, 'al@'))
})

t.test('a sub is 128 bits after a prefix, of this version or of an earlier one', async (t) => {
  const isSub = (text: string) => new RegExp(subPattern).test(text)
  const { id } = createUser({ username: 'alice' }, fresh, 50)
  t.ok(isSub(id))
  t.ok(isSub(id.replace('user', 'person')))
  for (const other of ['', 'alice', `x${id}`, `${id}x`, id.slice(0, -1), id.replace('user', 'group')])
    t.notOk(isSub(other), other)
  t.equal(createUser({ username: 'alice' }, 'user_elsewhere', 50).id, 'user_elsewhere')
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
  t.notOk('email' in bare || 'attributes' in bare)
})

const text = { type: 'string', visible: 'user', editable: 'administrator' } as const
const declared = [{ ...text, name: 'team' }]

t.test('a new user may be seeded, verified, and have attributes', async (t) => {
  const described = { username: 'bob', email: 'b@example.com', emailVerified: true, seeded: true }
  const attributes = { declared, assigned: { team: 'blue' } }
  t.match(createUser({ ...described, attributes }, fresh, 50), {
    seeded: true,
    claims: { email: 'b@example.com', email_verified: true },
    attributes: { team: 'blue' },
  })
  const empty = createUser({ ...described, attributes: { declared, assigned: {} } }, fresh, 50)
  t.notOk('attributes' in empty, 'most rows have none')
})

t.test('a user name or an address that cannot be one is rejected', async (t) => {
  t.throws(() => createUser({ username: 'al ice' }, fresh, 50), {
    code: 'invalid_request',
    message: 'username must have 1 to 128 characters, none of them invisible or a space',
    detail: { rule: 'lychgate-account-username' },
  })
  for (const email of ['', 'alice'])
    t.throws(() => createUser({ username: 'alice', email }, fresh, 50), {
      code: 'invalid_request',
      message: 'email must be an email address',
      detail: { rule: 'oidc-core-5.1-email-syntax' },
    })
})

t.test('an operator sees a user by the names of the wire, and no hash of a password', async (t) => {
  const user = createUser({ username: 'bob', passwordHash: '$x', seeded: true }, 'user_1', 50)
  const shown = {
    sub: 'user_1',
    username: 'bob',
    seeded: true,
    created_at: 50,
    updated_at: 50,
    has_password: true,
    claims: { preferred_username: 'bob', updated_at: 50 },
    attributes: {},
  }
  t.strictSame(describeUser(user), shown)
  const { passwordHash: _, ...invited } = { ...user, lockedAt: 60, attributes: { team: 'blue' } }
  t.strictSame(describeUser(invited), {
    ...shown,
    has_password: false,
    locked_at: 60,
    attributes: { team: 'blue' },
  })
})

t.test('a user name that is an address must be the email address of the same user', async (t) => {
  const user = { username: 'v@example.com', passwordHash: '$x' }
  for (const other of [user, { ...user, email: 'w@example.com' }])
    t.throws(() => createUser(other, fresh, 50), {
      code: 'invalid_request',
      message: 'username may be an email address only if it is the email of the same user',
      detail: { rule: 'lychgate-account-username' },
    })
  t.equal(createUser({ ...user, email: 'V@example.com' }, fresh, 50).username, 'v@example.com')
})

t.test('a changed password is written together with the end of the sessions', async (t) => {
  const user = createUser({ username: 'bob', passwordHash: '$old' }, fresh, 50)
  const changed = { ...user, passwordHash: '$new', updatedAt: 60 }
  const context = { by: 'user', at: 60 } as const
  t.strictSame(changePassword(user, '$new', context), {
    result: changed,
    writes: [
      update('user', changed),
      ...forgetFailures(user.id),
      ...deleteLinksOf(user.id, 'email-undo'),
      auditEvent('user-password-changed', context, { userId: user.id }),
      endSessionsOf(user.id, 60),
    ],
  })
  const writes = changePassword(user, '$new', context, { stays: 'session' }).writes
  t.strictSame(writes.at(-1), endSessionsOf(user.id, 60, 'session'), 'except that of the change')
})
