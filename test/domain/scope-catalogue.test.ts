import t from 'tap'
import {
  type CatalogueScope,
  completeCatalogue,
  defaultScope,
  defaultScopeCatalogue,
  offlineAccess,
} from '../../src/domain/scope-catalogue.ts'

/** Each area: what its scopes begin with, how they end, and which of them are sensitive. */
const areas: readonly [area: string, prefix: string, access: string, sensitive?: string][] = [
  ['Courses', 'courses', 'read write'],
  ['Students', 'students', 'read write', 'read write'],
  ['Members', 'members', 'read write', 'read write'],
  ['Analytics', 'analytics', 'read'],
  ['Curriculum', 'curriculum', 'read write'],
  ['Orders', 'orders', 'read', 'read'],
  ['School', 'school', 'read write'],
  ['Appearance', 'appearance', 'read write'],
  ['Events', 'events', 'read write'],
  ['Membership plans', 'membership_plans', 'read write'],
  ['Coupons', 'coupons', 'read write'],
  ['Posts', 'posts', 'read write'],
  ['Subscriptions', 'subscriptions', 'read write', 'read write'],
  ['Digital products', 'digital_products', 'read write'],
  ['Comments', 'comments', 'read'],
  ['Lecturers', 'lecturers', 'read write'],
  ['Storage', 'storage', 'write'],
  ['Forms', 'forms', 'read', 'read'],
  ['Pages', 'pages', 'read write'],
  ['Account', 'account', 'read write', 'write'],
]

const shown = ({ name, group, access, sensitive = false }: CatalogueScope) => [name, group, access, sensitive]
const isOfIdentity = ({ access }: CatalogueScope) => access === 'identity'

t.test('each area has its scopes, in order, and those about others or money are sensitive', async (t) => {
  const expected = areas.flatMap(([area, prefix, accesses, sensitive = '']) =>
    accesses
      .split(' ')
      .map((access) => [`${prefix}:${access}`, area, access, sensitive.split(' ').includes(access)]),
  )
  t.strictSame(defaultScopeCatalogue.filter((scope) => !isOfIdentity(scope)).map(shown), expected)
})

t.test('three scopes are about the user alone, and two of them open claims', async (t) => {
  const identity = defaultScopeCatalogue.slice(0, 3)
  t.strictSame(identity.map(shown), [
    ['openid', 'Your identity', 'identity', false],
    ['profile', 'Your profile', 'identity', false],
    ['email', 'Your email address', 'identity', false],
  ])
  t.strictSame(
    identity.map(({ claims }) => claims?.join(' ')),
    [
      undefined,
      // OpenID Connect Core §5.4, in its order.
      'name family_name given_name middle_name nickname preferred_username profile picture website ' +
        'gender birthdate zoneinfo locale updated_at',
      'email email_verified',
    ],
  )
  const others = defaultScopeCatalogue.slice(3)
  t.strictSame(
    others.filter(({ claims }) => claims !== undefined),
    [],
    'no other scope opens a claim',
  )
})

t.test('a request without a scope gets what is about the user alone', async (t) => {
  t.strictSame(defaultScope, ['openid', 'profile', 'email'])
})

t.test('every catalogue ends with offline_access', async (t) => {
  t.strictSame(shown(offlineAccess), ['offline_access', 'Use while you are away', 'identity', false])
  t.strictSame(completeCatalogue([]), [offlineAccess])
  t.strictSame(completeCatalogue(defaultScopeCatalogue), [...defaultScopeCatalogue, offlineAccess])
})

t.test(
  'the scopes of features come after those of the operator, who may describe them otherwise',
  async (t) => {
    const own: CatalogueScope = { name: 'own', group: 'Own', access: 'read', description: 'It is their own' }
    const groups = { group: 'Groups', access: 'identity', description: 'See your groups' } as const
    const directory = { group: 'Directory', access: 'write', description: 'Manage users' } as const
    t.strictSame(completeCatalogue([own], { groups, directory }), [
      own,
      { name: 'groups', ...groups },
      { name: 'directory', ...directory },
      offlineAccess,
    ])
    const worded: CatalogueScope = { ...groups, name: 'groups', description: 'See your teams' }
    const operatorOnly = { ...groups, operatorOnly: true, claims: ['groups'] } as const
    t.strictSame(
      completeCatalogue([worded, own], { groups: operatorOnly, directory }),
      [{ ...operatorOnly, ...worded }, own, { name: 'directory', ...directory }, offlineAccess],
      'what they leave out is that of the feature',
    )
    const away = { ...offlineAccess, description: 'Work at night' }
    t.strictSame(completeCatalogue([away, own]), [away, own])
  },
)
