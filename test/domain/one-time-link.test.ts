import t from 'tap'
import type { LinkPurpose, OneTimeLink } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  deleteLinksOf,
  insertLink,
  linkKinds,
  mintLink,
  requireLink,
  unusableLink,
} from '../../src/users/rules/one-time-link.ts'

const lifetimes = {
  firstUserSeconds: 10,
  invitationSeconds: 20,
  passwordResetSeconds: 30,
  emailVerificationSeconds: 40,
  emailUndoSeconds: 50,
}
const secondsOf: Readonly<Record<LinkPurpose, number>> = {
  'first-user': 10,
  invitation: 20,
  'password-reset': 30,
  'email-verification': 40,
  'email-change': 40,
  'email-undo': 50,
}
// `as`: the names of the object above.
const purposes = Object.keys(secondsOf) as readonly LinkPurpose[]
const now = 100
const recipient = { userId: 'alice', email: 'alice@example.org' }
const mint = (purpose: LinkPurpose) => mintLink(purpose, recipient, lifetimes, Buffer.alloc(32, 5), now).link

t.test('a link is stored as a hash', async (t) => {
  const { link, secret } = mintLink('invitation', { userId: 'alice' }, lifetimes, Buffer.alloc(32, 5), now)
  t.match(secret, /^lyc_link_[\w-]{43}$/)
  const id = hashSecret(secret)
  t.strictSame(link, { id, purpose: 'invitation', userId: 'alice', createdAt: now, expiresAt: now + 20 })
})

t.test('a link is valid as long as its purpose says', async (t) => {
  for (const purpose of purposes) {
    const { purpose: made, userId, email, createdAt, expiresAt } = mint(purpose)
    t.strictSame([made, userId, email, createdAt], [purpose, 'alice', 'alice@example.org', now])
    t.equal(expiresAt, now + secondsOf[purpose], purpose)
  }
})

t.test('a link is stored under its purpose, for its user', async (t) => {
  for (const purpose of purposes) {
    const link: OneTimeLink = mint(purpose)
    const record = {
      kind: `link ${purpose}`,
      id: link.id,
      userId: 'alice',
      clientId: undefined,
      madeAt: now,
      expiresAt: link.expiresAt,
      body: JSON.stringify(link),
    }
    t.strictSame(insertLink(link), { op: 'insert', kind: 'record', record }, purpose)
  }
  t.strictSame(Object.keys(linkKinds), purposes)
})

t.test('the links of a user are deleted, except those for one purpose', async (t) => {
  const deleting = (...names: readonly LinkPurpose[]) =>
    names.map((purpose) => ({ op: 'deleteRecords', kind: `link ${purpose}`, userId: 'alice' }))
  t.strictSame(deleteLinksOf('alice'), deleting(...purposes))
  const rest = purposes.filter((purpose) => purpose !== 'email-undo')
  t.strictSame(deleteLinksOf('alice', 'email-undo'), deleting(...rest))
})

t.test('a used, an expired and an unknown link get the same error and the same page', async (t) => {
  const link = mint('invitation')
  const wanted = {
    code: 'invalid_request',
    message: 'the link is invalid or has expired',
    detail: {
      rule: 'lychgate-link-open',
      status: 404,
      page: { title: { key: 'error.link' }, advice: { key: 'error.link.advice' } },
    },
  }
  const { code, message, detail } = unusableLink()
  t.strictSame({ code, message, detail }, wanted)
  t.equal(requireLink(link, link.expiresAt - 1), link)
  t.throws(() => requireLink(link, link.expiresAt), wanted)
  t.throws(() => requireLink(undefined, now), wanted)
})
