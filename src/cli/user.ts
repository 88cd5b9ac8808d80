import type { Command } from 'commander'
import { canonicalLogin, changePassword, createAccount } from '../domain/account.ts'
import { auditEvent } from '../domain/audit.ts'
import { accept, type Write, withWrites } from '../domain/decision.ts'
import type { Account, AccountClaims, AuditEventName } from '../domain/model.ts'
import { hashPassword } from '../passwords.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags, withStore } from './open.ts'
import { operatorOccasion } from './operator.ts'
import { printColumns, printJson, printMembers } from './print.ts'
import { confirm, readNewPassword } from './prompt.ts'

interface UserFlags extends LocationFlags {
  readonly json?: true
  readonly yes?: true
  readonly email?: string
  readonly emailVerified?: true
  /** Claims, under commander's names for their flags. */
  readonly [flag: string]: string | true | undefined
}

/** Claims of the profile scope that are plain text, OpenID Connect Core §5.4; each is a flag. */
const profileClaims = [
  'name',
  'given_name',
  'family_name',
  'middle_name',
  'nickname',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
]

const addHelp = `
The password is asked for, or read from the first line of standard input; it is never an argument.

Examples:
  lychgate user add carol --email carol@example.com --name 'Carol Cooper'
  pwgen 20 1 | lychgate user add carol
`

/** Adds `lychgate user …`: the people who can sign in. */
export function addUserCommands(program: Command): void {
  const group = program.command('user').description('add, list and remove people, and set their passwords')
  const add = group.command('add <username>').description('add a person').addHelpText('after', addHelp)
  add.option('--email <address>', 'also a way to sign in').option('--email-verified', 'you know it is theirs')
  for (const claim of profileClaims)
    add.option(`--${claim.replaceAll('_', '-')} <text>`, `the claim ${claim}`)
  addLocationFlags(add).option('--json', 'print JSON').action(userAdd)
  const list = group.command('list').description('every person, oldest first')
  addLocationFlags(list).option('--json', 'print JSON').action(userList)
  const remove = group
    .command('remove <username>')
    .description('remove a person; sessions and tokens die with them')
  addLocationFlags(remove).option('--yes', 'do not ask').option('--json', 'print JSON').action(userRemove)
  const set = group
    .command('set-password <username>')
    .description('a new password, asked for or read from standard input; ends every session of theirs')
  addLocationFlags(set).option('--json', 'print JSON').action(userSetPassword)
}

async function userAdd(username: string, flags: UserFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const person = {
      username,
      email: flags.email,
      emailVerified: flags.emailVerified ?? false,
      claims: claimsOf(flags),
    }
    // Judged before the password is asked for: nobody likes to type one in vain.
    const { username: canonical } = createAccount(
      { ...person, passwordHash: '' },
      systemRandom(16),
      systemClock(),
    )
    if (await store.find('accountByLogin', canonical)) throw taken()
    const passwordHash = await hashPassword(await readNewPassword(), systemRandom)
    const account = createAccount({ ...person, passwordHash }, systemRandom(16), systemClock())
    try {
      await store.write({ op: 'insertAccount', account }, told('person-added', account.id))
    } catch (error) {
      throw error instanceof RecordExists ? taken() : error
    }
    if (flags.json) printJson(describe(account))
    else printMembers({ sub: account.id, username: account.username, email: account.email })
  })
}

async function userList(flags: UserFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const accounts = await store.list('account')
    if (flags.json) return printJson(accounts.map(describe))
    printColumns(
      accounts.map(({ id, username, email = '', seeded }) => [
        id,
        username,
        email,
        seeded ? '(development)' : '',
      ]),
    )
  })
}

async function userRemove(username: string, flags: UserFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const person = await findPerson(store, username)
    if (!flags.yes && !(await confirm(`Remove ${person.username}? Their sessions and tokens die.`))) {
      throw new CommandFailed('nothing was removed')
    }
    await store.transact('account', person.id, (account) =>
      accept(
        undefined,
        { op: 'deleteAccount', accountId: requirePerson(account).id },
        told('person-removed', person.id),
      ),
    )
    if (flags.json) printJson({ sub: person.id, removed: true })
    else printMembers({ removed: person.username })
  })
}

async function userSetPassword(username: string, flags: UserFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id } = await findPerson(store, username)
    const passwordHash = await hashPassword(await readNewPassword(), systemRandom)
    const now = systemClock()
    const account = await store.transact('account', id, (found) =>
      withWrites(
        changePassword(requirePerson(found), passwordHash, now),
        told('person-password-changed', id),
      ),
    )
    if (flags.json) printJson(describe(account))
    else printMembers({ changed: account.username })
  })
}

function told(name: AuditEventName, accountId: string): Write {
  return auditEvent(name, operatorOccasion(), { accountId })
}

async function findPerson(store: Store, login: string): Promise<Account> {
  const canonical = canonicalLogin(login)
  return requirePerson(canonical === undefined ? undefined : await store.find('accountByLogin', canonical))
}

function requirePerson(account: Account | undefined): Account {
  if (account === undefined) throw new CommandFailed('nobody has this user name')
  return account
}

function taken(): CommandFailed {
  return new CommandFailed('the user name or e-mail address is taken')
}

function claimsOf(flags: UserFlags): AccountClaims {
  const claims: Record<string, string> = {}
  for (const claim of profileClaims) {
    const value = flags[claim.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]
    // OpenID Connect Core §5.3.2: a claim without a value is left out, never empty.
    if (typeof value === 'string' && value.trim() !== '') claims[claim] = value.trim()
  }
  return claims
}

/** Everything but the password's hash, standard claims under their own names. */
function describe({ id, username, seeded, createdAt, claims }: Account) {
  return { sub: id, username, seeded, created_at: createdAt, claims }
}
