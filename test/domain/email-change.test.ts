import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { type Decision, remove, removeAll, type Write } from '../../src/domain/decision.ts'
import type { OneTimeLink, Passkey, SecondFactor, User } from '../../src/domain/model.ts'
import { deleteLinksOf, insertLink } from '../../src/users/rules/one-time-link.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { upstreamLinkKind } from '../../src/users/rules/upstream-link.ts'
import {
  changePassword,
  changeProfile,
  createUser,
  endSessionsAndGrants,
  moveEmail,
  undoEmailChange,
} from '../../src/users/rules/user.ts'
import { resultOf } from '../helpers/samples.ts'

const day = 86_400
const now = 1_000_000
const context = { by: 'user', at: now } as const
const facts = { link: 'email-undo', disconnected: 'everything' }
const described = { username: 'ada', email: 'old@example.org', emailVerified: true, passwordHash: '$old' }
const ada = createUser(described, 'user_ada', 100)
const undo: OneTimeLink = {
  id: 'hash',
  purpose: 'email-undo',
  userId: ada.id,
  email: 'old@example.org',
  createdAt: now,
  expiresAt: now + 50,
}
const addressOf = (decision: Decision<User>) => {
  const { email, claims } = resultOf(decision)
  return [email, claims['email'], claims['email_verified']]
}

t.test(
  'a confirmed address is verified, and the links sent to the old one end, except an undo',
  async (t) => {
    const moved = moveEmail(ada, 'New@Example.org', now, undefined)
    t.strictSame(addressOf(moved), ['new@example.org', 'new@example.org', true])
    const { writes } = changeProfile(ada, { email: 'new@example.org', emailVerified: true }, now)
    const written = [...writes, ...deleteLinksOf(ada.id, 'email-undo')]
    t.strictSame(moved.writes, written)
    t.strictSame(moveEmail(ada, 'new@example.org', now, undo).writes, [...written, insertLink(undo)])
  },
)

t.test('a user may have no address', async (t) => {
  const moved = moveEmail(ada, '', now, undefined)
  t.strictSame(addressOf(moved), [undefined, undefined, undefined])
  t.throws(() => moveEmail(ada, 'none', now, undefined), {
    code: 'invalid_request',
    detail: { rule: 'oidc-core-5.1-email-syntax' },
  })
})

const attacked = resultOf(moveEmail(ada, 'attacker@example.org', now - 5, undefined))
const since = now - 5
const passkeyAt = (createdAt: number): Passkey => ({
  id: `made at ${createdAt}`,
  userId: ada.id,
  publicKey: 'key',
  counter: 0,
  transports: [],
  name: 'Laptop',
  backedUp: false,
  createdAt,
  usedAt: createdAt,
})
const codesAt = (createdAt: number): SecondFactor => ({
  userId: ada.id,
  sealedSecret: 'sealed',
  recoveryHashes: [],
  createdAt,
})
const undone = (
  credentials: { readonly passkeys?: readonly Passkey[]; readonly secondFactor?: SecondFactor } = {},
) =>
  undoEmailChange(
    { user: attacked, passkeys: [], sessions: [], ...credentials },
    { email: 'old@example.org', since },
    '$new',
    context,
  )

t.test('an undo restores the address, sets a password, and ends all access', async (t) => {
  const restored = resultOf(changeProfile(attacked, { email: 'old@example.org', emailVerified: true }, now))
  const changed = changePassword(restored, '$new', context, facts)
  t.strictSame(undone(), {
    result: { ...restored, passwordHash: '$new' },
    writes: [
      ...changed.writes,
      auditEvent('user-changed', context, { userId: ada.id, changed: 'email' }),
      ...deleteLinksOf(ada.id),
      ...endSessionsAndGrants(ada.id, 'rfc9700-4.14.2-revoke-on-event', now),
      removeAll(upstreamLinkKind, ada.id),
    ],
  })
  t.strictSame(addressOf(undone()), ['old@example.org', 'old@example.org', true])
})

t.test(
  'an undo removes what may have been added by an attacker, since a day before the change',
  async (t) => {
    const common = undone().writes
    const added = (writes: readonly Write[]) => {
      t.strictSame(writes.slice(0, common.length), common)
      return writes.slice(common.length)
    }
    const times = [since - day - 1, since - day, since, now]
    t.strictSame(added(undone({ passkeys: times.map(passkeyAt) }).writes), [
      remove(passkeyKind, `made at ${since - day}`),
      remove(passkeyKind, `made at ${since}`),
      remove(passkeyKind, `made at ${now}`),
    ])
    t.strictSame(added(undone({ secondFactor: codesAt(since - day - 1) }).writes), [])
    for (const createdAt of [since - day, since])
      t.strictSame(added(undone({ secondFactor: codesAt(createdAt) }).writes), [
        remove(secondFactorKind, ada.id),
      ])
  },
)
