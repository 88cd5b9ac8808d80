import { attributeChange, attributeNames } from '../domain/attributes.ts'
import { textClaims } from '../domain/claims.ts'
import { connectionsOf, consentKind } from '../domain/connections.ts'
import { insert } from '../domain/decision.ts'
import { isGrantAlive } from '../domain/grant.ts'
import type { User } from '../domain/model.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { addAdministrator } from '../users/administrators.ts'
import { describeSignIn } from '../users/factors.ts'
import { groupsOf, inOrder } from '../users/groups.ts'
import { editProfile } from '../users/rules/edit-profile.ts'
import { type ClaimFault, claimFault } from '../users/rules/editable-claims.ts'
import { isSessionLive } from '../users/rules/session.ts'
import { changePassword, createUser, describeUser, endAccess } from '../users/rules/user.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { changeUser, findUser, userEvent } from './find.ts'
import type { OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext, readNewPassword, warnWithoutAdministrator } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

/** Flags of commands that name claims: `--given-name` is commander's `givenName`. */
export interface ClaimFlags extends OperatorFlags {
  readonly attribute?: readonly string[]
  readonly [flag: string]: unknown
}

interface AddFlags extends ClaimFlags {
  readonly email?: string
  readonly emailVerified?: true
  readonly admin?: true
}

/**
 * `lychgate user add`: adds a user with a password that the operator knows. It says so on standard error if there is no
 * administrator afterwards, as the first user of a store would be by the link that `serve` prints.
 */
export async function userAdd(username: string, flags: AddFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { accounts, admin } = config
    const profile = {
      username,
      email: flags.email,
      emailVerified: flags.emailVerified ?? false,
      claims: newClaims(flags),
      attributes: attributeChange(accounts.attributes, attributesOf(flags)),
    }
    // Checked before asking for the password.
    const { username: canonical } = createUser(profile, systemRandom(16), systemClock())
    if (await store.find('userByLogin', canonical)) throw taken()
    const passwordHash = await readPasswordHash()
    const user = createUser({ ...profile, passwordHash }, systemRandom(16), systemClock())
    const writes = [insert('user', user), userEvent('user-added', user.id)]
    const added = flags.admin
      ? addAdministrator(store, admin.group, user.id, systemRandom(16), operatorContext(), ...writes)
      : store.write(...writes)
    await unlessTaken(added)
    printResult(flags, describeUser(user), { sub: user.id, username: user.username, email: user.email })
    await warnWithoutAdministrator(store, config, user.username)
  })
}

interface SetFlags extends ClaimFlags {
  readonly email?: string
  readonly emailVerified?: boolean
}

/** `lychgate user set`: changes the profile of a user; what is not named stays. */
export async function userSet(login: string, flags: SetFlags): Promise<void> {
  const { email, emailVerified } = flags
  const claims = claimsOf(flags)
  const attributes = attributesOf(flags)
  const changed = [
    ...Object.keys(claims),
    ...attributeNames(attributes),
    ...(email === undefined ? [] : ['email']),
    ...(emailVerified === undefined ? [] : ['email_verified']),
  ].join(' ')
  if (changed === '') throw new WrongUsage('nothing to change; name at least one flag, see --help')
  const profile = {
    claims,
    ...(email !== undefined && { email }),
    ...(emailVerified !== undefined && { emailVerified }),
  }
  await withStore(flags, async (store, { accounts }) => {
    const { id } = await findUser(store, login)
    const change = { ...profile, attributes: attributeChange(accounts.attributes, attributes) }
    const context = operatorContext()
    const user = await unlessTaken(changeUser(store, id, (found) => editProfile(found, change, context)))
    printResult(flags, describeUser(user), { changed: user.username, what: changed })
  })
}

/**
 * `lychgate user passwd`: sets a new password and ends every session, and with `--disconnect` every grant,
 * RFC 9700 §4.14.2.
 */
export async function userPasswd(
  login: string,
  flags: OperatorFlags & { readonly disconnect?: true },
): Promise<void> {
  await withStore(flags, async (store) => {
    const { id } = await findUser(store, login)
    const passwordHash = await readPasswordHash()
    const now = systemClock()
    const writes = flags.disconnect ? endAccess(id, 'rfc9700-4.14.2-revoke-on-event', now) : []
    const event = userEvent('user-password-changed', id, flags.disconnect && { disconnected: 'everything' })
    const setPassword = (found: User) => changePassword(found, passwordHash, now)
    const user = await changeUser(store, id, setPassword, ...writes, event)
    printResult(flags, describeUser(user), { changed: user.username })
  })
}

/** `lychgate user list`: lists every user, oldest first. */
export async function userList(flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const lineOf = (user: User) => [user.id, user.username, user.email ?? '', stateOf(user)]
    printList(flags, await store.list('user'), describeUser, lineOf)
  })
}

/** `lychgate user show`: shows a user, how they can sign in, and their sessions and grants. */
export async function userShow(login: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const user = await findUser(store, login)
    const facts = await factsOf(user, store)
    const { id, username, claims, createdAt, updatedAt, lockedAt } = user
    const { preferred_username: _, updated_at: __, ...shown } = claims
    const readable = Object.entries(shown).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : value,
    ])
    const attributes = Object.entries(user.attributes ?? {}).map(([name, value]) => [
      `attribute ${name}`,
      value,
    ])
    printResult(
      flags,
      { ...describeUser(user), ...facts },
      {
        sub: id,
        username,
        ...Object.fromEntries([...readable, ...attributes]),
        created: instant(createdAt),
        changed: instant(updatedAt),
        locked: lockedAt && `since ${instant(lockedAt)}`,
        password: user.passwordHash === undefined ? 'none yet' : 'set',
        'second factor': facts.second_factor ? 'one-time codes' : 'none',
        passkeys: facts.passkeys,
        groups: facts.groups,
        'failures in a row': facts.failures_in_a_row || undefined,
        sessions: facts.sessions,
        clients: facts.clients,
        grants: facts.grants,
      },
    )
  })
}

async function factsOf({ id }: User, store: Store) {
  const now = systemClock()
  const [signIn, groups, sessions, grants, consents] = await Promise.all([
    describeSignIn(store, id),
    groupsOf(store, id),
    store.listOf('session', id),
    store.listOf('grant', id),
    store.listOf(consentKind, id),
  ])
  return {
    ...signIn,
    groups: inOrder(groups).map(({ name }) => name),
    sessions: sessions.filter((session) => isSessionLive(session, now)).length,
    clients: connectionsOf(grants, consents, now).length,
    grants: grants.filter((grant) => isGrantAlive(grant, now)).length,
  }
}

async function readPasswordHash(): Promise<string> {
  const password = await readNewPassword()
  const { hashPassword } = await import('../users/passwords.ts')
  return hashPassword(password, systemRandom)
}

function stateOf({ seeded, lockedAt, passwordHash }: User): string {
  const states = [
    lockedAt !== undefined && 'locked',
    passwordHash === undefined && 'no password',
    seeded && 'development',
  ].filter(Boolean)
  return states.length === 0 ? '' : `(${states.join(', ')})`
}

/** What the text of a claim must be. */
export const demands: Readonly<Record<ClaimFault, string>> = {
  tooLong: 'is too long',
  invisible: 'contains invisible characters',
  url: 'must be an http or https URL',
  birthdate: 'must be YYYY-MM-DD, or a year alone',
  zoneinfo: 'must be a time zone, such as Europe/Berlin',
  locale: 'must be a language tag, such as de-CH',
}

/**
 * Reads the claims that the flags name; an empty text removes the claim.
 * @throws {WrongUsage} for text that the claim cannot have.
 */
function claimsOf(flags: ClaimFlags): Readonly<Record<string, string>> {
  const claims: Record<string, string> = {}
  for (const claim of textClaims) {
    const value = flags[claim.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value !== 'string') continue
    const text = value.trim()
    const fault = claimFault(claim, text)
    if (fault !== undefined) throw new WrongUsage(`--${claim.replaceAll('_', '-')}: ${demands[fault]}`)
    claims[claim] = text
  }
  return claims
}

/** Reads `--attribute NAME=VALUE`. @throws {WrongUsage} for another form. */
export function attributesOf({ attribute = [] }: ClaimFlags): Readonly<Record<string, string>> {
  const texts = attribute.map((text) => {
    const [name = '', ...value] = text.split('=')
    if (value.length === 0) throw new WrongUsage('--attribute: must be NAME=VALUE')
    return [name, value.join('=')] as const
  })
  return Object.fromEntries(texts)
}

/** Reads the claims of a new user: one without a value is left out, OpenID Connect Core §5.3.2. */
export function newClaims(flags: ClaimFlags): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(claimsOf(flags)).filter(([, value]) => value !== ''))
}

/** Returns the error for a user name or an address that is taken. */
export function taken(): CommandFailed {
  return new CommandFailed('the user name or email address is taken')
}

/** @throws {CommandFailed} when another user has the user name or the address. */
export async function unlessTaken<T>(writing: Promise<T>): Promise<T> {
  try {
    return await writing
  } catch (error) {
    throw error instanceof RecordExists ? taken() : error
  }
}
