import type { Scope } from './model.ts'

/** A scope of the catalogue: its name, and its text and place on the consent page. */
export interface CatalogueScope {
  readonly name: string
  /** The area: one row on the consent page. */
  readonly group: string
  readonly access: 'identity' | 'read' | 'write'
  readonly description: string
  /** Marked as sensitive on the consent page: other people's data, money, or permissions. */
  readonly sensitive?: boolean
  /** Only clients that an operator added have it, and only if their metadata names it. It is not advertised. */
  readonly operatorOnly?: true
  /** Claims it opens at UserInfo, OpenID Connect Core §5.4. */
  readonly claims?: readonly string[]
}

const profileClaims = [
  'name',
  'family_name',
  'given_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
  'updated_at',
]

/** The 38 scopes of the service specification, §5. An operator replaces them in the configuration file. */
export const defaultScopeCatalogue: CatalogueScope[] = [
  {
    name: 'openid',
    group: 'Your identity',
    access: 'identity',
    description: 'Know who you are on this service',
  },
  {
    name: 'profile',
    group: 'Your profile',
    access: 'identity',
    description: 'See your name and basic profile',
    claims: profileClaims,
  },
  {
    name: 'email',
    group: 'Your email address',
    access: 'identity',
    description: 'See your email address',
    claims: ['email', 'email_verified'],
  },
  { name: 'courses:read', group: 'Courses', access: 'read', description: 'Titles, lessons and schedules' },
  { name: 'courses:write', group: 'Courses', access: 'write', description: 'Titles, lessons and schedules' },
  {
    name: 'students:read',
    group: 'Students',
    access: 'read',
    description: 'Names, email addresses and progress',
    sensitive: true,
  },
  {
    name: 'students:write',
    group: 'Students',
    access: 'write',
    description: 'Names, email addresses and progress',
    sensitive: true,
  },
  {
    name: 'members:read',
    group: 'Members',
    access: 'read',
    description: 'People in the community and what they may do',
    sensitive: true,
  },
  {
    name: 'members:write',
    group: 'Members',
    access: 'write',
    description: 'People in the community and what they may do',
    sensitive: true,
  },
  {
    name: 'analytics:read',
    group: 'Analytics',
    access: 'read',
    description: 'Visits, sales and progress in numbers',
  },
  {
    name: 'curriculum:read',
    group: 'Curriculum',
    access: 'read',
    description: 'Sections, lessons and their order',
  },
  {
    name: 'curriculum:write',
    group: 'Curriculum',
    access: 'write',
    description: 'Sections, lessons and their order',
  },
  {
    name: 'orders:read',
    group: 'Orders',
    access: 'read',
    description: 'What was bought, by whom and for how much',
    sensitive: true,
  },
  {
    name: 'school:read',
    group: 'School',
    access: 'read',
    description: 'Name, address and settings of the school',
  },
  {
    name: 'school:write',
    group: 'School',
    access: 'write',
    description: 'Name, address and settings of the school',
  },
  { name: 'appearance:read', group: 'Appearance', access: 'read', description: 'Colours, logo and layout' },
  { name: 'appearance:write', group: 'Appearance', access: 'write', description: 'Colours, logo and layout' },
  { name: 'events:read', group: 'Events', access: 'read', description: 'Dates, places and who attends' },
  { name: 'events:write', group: 'Events', access: 'write', description: 'Dates, places and who attends' },
  {
    name: 'membership_plans:read',
    group: 'Membership plans',
    access: 'read',
    description: 'Plans, prices and what they include',
  },
  {
    name: 'membership_plans:write',
    group: 'Membership plans',
    access: 'write',
    description: 'Plans, prices and what they include',
  },
  { name: 'coupons:read', group: 'Coupons', access: 'read', description: 'Codes and discounts' },
  { name: 'coupons:write', group: 'Coupons', access: 'write', description: 'Codes and discounts' },
  { name: 'posts:read', group: 'Posts', access: 'read', description: 'Articles and announcements' },
  { name: 'posts:write', group: 'Posts', access: 'write', description: 'Articles and announcements' },
  {
    name: 'subscriptions:read',
    group: 'Subscriptions',
    access: 'read',
    description: 'Who pays regularly, and for what',
    sensitive: true,
  },
  {
    name: 'subscriptions:write',
    group: 'Subscriptions',
    access: 'write',
    description: 'Who pays regularly, and for what',
    sensitive: true,
  },
  {
    name: 'digital_products:read',
    group: 'Digital products',
    access: 'read',
    description: 'Downloads and their prices',
  },
  {
    name: 'digital_products:write',
    group: 'Digital products',
    access: 'write',
    description: 'Downloads and their prices',
  },
  {
    name: 'comments:read',
    group: 'Comments',
    access: 'read',
    description: 'What people wrote below lessons and posts',
  },
  {
    name: 'lecturers:read',
    group: 'Lecturers',
    access: 'read',
    description: 'Profiles of the people who teach',
  },
  {
    name: 'lecturers:write',
    group: 'Lecturers',
    access: 'write',
    description: 'Profiles of the people who teach',
  },
  { name: 'storage:write', group: 'Storage', access: 'write', description: 'Files kept for the school' },
  {
    name: 'forms:read',
    group: 'Forms',
    access: 'read',
    description: 'Forms and the answers people gave',
    sensitive: true,
  },
  { name: 'pages:read', group: 'Pages', access: 'read', description: 'The pages of the school site' },
  { name: 'pages:write', group: 'Pages', access: 'write', description: 'The pages of the school site' },
  { name: 'account:read', group: 'Account', access: 'read', description: 'Settings of your own account' },
  {
    name: 'account:write',
    group: 'Account',
    access: 'write',
    description: 'Settings of your own account',
    sensitive: true,
  },
]

/** Scope granted when a request names none, limited to what the client may have. */
export const defaultScope: Scope = ['openid', 'profile', 'email']

/**
 * `offline_access`, OpenID Connect Core §11. It belongs to every catalogue and changes nothing about refresh tokens,
 * which come with the grant type: oidc-agent, Argo CD and others always send it.
 */
export const offlineAccess: CatalogueScope = {
  name: 'offline_access',
  group: 'Use while you are away',
  access: 'identity',
  description: 'Stay connected while you are away',
}

/** The scope of the groups of users. Its words are here, so that a configuration can name it alone. */
export const groupsScope: CatalogueScope = {
  name: 'groups',
  group: 'Your groups',
  access: 'identity',
  description: 'See which groups you belong to',
  claims: ['groups'],
}

/** Scopes with claims of their own, OpenID Connect Core §5.4. */
export const standardScopes = ['openid', 'profile', 'email', 'address', 'phone'] as const

/** Returns the scope of this name if it has its own words in every language of the pages. */
export function shippedScope(name: unknown): CatalogueScope | undefined {
  return [...defaultScopeCatalogue, groupsScope, offlineAccess].find((scope) => scope.name === name)
}

/** Scopes that features add to the catalogue, by their names. */
export type AddedScopes = Readonly<Record<string, Omit<CatalogueScope, 'name'>>>

/**
 * Returns the catalogue with the scopes that every server has: those of features, and `offline_access`. What the
 * operator's catalogue says about one of them wins.
 */
export function completeCatalogue(
  configured: readonly CatalogueScope[],
  added: AddedScopes = {},
): readonly CatalogueScope[] {
  const fixed = [...Object.entries(added).map(([name, rest]) => ({ name, ...rest })), offlineAccess]
  const isConfigured = (name: string) => configured.some((scope) => scope.name === name)
  return [
    ...configured.map((scope) => ({ ...fixed.find(({ name }) => name === scope.name), ...scope })),
    ...fixed.filter(({ name }) => !isConfigured(name)),
  ]
}
