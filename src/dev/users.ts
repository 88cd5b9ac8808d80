import { hash } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { type Attribute, attributesOf, changeAttributes } from '../domain/attributes.ts'
import { accept, update } from '../domain/decision.ts'
import { groupTreeKey, groupTreeKind } from '../domain/group.ts'
import type { User, UserAttributes, UserClaims } from '../domain/model.ts'
import { isSameText } from '../domain/secret.ts'
import type { PasswordCheck } from '../feature/deps.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import type { Clock } from '../system/system.ts'
import { preparePassword } from '../users/passwords.ts'
import { addUser, createUser } from '../users/rules/user.ts'
import { seedGroups } from './groups.ts'

const claimValue = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Boolean(),
  Type.Record(Type.String(), Type.String()),
])

/** A user of a development server. */
export const DevelopmentUser = Type.Object(
  {
    username: Type.String({ minLength: 1 }),
    /** It is public. Absent: the user name and `-in-dev`. */
    password: Type.Optional(Type.String({ minLength: 1 })),
    email: Type.Optional(Type.String()),
    /** Absent: true. */
    email_verified: Type.Optional(Type.Boolean()),
    /** Absent: derived from the user name, the same in every development server. */
    sub: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' })),
    claims: Type.Optional(Type.Record(Type.String(), claimValue)),
    /** Values of `accounts.attributes`. Absent: they stay as they are. */
    attributes: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
    ),
    /** The names of groups, which are created. Absent: the groups of the user stay as they are. */
    groups: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { uniqueItems: true })),
  },
  { additionalProperties: false },
)
export type DevelopmentUser = Static<typeof DevelopmentUser>

/** She has every standard claim of the scopes profile and email, OpenID Connect Core §5.4, and every attribute. */
const alice: DevelopmentUser = {
  username: 'alice',
  password: 'alice-in-dev',
  email: 'alice@example.com',
  claims: {
    name: 'Alice Mary Archer',
    given_name: 'Alice',
    middle_name: 'Mary',
    family_name: 'Archer',
    nickname: 'Al',
    profile: 'https://example.com/people/alice',
    picture: 'https://example.com/people/alice.png',
    website: 'https://alice.example.com',
    gender: 'female',
    birthdate: '1990-04-17',
    zoneinfo: 'Europe/Berlin',
    locale: 'en-GB',
  },
  groups: ['admins', 'staff'],
}

/** Bob has only a name. */
export const developmentUsers: readonly DevelopmentUser[] = [
  alice,
  { username: 'bob', password: 'bob-in-dev', claims: { name: 'Bob Baker' }, groups: ['students'] },
]

/** The prefix of public passwords, stored in place of a hash. No production server accepts one. */
const knownPrefix = 'known:'

/** Returns the public password of this user. */
export function passwordOf({ username, password = `${username}-in-dev` }: DevelopmentUser): string {
  return password
}

/** Returns the public password that is stored in place of a hash; undefined for a hash. */
export function knownPassword(stored: string | undefined): string | undefined {
  return stored?.startsWith(knownPrefix) ? stored.slice(knownPrefix.length) : undefined
}

function isSame(password: string, knownPassword: string): boolean {
  return isSameText(preparePassword(password), preparePassword(knownPassword))
}

/** Compares public passwords directly, and leaves all others to `check`. */
export function withKnownPasswords(check: PasswordCheck): PasswordCheck {
  return async (password, stored) => {
    const known = knownPassword(stored)
    return known === undefined ? check(password, stored) : isSame(password, known)
  }
}

/**
 * Adds these users if their names are free. A list other than the default also updates users that a development server
 * added before. Other users, and passwords that were set, are unchanged.
 * @returns The user names that are taken by other users.
 */
export async function seedUsers(
  store: Pick<Store, 'find' | 'write' | 'listOf' | 'listKind' | 'transact'>,
  clock: Clock,
  users: readonly DevelopmentUser[] = developmentUsers,
  declared: readonly Attribute[] = [],
): Promise<readonly string[]> {
  const taken: string[] = []
  // A server of an earlier version had no groups.
  const hadGroups = (await store.find(groupTreeKind, groupTreeKey)) !== undefined
  for (const described of users) {
    const fresh = userOf(described, clock)
    const attributes = described.attributes ?? (described === alice ? exampleAttributes(declared) : undefined)
    const existing = await store.find('userByLogin', fresh.username)
    const isFree = existing === undefined || existing.seeded
    const isKept = existing?.seeded && users === developmentUsers
    if (!isFree || (!isKept && !(await seedUser(store, fresh, existing, clock)))) taken.push(fresh.username)
    else {
      if (attributes !== undefined)
        await seedAttributes(store, existing?.id ?? fresh.id, { declared, assigned: attributes }, !isKept)
      if (!isKept || !hadGroups) await seedGroups(store, existing?.id ?? fresh.id, described.groups, clock)
    }
  }
  return taken
}

async function seedUser(
  store: Pick<Store, 'write'>,
  fresh: User,
  existing: User | undefined,
  clock: Clock,
): Promise<boolean> {
  try {
    if (existing === undefined) {
      await store.write(...addUser(fresh, false, { by: 'server', at: clock() }))
    } else {
      const user = updated(existing, fresh)
      if (factsOf(user) !== factsOf(existing)) await store.write(update('user', user))
    }
    return true
  } catch (error) {
    // The email address belongs to another user, or another server has just added the user.
    if (!(error instanceof RecordExists)) throw error
    return false
  }
}

/** A value for each declared attribute. */
function exampleAttributes(declared: readonly Attribute[]): UserAttributes {
  const examples = { string: 'example', number: 1, boolean: true, choice: '' }
  return Object.fromEntries(
    declared.map(({ name, type, values = [] }) => [name, values[0] ?? examples[type]]),
  )
}

/** Sets values; `isList`: replaces the values; otherwise only missing ones are set. */
async function seedAttributes(
  store: Pick<Store, 'transact'>,
  userId: string,
  { declared, assigned }: { readonly declared: readonly Attribute[]; readonly assigned: UserAttributes },
  isList: boolean,
): Promise<void> {
  await store.transact('user', userId, (user) => {
    if (user === undefined) return accept(undefined)
    const present = attributesOf(declared, user)
    const change = isList ? assigned : { ...assigned, ...present }
    const attributes = changeAttributes(user.attributes, { declared, assigned: change })
    const isSame = JSON.stringify(attributes) === JSON.stringify(user.attributes ?? {})
    return isSame ? accept(undefined) : accept(undefined, update('user', { ...user, attributes }))
  })
}

function userOf(described: DevelopmentUser, clock: Clock): User {
  const { username, email, email_verified: emailVerified = true, sub, claims } = described
  const passwordHash = knownPrefix + passwordOf(described)
  const listed = { username, email, emailVerified, passwordHash, seeded: true }
  const id = hash('sha256', `lychgate dev ${username}`, 'buffer').subarray(0, 16)
  const user = createUser({ ...listed, ...(claims && { claims: claims satisfies UserClaims }) }, id, clock())
  return sub === undefined ? user : { ...user, id: sub }
}

/** The known user with the values of the list. A password that was set stays, and so does the absence of a password. */
function updated(existing: User, fresh: User): User {
  const { email: _email, passwordHash: own, ...rest } = existing
  const passwordHash = knownPassword(own) === undefined ? own : fresh.passwordHash
  return {
    ...rest,
    ...(fresh.email !== undefined && { email: fresh.email }),
    ...(passwordHash !== undefined && { passwordHash }),
    claims: fresh.claims,
    updatedAt: fresh.updatedAt,
  }
}

/** The values of the list, in a form that can be compared. */
function factsOf({ email, passwordHash, claims: { updated_at: _, ...claims } }: User): string {
  return JSON.stringify([email, passwordHash, Object.entries(claims).sort()])
}
