import { createAccount } from '../domain/account.ts'
import { auditEvent } from '../domain/audit.ts'
import type { AccountClaims } from '../domain/model.ts'
import { hashPassword } from '../passwords.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system.ts'

/** A person of the development server. Their passwords are public knowledge. */
export interface DevelopmentPerson {
  readonly username: string
  readonly password: string
  readonly email?: string
  readonly claims: AccountClaims
}

/** Alice has every standard claim of the profile and email scopes, OpenID Connect Core §5.4; Bob has hardly any. */
export const developmentPeople: readonly DevelopmentPerson[] = [
  {
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
  },
  { username: 'bob', password: 'bob-in-dev', claims: { name: 'Bob Baker' } },
]

/** Adds the development people whose names are free; everybody else stays as they are. */
export async function seedPeople(
  store: Pick<Store, 'find' | 'write'>,
  clock: Clock,
  random: RandomSource,
): Promise<void> {
  for (const { password, ...person } of developmentPeople) {
    if (await store.find('accountByLogin', person.username)) continue
    const passwordHash = await hashPassword(password, random)
    const said = { ...person, emailVerified: true, passwordHash, seeded: true }
    try {
      const account = createAccount(said, random(16), clock())
      const event = auditEvent('person-added', { by: 'server', at: clock() }, { accountId: account.id })
      await store.write({ op: 'insertAccount', account }, event)
    } catch (error) {
      // Her address belongs to somebody the developer added, or another server has just seeded.
      if (!(error instanceof RecordExists)) throw error
    }
  }
}
