import t from 'tap'
import { insert, put, remove, update } from '../../src/domain/decision.ts'
import {
  addMember,
  bytesOfGroupId,
  changeGroup,
  createGroup,
  deleteGroup,
  ensureGroup,
  type Group,
  groupAdministrationKind,
  groupIdPattern,
  groupKind,
  groupNameKind,
  membershipKind,
  membershipPrefix,
} from '../../src/domain/group.ts'
import { rejectionOf } from '../helpers/rejection.ts'
import { resultOf } from '../helpers/samples.ts'

const context = { by: 'operator', at: 1000 } as const
const group = (name: string, parentId?: string): Group => ({
  id: `group_${name}`,
  name,
  createdAt: 1,
  ...(parentId !== undefined && { parentId }),
})

const fresh = Buffer.alloc(16, 1)
const newId = `group_${fresh.toString('base64url')}`
const event = (name: 'group-created' | 'group-changed' | 'group-deleted', facts: Record<string, string>) =>
  insert('auditEvent', { name, at: 1000, by: 'operator', facts })
const invalid = (rule: string, description: string) => ({
  code: 'invalid_request',
  description,
  rule: `lychgate-group${rule}`,
})

t.test('a group is created with its name and what else is said about it', async (t) => {
  const created = createGroup([], { name: ' staff ' }, fresh, context)
  const least = { id: newId, name: 'staff', createdAt: 1000 }
  t.strictSame(created, {
    result: least,
    writes: [
      insert(groupKind, least),
      insert(groupNameKind, least),
      event('group-created', { group: newId, name: 'staff' }),
    ],
  })
  const said = { name: 'team', description: ' the team ', parentId: 'group_a', administratorsId: 'group_a' }
  const whole = createGroup([group('a')], said, fresh, context)
  t.strictSame(resultOf(whole), { ...least, ...said, description: 'the team' })
  t.strictSame(whole.writes[2], put(groupAdministrationKind, { administratorsId: 'group_a', groupId: newId }))
  const empty = { name: 'team', description: ' ', parentId: '', administratorsId: '' }
  t.strictSame(resultOf(createGroup([], empty, fresh, context)), { ...least, name: 'team' })
  t.match(newId, new RegExp(groupIdPattern))
  for (const id of ['', 'group_', `${newId}x`, `x${newId}`, newId.replace(/.$/, 'B')])
    t.notMatch(id, new RegExp(groupIdPattern), id)
  t.strictSame(bytesOfGroupId(newId), fresh)
})

t.test('a group is found by its name, or created', async (t) => {
  const staff = group('Staff')
  t.strictSame(ensureGroup([group('a'), staff], 'sTAFF', fresh, context), { result: staff, writes: [] })
  t.equal(resultOf(ensureGroup([staff], 'other', fresh, context)).id, newId)
})

t.test('a group keeps what a change does not name', async (t) => {
  const said = { description: 'text', parentId: 'group_a', administratorsId: 'group_a' }
  const before = { ...group('b'), ...said }
  const all = [group('a'), group('c'), before]
  const change = (what: Parameters<typeof changeGroup>[2]) => changeGroup(all, before, what, context)
  t.strictSame(change({}), {
    result: before,
    writes: [update(groupKind, before), put(groupNameKind, before)],
  })
  const none = resultOf(change({ description: '', parentId: '', administratorsId: '' }))
  t.strictSame(none, { id: 'group_b', name: 'b', createdAt: 1 })
  const moved = { name: 'd', description: 'other', parentId: 'group_c', administratorsId: 'group_c' }
  const after = { ...before, ...moved }
  t.strictSame(change(moved), {
    result: after,
    writes: [
      update(groupKind, after),
      remove(groupNameKind, 'b'),
      insert(groupNameKind, after),
      remove(groupAdministrationKind, `${membershipPrefix('group_a')}group_b`),
      put(groupAdministrationKind, { administratorsId: 'group_c', groupId: 'group_b' }),
      event('group-changed', {
        ...{ group: 'group_b', name: 'd', before: 'b' },
        changed: 'name description parent_id administrators_id',
      }),
    ],
  })
  t.strictSame(
    rejectionOf(() => change({ name: 'C' })),
    invalid('-name-unique', 'another group has this name'),
  )
})

t.test('a group is deleted with its memberships, and no longer administers', async (t) => {
  const staff = { ...group('staff'), administratorsId: 'group_staff' }
  const team = { ...group('team'), administratorsId: 'group_staff' }
  const other = { ...group('other'), administratorsId: 'group_team' }
  const { administratorsId: _, ...orphaned } = team
  t.strictSame(deleteGroup([staff, team, other], staff, context), {
    result: staff,
    writes: [
      update(groupKind, orphaned),
      put(groupNameKind, orphaned),
      remove(groupAdministrationKind, `${membershipPrefix('group_staff')}group_team`),
      event('group-changed', { group: 'group_team', name: 'team', changed: 'administrators_id' }),
      remove(groupKind, 'group_staff'),
      remove(groupNameKind, 'staff'),
      { op: 'deleteRecordsFrom', kind: membershipKind.name, prefix: membershipPrefix('group_staff') },
      remove(groupAdministrationKind, `${membershipPrefix('group_staff')}group_staff`),
      event('group-deleted', { group: 'group_staff', name: 'staff' }),
    ],
  })
  t.strictSame(
    rejectionOf(() => deleteGroup([group('a'), group('b', 'group_a'), group('c')], group('a'), context)),
    invalid('-has-children', 'the group is the parent of another one; give that another parent first'),
  )
})

t.test('a user is in a group once', async (t) => {
  const membership = { groupId: 'group_a', userId: 'alice', addedAt: 1000 }
  t.strictSame(addMember(group('a'), 'alice', membership, context), [])
  t.strictSame(addMember(group('a'), 'alice', undefined, context)[0], put(membershipKind, membership))
})

t.test('groups are few, described in a line, and lie ten deep', async (t) => {
  const many = Array.from({ length: 10_000 }, (_, index) => group(`g${index}`))
  const made = (groups: readonly Group[], more: object = {}) =>
    createGroup(groups, { name: 'new', ...more }, fresh, context)
  const create = (groups: readonly Group[], more?: object) => rejectionOf(() => made(groups, more))
  t.doesNotThrow(() => made(many.slice(1)))
  const full = 'there are 10000 groups already, and a server has no more'
  t.strictSame(create(many), invalid('s-limit', full))
  t.doesNotThrow(() => made([], { description: 'é'.repeat(500) }))
  const wrong = invalid(
    '-description',
    'the description of a group has at most 500 characters, and none that is invisible',
  )
  for (const description of ['é'.repeat(501), 'a\u202eb', 'a\nb'])
    t.strictSame(create([], { description }), wrong)
  const chain = Array.from({ length: 10 }, (_, index) =>
    group(`g${index}`, index === 0 ? undefined : `group_g${index - 1}`),
  )
  t.doesNotThrow(() => made(chain, { parentId: 'group_g8' }))
  t.strictSame(create(chain, { parentId: 'group_g9' }), invalid('-depth', 'groups lie at most 10 deep'))
  t.strictSame(create([], { parentId: 'group_x' }), invalid('-parent', 'there is no such parent'))
  t.strictSame(
    create([], { administratorsId: 'group_x' }),
    invalid('-administrators', 'there is no such group of administrators'),
  )
  const name =
    'the name of a group has 1 to 100 characters: alphabetic ones, digits, spaces and . _ : / @ + -;'
  t.strictSame(
    create([], { name: undefined }),
    invalid('-name', `${name} the first and the last are alphabetic or digits`),
  )
})

t.test('no group becomes its own ancestor, by however many steps', async (t) => {
  const [a, b, c] = [group('a'), group('b', 'group_a'), group('c', 'group_b')] as const
  for (const parentId of [a.id, b.id, c.id])
    t.strictSame(
      rejectionOf(() => changeGroup([a, b, c], a, { parentId }, context)),
      invalid('-no-cycle', 'the parent is the group itself, or below it'),
    )
  t.match(changeGroup([a, b, c], c, { parentId: a.id }, context), { result: { parentId: a.id } })
  t.throws(
    () => createGroup([a], { name: 'd', parentId: 'group_x' }, Buffer.alloc(16), context),
    /no such parent/,
  )
})

t.test('names are compared without regard to case and composition', async (t) => {
  const known = [group('École')]
  for (const name of ['école', 'ÉCOLE', 'E\u0301cole', ' École '])
    t.throws(() => createGroup(known, { name }, Buffer.alloc(16), context), /another group has this name/)
  const renamed = changeGroup(known, group('École'), { name: 'école' }, context)
  t.match(renamed, { result: { name: 'école' } }, 'a group may change the case of its own')
})

t.test('a name has no comma, no invisible character and a limit', async (t) => {
  const create = (name: string) => createGroup([], { name }, Buffer.alloc(16), context)
  for (const name of [
    'a,b',
    'a\u202eb',
    'a\u0000b',
    'a\nb',
    'a"b',
    'a;b',
    '-a',
    'a.',
    '',
    ' ',
    'a'.repeat(101),
  ])
    t.throws(() => create(name), /the name of a group has 1 to 100 characters/, JSON.stringify(name))
  for (const name of [
    'a',
    'staff',
    'Students of 2026',
    'team/core',
    'a@b.c',
    'écoliers',
    '生徒',
    'a'.repeat(100),
  ])
    t.match(create(name), { result: { name } })
})
