import { type Attribute, attributeChange, attributeNames } from '../domain/attributes.ts'
import { textClaims } from '../domain/claims.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { claimFault } from '../users/rules/editable-claims.ts'
import { createUser } from '../users/rules/user.ts'
import { WrongUsage } from './failure.ts'
import type { ServerFlags } from './files/open-target.ts'
import { demands, taken } from './find.ts'
import { ensureAdministrators } from './group.ts'
import { changesUsers, type Json, type Operator, readsUsers, withOperator } from './operate.ts'
import { readNewPassword, warnWithoutAdministrator } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

/** Flags of commands that name claims: `--given-name` is commander's `givenName`. */
export interface ClaimFlags extends ServerFlags {
  readonly attribute?: readonly string[]
  readonly [flag: string]: unknown
}

interface AddFlags extends ClaimFlags {
  readonly email?: string
  readonly emailVerified?: true
  readonly admin?: true
}

/** Loaded late: `--help` needs none of it. */
const changes = () => import('../admin/operations/user-changes.ts')

/**
 * `lychgate user add`: adds a user with a password that the operator knows. It says so on standard error if there is no
 * administrator afterwards, as the first user of a store would be by the link that `serve` prints.
 */
export async function userAdd(username: string, flags: AddFlags): Promise<void> {
  if (flags.admin && flags.server !== undefined)
    throw new WrongUsage('--admin is for a store, and not for --server')
  await withOperator(flags, changesUsers, async (operator) => {
    const { store, config, perform, findLogin } = operator
    const profile = { username, email: flags.email, claims: newClaims(flags) }
    const attributes = await attributesOf(operator, flags)
    // Checked before asking for the password.
    const { username: canonical } = createUser({ ...profile, attributes }, systemRandom(16), systemClock())
    if (await findLogin(canonical)) throw taken()
    const body = {
      ...omitUndefined(profile),
      email_verified: flags.emailVerified ?? false,
      attributes: attributes.assigned,
      password: await readNewPassword(),
    }
    const isFirst = flags.admin && store !== undefined && config !== undefined
    const group = isFirst && { group_id: (await ensureAdministrators(store, config)).id }
    const user = await perform((await changes()).inviteUser, {}, { ...body, ...group })
    printResult(flags, user, { sub: user['sub'], username: canonical, email: emailOf(user) })
    await warnWithoutAdministrator(operator, canonical)
  })
}

interface SetFlags extends ClaimFlags {
  readonly username?: string
  readonly email?: string
  readonly emailVerified?: boolean
}

/** `lychgate user set`: changes the profile of a user; what is not named stays. */
export async function userSet(login: string, flags: SetFlags): Promise<void> {
  const { username, email, emailVerified: email_verified } = flags
  const claims = claimsOf(flags)
  const named = omitUndefined({ username, email, email_verified })
  const attributes = attributeNames(attributeTexts(flags))
  const changed = [...Object.keys(claims), ...attributes, ...Object.keys(named)].join(' ')
  if (changed === '') throw new WrongUsage('nothing to change; name at least one flag, see --help')
  await withOperator(flags, changesUsers, async (operator) => {
    const { sub } = await operator.findUser(login)
    const { assigned: given } = await attributesOf(operator, flags)
    const body = { claims, attributes: given, ...named }
    const user = await operator.perform((await changes()).changeUser, { sub }, body)
    printResult(flags, user, { changed: user['username'], what: changed })
  })
}

/**
 * `lychgate user passwd`: sets a new password and ends every session, and with `--disconnect` every grant,
 * RFC 9700 §4.14.2.
 */
export async function userPasswd(
  login: string,
  flags: ServerFlags & { readonly disconnect?: true },
): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub } = await findUser(login)
    const body = { password: await readNewPassword(), disconnect: flags.disconnect ?? false }
    const user = await perform((await changes()).setPassword, { sub }, body)
    printResult(flags, user, { changed: user['username'] })
  })
}

/** `lychgate user list`: lists every user, oldest first. */
export async function userList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async ({ list }) => {
    const { listUsers } = await import('../admin/operations/users.ts')
    const lineOf = (user: Json) => [`${user['sub']}`, `${user['username']}`, emailOf(user), stateOf(user)]
    printList(flags, await list(listUsers, {}), (user) => user, lineOf)
  })
}

/** `lychgate user show`: shows a user, how they can sign in, and their sessions and grants. */
export async function userShow(login: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async (operator) => {
    const user = await operator.findUser(login)
    const facts = await factsOf(user, operator)
    const { sub, username, claims, attributes, created_at, updated_at, locked_at } = user
    const { preferred_username: _, updated_at: __, ...shown } = claims as Json // as a user is described
    const readable = Object.entries(shown).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : value,
    ])
    const named = Object.entries(attributes as Json).map(([name, value]) => [`attribute ${name}`, value])
    printResult(
      flags,
      { ...user, ...facts },
      {
        sub,
        username,
        ...Object.fromEntries([...readable, ...named]),
        created: instant(Number(created_at)),
        changed: instant(Number(updated_at)),
        locked: locked_at && `since ${instant(Number(locked_at))}`,
        password: user['has_password'] ? 'set' : 'none',
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

async function factsOf({ sub }: { readonly sub: string }, { perform, list }: Operator) {
  const { readSignIn } = await import('../admin/operations/users.ts')
  const { listGroupsOfUser } = await import('../admin/operations/group-reads.ts')
  const { listSessions } = await import('../admin/operations/sessions.ts')
  const { listGrants } = await import('../admin/operations/grants.ts')
  const signIn = await perform(readSignIn, { sub })
  const [groups, sessions, clients] = [
    await list(listGroupsOfUser, { sub }),
    await list(listSessions, { sub }),
    await list(listGrants, { sub }),
  ]
  return {
    second_factor: signIn['second_factor'],
    passkeys: signIn['passkeys'],
    failures_in_a_row: signIn['failures_in_a_row'],
    groups: groups.map(({ name }) => String(name)).toSorted((one, other) => (one < other ? -1 : 1)),
    sessions: sessions.length,
    clients: clients.length,
    grants: clients.reduce((sum, { grants }) => sum + Number(grants), 0),
  }
}

/** The email address of a user as the admin API describes one. */
function emailOf({ claims }: Json): string {
  return String((claims as Json)['email'] ?? '')
}

function stateOf({ seeded, locked_at, has_password }: Json): string {
  const states = [
    locked_at !== undefined && 'locked',
    has_password === false && 'no password',
    seeded === true && 'development',
  ].filter(Boolean)
  return states.length === 0 ? '' : `(${states.join(', ')})`
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
function attributeTexts({ attribute = [] }: ClaimFlags): Readonly<Record<string, string>> {
  const texts = attribute.map((text) => {
    const [name = '', ...value] = text.split('=')
    if (value.length === 0) throw new WrongUsage('--attribute: must be NAME=VALUE')
    return [name, value.join('=')] as const
  })
  return Object.fromEntries(texts)
}

/** Reads the same as the values that the declarations of the store or the server make of them. */
export async function attributesOf({ list }: Operator, flags: ClaimFlags) {
  const texts = attributeTexts(flags)
  const { listAttributes } = await import('../admin/operations/users.ts')
  const declared = Object.keys(texts).length === 0 ? [] : await list(listAttributes, {})
  // `as`: as the admin API describes them.
  return attributeChange(declared as unknown as readonly Attribute[], texts)
}

/** Reads the claims of a new user: one without a value is left out, OpenID Connect Core §5.3.2. */
export function newClaims(flags: ClaimFlags): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(claimsOf(flags)).filter(([, value]) => value !== ''))
}
