import { hash } from 'node:crypto'
import t from 'tap'
import {
  assertAdministrator,
  assertClientMay,
  assertMatches,
  assertOther,
  assertWithin,
  type Caller,
  conflict,
  describeFor,
  notFound,
  requireFound,
  requireWithin,
  tagOfClient,
  tagOfGroup,
  tagOfUser,
} from '../../src/admin/operations/rules.ts'
import type { Group } from '../../src/domain/group.ts'
import type { Client, User } from '../../src/domain/model.ts'
import { passedDuring } from '../helpers/checks.ts'
import { rejectionOf } from '../helpers/rejection.ts'
import { bytesOf, operatorClient, publicClient } from '../helpers/samples.ts'

const needed = 'admin:users:read'
const caller: Caller = { kind: 'user', sub: 'user_alice', scope: [needed, 'openid'] }
const machine: Caller = { ...caller, kind: 'client', sub: operatorClient.id }
const client: Client = { ...operatorClient, scope: ['openid', needed] }

const challenge = { scheme: 'DPoP', resourceMetadata: 'https://id.example/metadata' }
const mayUse = (one: Client | undefined, who = caller) => assertClientMay(one, who, needed, challenge)

t.test('a client may administer only with a scope that its metadata names', async (t) => {
  const description = 'the metadata of the client does not name the scope that this needs'
  for (const [one, stored] of [
    [undefined, []],
    [operatorClient, []],
    [{ ...client, scope: ['openid', 'admin:users'] }, ['openid', 'admin:users']],
  ] as const)
    t.strictSame(
      rejectionOf(() => mayUse(one)),
      {
        code: 'insufficient_scope',
        description,
        rule: 'lychgate-admin-client-scope',
        stored,
        received: needed,
        headers: {
          'www-authenticate': [
            'DPoP error="insufficient_scope"',
            `error_description="${description}"`,
            `scope="${needed}"`,
            'resource_metadata="https://id.example/metadata"',
          ].join(', '),
        },
      },
    )
})

t.test('only a client of an operator may administer, and alone only with its grant type', async (t) => {
  const description = [
    'only a client that an operator added may administer,',
    'and without a user only one with client_credentials',
  ].join(' ')
  const alone: Client = { ...client, grantTypes: ['refresh_token', 'client_credentials'] }
  for (const [one, who] of [
    [client, caller],
    [alone, caller],
    [alone, machine],
  ] as const)
    t.strictSame(
      passedDuring(() => mayUse(one, who)).map(({ rule }) => rule),
      ['lychgate-admin-client-scope', 'lychgate-admin-client-by-operator'],
    )
  for (const [one, who] of [
    [client, machine],
    [{ ...alone, origin: 'registered' }, caller],
    [{ ...alone, origin: 'resource-server' }, machine],
  ] as const)
    t.strictSame(
      rejectionOf(() => mayUse(one, who)),
      {
        code: 'access_denied',
        description,
        rule: 'lychgate-admin-client-by-operator',
        stored: [one.origin, ...one.grantTypes],
      },
    )
})

const group: Group = { id: 'group_a', name: 'Administrators', createdAt: 1 }

t.test('an administrator is a member of the group of that name now', async (t) => {
  const others = [{ ...group, name: 'staff' }]
  const passed = passedDuring(() => assertAdministrator([...others, group], 'administrators'))
  t.strictSame(
    passed.map(({ rule }) => rule),
    ['lychgate-admin-membership'],
  )
  t.strictSame(
    rejectionOf(() => assertAdministrator(others, 'administrators')),
    {
      code: 'access_denied',
      description: 'the user of the access token is not an administrator',
      rule: 'lychgate-admin-membership',
      stored: ['staff'],
      received: 'administrators',
    },
  )
})

t.test('a client that may administer more than its caller is out of reach', async (t) => {
  for (const scope of [undefined, [], [needed], ['openid', 'courses:read'], ['read:admin:', needed]]) {
    const one: Client = { ...publicClient, ...(scope && { scope }) }
    t.equal(requireWithin(one, caller), one)
    const passed = passedDuring(() => assertWithin(one, caller))
    t.match(passed, [{ rule: 'lychgate-admin-no-escalation', stored: caller.scope }])
    t.strictSame(passed[0]?.received, [])
  }
  const wider = { ...client, scope: [needed, 'courses:read', 'admin:clients:write', 'admin:groups:read'] }
  for (const change of [() => assertWithin(wider, caller), () => requireWithin(wider, caller)])
    t.strictSame(rejectionOf(change), {
      code: 'access_denied',
      description: 'the client has scopes of the admin API that the access token lacks',
      rule: 'lychgate-admin-no-escalation',
      stored: caller.scope,
      received: ['admin:clients:write', 'admin:groups:read'],
    })
  t.throws(() => assertWithin({ scope: ['admin:groups:read'] }, caller), { code: 'access_denied' })
})

t.test('administrators do not lock themselves out', async (t) => {
  const passed = passedDuring(() => assertOther(caller, 'user_bob'))
  t.strictSame(
    passed.map(({ rule }) => rule),
    ['lychgate-admin-not-oneself'],
  )
  t.strictSame(
    rejectionOf(() => assertOther(caller, caller.sub)),
    {
      code: 'conflict',
      description: 'administrators cannot lock or delete themselves; another one can',
      rule: 'lychgate-admin-not-oneself',
      status: 409,
    },
  )
})

t.test('what is hidden from the caller looks like what does not exist', async (t) => {
  t.equal(requireFound(client, 'client'), client)
  const missing = (what: string) => ({
    code: 'not_found',
    description: `there is no such ${what}`,
    rule: 'lychgate-admin-found',
    status: 404,
  })
  t.strictSame(
    rejectionOf(() => requireFound(undefined, 'key')),
    missing('key'),
  )
  t.strictSame(
    rejectionOf(() => requireWithin(undefined, caller)),
    missing('client'),
  )
  t.strictSame(
    rejectionOf(() => {
      throw notFound('user')
    }),
    missing('user'),
  )
  t.strictSame(
    rejectionOf(() => {
      throw conflict('another user has this name')
    }),
    {
      code: 'conflict',
      description: 'another user has this name',
      rule: 'lychgate-admin-unique',
      status: 409,
    },
  )
})

const user: User = {
  id: 'user_bob',
  username: 'bob',
  claims: { name: 'Bob', updated_at: 1 },
  attributes: { department: 'physics' },
  seeded: false,
  createdAt: 1,
  updatedAt: 1,
}

t.test('an entity tag is a digest of what it is for, whatever the order of its members', async (t) => {
  const digest = hash('sha256', '{"createdAt":1,"id":"group_a","name":"Administrators"}', 'base64url')
  t.equal(tagOfGroup(group), `"${digest.slice(0, 22)}"`)
  t.equal(tagOfGroup({ name: group.name, createdAt: 1, id: group.id }), tagOfGroup(group))
  t.not(tagOfGroup({ ...group, name: 'Others' }), tagOfGroup(group))
  const rules = [{ claim: 'a', in: ['id_token'] }, 'b']
  const ruled = (...token_claims: unknown[]) => tagOfClient({ ...client, extra: { token_claims, a: 1 } })
  t.equal(ruled({ in: ['id_token'], claim: 'a' }, 'b'), ruled(...rules))
  t.not(ruled(...rules.toReversed()), ruled(...rules), 'the order of a list counts')
  // What has no text form is a member like any other.
  t.doesNotThrow(() => tagOfClient({ ...client, extra: { a: { toString: 'x' }, b: 1 } }))
  t.equal(tagOfUser({ ...user, claims: { updated_at: 1, name: 'Bob' } }), tagOfUser(user))
})

t.test('every change of a user changes the tag, but no tag tells of a password hash', async (t) => {
  const withPassword = { ...user, passwordHash: '$argon2id$a' }
  t.not(tagOfUser(withPassword), tagOfUser(user))
  t.equal(tagOfUser({ ...withPassword, passwordHash: '$argon2id$b' }), tagOfUser(withPassword))
  const { id, username, attributes, claims } = user
  const [times, own] = [{ createdAt: 1 }, { id, seeded: false, updatedAt: 1, username }]
  const covered = { attributes, claims, ...times, hasPassword: false, ...own }
  const digest = hash('sha256', JSON.stringify(covered), 'base64url')
  t.equal(tagOfUser(user), `"${digest.slice(0, 22)}"`)
  for (const change of [{ updatedAt: 2 }, { lockedAt: 2 }, { attributes: {} }, { claims: { name: 'Bob' } }])
    t.not(tagOfUser({ ...user, ...change }), tagOfUser(user), JSON.stringify(change))
})

t.test('the use of a client does not change its tag, and the end of its previous secret does', async (t) => {
  const previousSecret = { hash: bytesOf('secret', 32), expiresAt: 100 }
  const tag = tagOfClient(client)
  t.equal(tagOfClient({ ...client, usedAt: 5000, secretUsedAt: 6000 }), tag)
  t.not(tagOfClient({ ...client, name: 'Client' }), tag)
  const kept = tagOfClient({ ...client, previousSecret })
  t.not(kept, tag)
  t.not(tagOfClient({ ...client, previousSecret: { ...previousSecret, expiresAt: 200 } }), kept)
  t.equal(tagOfClient({ ...client, previousSecret: { ...previousSecret, usedAt: 50 } }), kept)
})

t.test('a change needs the tag of what the caller saw', async (t) => {
  const tag = '"abc"'
  for (const right of [tag, '*', ` ${tag} `, `"x", ${tag}`, `${tag},"x"`])
    t.strictSame(
      passedDuring(() => assertMatches(right, tag)).map(({ rule }) => rule),
      ['lychgate-admin-if-match', 'rfc9110-13.1.1-if-match'],
      right,
    )
  t.strictSame(
    rejectionOf(() => assertMatches(undefined, tag)),
    {
      code: 'precondition_required',
      description: 'If-Match is missing: send the ETag of what you change',
      rule: 'lychgate-admin-if-match',
      status: 428,
    },
  )
  const long = Array.from({ length: 50 }, (_, n) => `"${n}"`).join(',')
  for (const wrong of ['', 'abc', '"x"', 'W/"abc"', '"abc" "x"', long])
    t.strictSame(
      rejectionOf(() => assertMatches(wrong, tag)),
      {
        code: 'precondition_failed',
        description: 'it was changed in the meantime; read it again',
        rule: 'rfc9110-13.1.1-if-match',
        status: 412,
        stored: tag,
        received: wrong.slice(0, 100),
      },
    )
})

t.test('a delegate sees no attributes of a user', async (t) => {
  const described = {
    sub: 'user_bob',
    username: 'bob',
    seeded: false,
    created_at: 1,
    updated_at: 1,
    has_password: false,
    claims: user.claims,
    attributes: { department: 'physics' },
  }
  t.strictSame(describeFor({ isDelegate: false }, user), described)
  t.strictSame(describeFor({ isDelegate: true }, user), { ...described, attributes: {} })
})
