import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { consentKind } from '../../src/domain/connections.ts'
import { endSessionsOf, removeAll, update } from '../../src/domain/decision.ts'
import type { User } from '../../src/domain/model.ts'
import { deleteLinksOf } from '../../src/users/rules/one-time-link.ts'
import { personalTokenKind } from '../../src/users/rules/personal-token.ts'
import { forgetFailures } from '../../src/users/rules/throttle.ts'
import { changeProfile, createUser, lockUser, unlockUser, verifyEmail } from '../../src/users/rules/user.ts'

const ada = createUser(
  {
    username: 'ada',
    email: 'ada@example.org',
    emailVerified: true,
    passwordHash: 'x',
    claims: { name: 'Ada', website: 'https://a.example', phone_number_verified: true },
  },
  Buffer.alloc(16, 1),
  100,
)

function resultOf(decision: { readonly result: User } | object): User {
  if (!('result' in decision)) throw new Error('it was rejected')
  return decision.result
}

t.test('an update changes only the given claims, and an empty one is removed', async (t) => {
  const changed = resultOf(changeProfile(ada, { claims: { name: 'Ada L.', website: '' } }, 200))
  t.strictSame(changed.claims, {
    name: 'Ada L.',
    phone_number_verified: true,
    preferred_username: 'ada',
    email: 'ada@example.org',
    email_verified: true,
    updated_at: 200,
  })
  t.equal(changed.updatedAt, 200)
  t.strictSame(changeProfile(ada, {}, 200).writes, [
    update('user', { ...ada, claims: { ...ada.claims, updated_at: 200 }, updatedAt: 200 }),
  ])
})

t.test('attributes stay, change, or are removed', async (t) => {
  const text = { type: 'string', visible: 'user', editable: 'administrator' } as const
  const declared = [
    { ...text, name: 'team' },
    { ...text, name: 'room' },
  ]
  const after = (user: User, given?: object) => {
    const change = given === undefined ? {} : { attributes: { declared, assigned: { ...given } } }
    return resultOf(changeProfile(user, change, 200))
  }
  const blue = after(ada, { team: 'blue' })
  t.strictSame(blue.attributes, { team: 'blue' })
  t.strictSame(after(blue).attributes, { team: 'blue' })
  t.strictSame(after(blue, { room: '7' }).attributes, { team: 'blue', room: '7' })
  for (const none of [after(ada), after(ada, {}), after(blue, { team: '' })]) t.notOk('attributes' in none)
})

t.test('a new address is unverified, even if the old one was verified', async (t) => {
  const moved = resultOf(changeProfile(ada, { email: 'Ada@New.Example' }, 200))
  t.equal(moved.email, 'ada@new.example')
  t.equal(moved.claims['email_verified'], false)
  const same = resultOf(changeProfile(ada, { email: ' ADA@example.org' }, 200))
  t.equal(same.claims['email_verified'], true, 'another spelling is the same address')
  const unproven = resultOf(changeProfile(ada, { emailVerified: false }, 200))
  const named = resultOf(changeProfile(unproven, { claims: { name: 'A' } }, 300))
  t.equal(named.claims['email_verified'], false, 'another change proves nothing')
  const vouched = resultOf(changeProfile(ada, { email: 'a@b.example', emailVerified: true }, 200))
  t.equal(vouched.claims['email_verified'], true)
  const none = resultOf(changeProfile(ada, { email: '' }, 200))
  t.equal(none.email, undefined)
  t.notOk('email' in none.claims || 'email_verified' in none.claims)
  t.throws(() => changeProfile(ada, { email: 'not one' }, 200), { code: 'invalid_request' })
})

t.test('a user whose user name is their address gets the new one as user name', async (t) => {
  const eve = createUser({ username: 'e@x.example', email: 'e@x.example' }, Buffer.alloc(16, 2), 100)
  t.notOk('passwordHash' in eve, 'invited, and without a password')
  const moved = resultOf(changeProfile(eve, { email: 'e@y.example' }, 200))
  t.equal(moved.username, 'e@y.example')
  t.equal(moved.claims['preferred_username'], 'e@y.example')
  t.throws(() => changeProfile(eve, { email: '' }, 200), { code: 'invalid_request' })
})

t.test('an address is verified by a link that was sent to it, and by no older one', async (t) => {
  const unproven = resultOf(changeProfile(ada, { emailVerified: false }, 200))
  t.equal(unproven.claims['email_verified'], false)
  t.equal(resultOf(verifyEmail(unproven, 'ada@example.org', 300)).claims['email_verified'], true)
  t.strictSame(verifyEmail(unproven, 'old@example.org', 300), { result: unproven, writes: [] })
  t.strictSame(verifyEmail(ada, 'ada@example.org', 300), { result: ada, writes: [] }, 'it is verified')
})

t.test('a lock ends sessions, links and grants, and unlocking restores none of them', async (t) => {
  const at = (seconds: number) => ({ by: 'operator', at: seconds }) as const
  const decision = lockUser(ada, at(200))
  const locked = resultOf(decision)
  t.strictSame(locked, { ...ada, lockedAt: 200, updatedAt: 200 })
  t.strictSame(decision.writes, [
    update('user', locked),
    ...deleteLinksOf(ada.id),
    endSessionsOf(ada.id, 200),
    { op: 'revokeGrantsOf', userId: ada.id, at: 200, rule: 'lychgate-account-locked' },
    removeAll(consentKind, ada.id),
    removeAll(personalTokenKind, ada.id),
    auditEvent('user-locked', at(200), { userId: ada.id }),
  ])
  t.equal(resultOf(lockUser(locked, at(300))).lockedAt, 200, 'since the first time')
  const context = at(300)
  const unlocked = { ...ada, updatedAt: 300 }
  const event = (was: string) => auditEvent('user-unlocked', context, { userId: ada.id, was })
  t.strictSame(unlockUser(locked, context), {
    result: unlocked,
    writes: [update('user', unlocked), ...forgetFailures(ada.id), event('locked')],
  })
  t.strictSame(unlockUser(ada, context), {
    result: ada,
    writes: [...forgetFailures(ada.id), event('not locked')],
  })
})

t.test('name follows from given and family name, unless the user has another one', async (t) => {
  const claims = { given_name: 'Ada', family_name: 'Byron' }
  const made = createUser({ username: 'ada-b', claims }, Buffer.alloc(16), 100)
  t.equal(made.claims['name'], 'Ada Byron')
  const married = resultOf(changeProfile(made, { claims: { family_name: 'Lovelace' } }, 200))
  t.equal(married.claims['name'], 'Ada Lovelace')
  const own = resultOf(changeProfile(married, { claims: { name: 'Countess' } }, 300))
  t.equal(resultOf(changeProfile(own, { claims: { given_name: 'A.' } }, 400)).claims['name'], 'Countess')
  const none = resultOf(changeProfile(married, { claims: { name: '' } }, 300))
  t.notOk('name' in none.claims, 'it can be taken away')
  const unnamed = resultOf(changeProfile(married, { claims: { given_name: '', family_name: '' } }, 300))
  t.notOk('name' in unnamed.claims)
  const named = createUser({ username: 'ada-c', claims: { ...claims, name: 'A. B.' } }, Buffer.alloc(16), 100)
  t.equal(named.claims['name'], 'A. B.')
  t.notOk('name' in createUser({ username: 'ada-d' }, Buffer.alloc(16), 100).claims)
})
