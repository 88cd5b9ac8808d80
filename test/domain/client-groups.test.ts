import t from 'tap'
import type { Reading, RecordReads } from '../../src/domain/decision.ts'
import { deepestGroup, type Group, groupKind, membershipKind } from '../../src/domain/group.ts'
import {
  denial,
  groupClaims,
  readAllowedGroups,
  requireMember,
  wantsGroups,
} from '../../src/users/groups/rules.ts'
import { rejectionOf } from '../helpers/rejection.ts'
import { bytesOf } from '../helpers/samples.ts'

const groupId = (name: string) => `group_${bytesOf(name, 16)}`
const [staff, guests] = [groupId('staff'), groupId('guests')]

t.test(
  'the groups of a client are read as a list or a text of ids, and none is as good as absent',
  async (t) => {
    const read = (value: unknown) => readAllowedGroups({ allowed_groups: value }, 'allowed_groups')
    for (const nothing of [undefined, null, '', '  ', []])
      t.equal(read(nothing), undefined, JSON.stringify(nothing))
    t.strictSame(readAllowedGroups({}, 'allowed_groups'), undefined)
    for (const one of [staff, [staff], ` ${staff}  ${staff}`]) t.strictSame(read(one), [staff])
    t.strictSame(read([guests, staff, guests]), [guests, staff])
    t.strictSame(read(`${guests} ${staff}`), [guests, staff])
    const invalid = (description: string) => ({
      code: 'invalid_client_metadata',
      description,
      rule: 'rfc7591-3.2.2-invalid-client-metadata',
    })
    for (const wrong of [
      'staff',
      `a${staff}`,
      `${staff}a`,
      [staff, 'staff'],
      [staff, 5],
      `${staff},${guests}`,
      5,
      {},
    ])
      t.strictSame(
        rejectionOf(() => read(wrong)),
        invalid('allowed_groups must be ids of groups'),
        JSON.stringify(wrong),
      )
    const many = (count: number) => Array.from({ length: count }, (_, n) => groupId(`${n}`))
    t.strictSame(read(many(100)), many(100))
    t.strictSame(
      rejectionOf(() => read(many(101))),
      invalid('allowed_groups has more than 100 groups'),
    )
  },
)

/** Reads these groups and memberships, as a transaction does. */
function readsOf(
  groups: readonly Pick<Group, 'id' | 'parentId'>[],
  memberships: readonly string[],
): RecordReads {
  const reads = {
    *find(kind: unknown, id: string) {
      return kind === groupKind ? groups.find((one) => one.id === id) : undefined
    },
    *listOf(kind: unknown, userId: string) {
      return kind === membershipKind && userId === 'alice' ? memberships.map((id) => ({ groupId: id })) : []
    },
  }
  return reads as never // The condition reads nothing else.
}

function resultOf<T>(reading: Reading<T>): T {
  const { done, value } = reading.next()
  if (done !== true) throw new Error('it waits for something')
  return value
}

t.test('a member of an allowed group, or of one below it, may use the client', async (t) => {
  const groups = [
    { id: 'staff' },
    { id: 'teachers', parentId: 'staff' },
    { id: 'physics', parentId: 'teachers' },
    { id: 'chemistry', parentId: 'teachers' },
    { id: 'guests' },
    { id: 'orphans', parentId: 'gone' },
  ]
  const holds = (allowed: readonly string[], memberships: readonly string[], userId = 'alice') =>
    resultOf(requireMember(allowed, userId).holds(readsOf(groups, memberships)))
  for (const [allowed, memberships, isMember] of [
    [['staff'], ['staff'], true],
    [['staff'], ['guests', 'staff'], true],
    [['guests', 'staff'], ['physics', 'chemistry'], true],
    [['teachers'], ['orphans', 'guests', 'physics'], true],
    [['physics'], ['staff', 'teachers'], false],
    [['staff'], ['guests', 'orphans'], false],
    [['staff'], [], false],
    [[], ['staff', 'physics'], false],
  ] as const)
    t.equal(holds(allowed, memberships), isMember, `${allowed} for ${memberships}`)
  t.equal(holds(['staff'], ['staff'], 'bob'), false)
})

t.test('the groups above are looked up to the depth limit of a tree of groups', async (t) => {
  const chain = Array.from({ length: deepestGroup + 1 }, (_, n) => ({ id: `g${n}`, parentId: `g${n + 1}` }))
  const holds = (allowed: string) => resultOf(requireMember([allowed], 'alice').holds(readsOf(chain, ['g0'])))
  for (const depth of Array(deepestGroup).keys()) t.equal(holds(`g${depth}`), true, `${depth}`)
  t.equal(holds(`g${deepestGroup}`), false)
})

t.test('the condition says why the others may not use the client', async (t) => {
  const { rule, why } = requireMember([staff], 'alice')
  t.strictSame({ rule, why }, denial)
  t.strictSame(denial, {
    rule: 'lychgate-group-required',
    why: 'the user is in none of the groups that may use this client (lychgate client access)',
  })
})

t.test('the scope opens the claim in UserInfo, and the claims parameter also in the ID Token', async (t) => {
  const nothing = { userinfo: [], idToken: [] }
  const [there, here] = [
    { ...nothing, userinfo: ['name', 'groups'] },
    { ...nothing, idToken: ['groups'] },
  ]
  for (const [scope, requested, targets] of [
    [['openid'], nothing, []],
    [['openid', 'groups'], nothing, ['userinfo']],
    [['openid'], there, ['userinfo']],
    [['openid'], here, ['id_token']],
    [['groups'], here, ['userinfo', 'id_token']],
    [['openid', 'profile'], { userinfo: ['name'], idToken: ['email'] }, []],
  ] as const)
    t.strictSame(
      (['userinfo', 'id_token', 'access_token'] as const).filter((target) =>
        wantsGroups({ target, scope, requested }),
      ),
      targets,
      JSON.stringify({ scope, requested }),
    )
})

t.test('the claim has the names in their order, and says when it has only the first of them', async (t) => {
  const groups = ['b', 'a', 'C', 'é'].map((name): Group => ({ id: groupId(name), name, createdAt: 1 }))
  t.strictSame(groupClaims(groups, 4), { groups: ['C', 'a', 'b', 'é'] })
  t.strictSame(groupClaims(groups, 3), { groups: ['C', 'a', 'b'], groups_truncated: true })
  t.strictSame(groupClaims([], 1), { groups: [] })
  t.strictSame(groupClaims(groups, 1, 'roles'), { roles: ['C'], groups_truncated: true })
})
