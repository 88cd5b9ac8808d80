import t from 'tap'
import {
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
  membershipKind,
  membershipPrefix,
} from '../../src/domain/group.ts'

const context = { by: 'operator', at: 1000 } as const
const group = (name: string, parentId?: string): Group => ({
  id: `group_${name}`,
  name,
  createdAt: 1,
  ...(parentId !== undefined && { parentId }),
})

t.test('a group is deleted with its memberships', async (t) => {
  const staff = group('staff')
  const { writes } = deleteGroup([staff], staff, context)
  const removal = { op: 'deleteRecordsFrom', kind: membershipKind.name, prefix: membershipPrefix(staff.id) }
  t.ok(writes.some((write) => JSON.stringify(write) === JSON.stringify(removal)))
})

t.test('no group becomes its own ancestor, by however many steps', async (t) => {
  const [a, b, c] = [group('a'), group('b', 'group_a'), group('c', 'group_b')] as const
  for (const parentId of [a.id, b.id, c.id])
    t.throws(() => changeGroup([a, b, c], a, { parentId }, context), /the group itself, or below it/)
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
