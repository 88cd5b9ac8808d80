import type { AccessRule } from '../domain/access.ts'
import type { Factors } from '../domain/authentication-context.ts'
import { type Group, membershipKind } from '../domain/group.ts'
import type { AuditEvent, AuditEventName, Client, Seconds, User } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { groupsAbove } from '../users/groups.ts'

/*
 * What a user, their groups and a client were at an earlier time: what they are now, and the events of the audit log since
 * then taken back. What no event says is not known.
 */

/** A fact of an earlier time, or why the log cannot say it. */
export type Past<T> = { readonly value: T } | { readonly unknown: string }

/** What a user can sign in with: an upstream, too. */
export type UserFactors = Factors & { readonly upstream: boolean }

/** What the audit log says about one time. */
export interface PastAccess {
  readonly userLocked: Past<boolean>
  readonly clientLocked: Past<boolean>
  readonly groups: Past<readonly Group[]>
  readonly factors: Past<UserFactors>
  /** Returns the client with the member that a rule depends on, as it was. */
  readonly clientFor: (member: AccessRule['member']) => Promise<Past<Client>>
}

type Sources = Pick<Store, 'auditPage' | 'find' | 'listOf'>

/** What holds now. */
export interface PresentAccess {
  readonly user: User
  readonly client: Client
  readonly factors: Omit<Factors, 'passkey'> & Readonly<Record<'passkeys' | 'upstreams', number>>
}

const [eventsAtOnce, mostPages] = [500, 20]
const tooMany: Past<never> = { unknown: 'the log has too many events since then' }

/** Reads the past of a user and a client from the log. */
export async function readPastAccess(
  store: Sources,
  { user, client, factors }: PresentAccess,
  at: Seconds,
): Promise<PastAccess> {
  const ofUser = { userId: user.id, since: at + 1 }
  const since = (subject: Subject, ...names: readonly AuditEventName[]) => eventsOf(store, names, subject)
  const [locks, clientLocks] = await Promise.all([
    since(ofUser, 'user-locked', 'user-unlocked'),
    since({ clientId: client.id, since: at + 1 }, 'client-locked', 'client-unlocked'),
  ])
  const wasLocked = (events: Events, began: AuditEventName, isLocked: boolean): Past<boolean> =>
    events === undefined ? tooMany : { value: wasSo(events, began, isLocked) }
  return {
    userLocked: wasLocked(
      locks?.filter(({ facts }) => facts['was'] !== 'not locked'),
      'user-locked',
      user.lockedAt !== undefined,
    ),
    clientLocked: wasLocked(clientLocks, 'client-locked', client.lockedAt !== undefined),
    groups: await pastGroups(store, user, at),
    factors: await pastFactors(store, user, factors, at),
    clientFor: (member) => pastClient(store, client, member, at),
  }
}

interface Subject {
  readonly userId?: string
  readonly clientId?: string
  readonly since?: Seconds
  readonly until?: Seconds
}
type Events = readonly AuditEvent[] | undefined

/** Reads the events of these kinds, oldest first; undefined: there are too many. */
async function eventsOf(store: Sources, names: readonly AuditEventName[], subject: Subject): Promise<Events> {
  const lists = await Promise.all(names.map((name) => eventsNamed(store, { ...subject, name })))
  if (lists.includes(undefined)) return undefined
  return lists.flatMap((list) => list ?? []).toSorted((one, other) => one.at - other.at)
}

async function eventsNamed(
  store: Sources,
  { userId, clientId, ...filter }: Subject & { readonly name: AuditEventName },
): Promise<Events> {
  const events: AuditEvent[] = []
  let before: number | undefined
  for (let page = 0; page < mostPages; page += 1) {
    const { events: read, next } = await store.auditPage({
      userId,
      clientId,
      before,
      limit: eventsAtOnce,
      ...filter,
    })
    events.push(...read)
    if (next === undefined) return events.toReversed()
    before = next
  }
  return undefined
}

/** Whether something was so, by the first event since then: one that began it says that it was not. */
function wasSo([next]: readonly AuditEvent[], began: AuditEventName, isSo: boolean): boolean {
  return next === undefined ? isSo : next.name !== began
}

async function pastFactors(
  store: Sources,
  { id: userId }: User,
  present: PresentAccess['factors'],
  at: Seconds,
): Promise<Past<UserFactors>> {
  const since = { userId, since: at + 1 }
  const [added, passwords, codes, ofPasskeys, links] = await Promise.all([
    eventsOf(store, ['user-added', 'user-invited'], { userId }),
    eventsOf(store, ['user-password-changed'], { userId }),
    eventsOf(store, ['second-factor-added', 'second-factor-removed'], since),
    eventsOf(store, ['passkey-added', 'passkey-removed', 'passkeys-removed'], { userId }),
    eventsOf(store, ['upstream-linked', 'upstream-unlinked'], since),
  ])
  if (added === undefined || passwords === undefined || codes === undefined || ofPasskeys === undefined)
    return tooMany
  const passkeys = ofPasskeys.filter((event) => event.at > at)
  const later = passwords.filter((event) => event.at > at)
  if (later.some(({ facts }) => facts['link'] === 'email-undo'))
    return { unknown: 'a change of address was undone since then, which removed the factors that were new' }
  // Users of an upstream come without a password: like the first user, they add themselves.
  const isCertain =
    added.some(({ name, by }) => name === 'user-invited' || by !== 'user') ||
    later.length === 0 ||
    later.length < passwords.length
  const replacements = ofPasskeys.filter(({ facts }) => facts['replaced'] === 'password')
  const hadPassword = present.password || replacements.some((event) => event.at > at)
  if (hadPassword && !isCertain) return { unknown: 'the log does not say how the user was added' }
  const isInvited = added[0]?.name === 'user-invited'
  const countBefore = before(present.passkeys, passkeys, 'passkey-added')
  const linksBefore = before(present.upstreams, links, 'upstream-linked')
  return {
    value: {
      password:
        hadPassword &&
        !(isInvited && later.length === passwords.length) &&
        !isReplaced(replacements, passwords, at),
      codes: wasSo(codes, 'second-factor-added', present.codes),
      passkey: countBefore > 0,
      upstream: linksBefore > 0,
    },
  }
}

/** Whether a passkey had taken the place of the password by then, and no other password had been set. */
function isReplaced(replacements: readonly AuditEvent[], passwords: readonly AuditEvent[], at: Seconds) {
  const last = replacements.findLast((event) => event.at <= at)
  return last !== undefined && !passwords.some((event) => event.at >= last.at && event.at <= at)
}

/** Returns how many there were, by what was added and removed since then. */
function before(count: number, events: Events, added: AuditEventName): number {
  return (events ?? []).reduce(
    (sum, { name, facts }) => sum + (name === added ? -1 : Number(facts['passkeys'] ?? 1)),
    count,
  )
}

async function pastGroups(
  store: Sources,
  { id: userId }: User,
  at: Seconds,
): Promise<Past<readonly Group[]>> {
  const [memberships, trees] = await Promise.all([
    eventsOf(store, ['group-member-added', 'group-member-removed'], { userId, since: at + 1 }),
    eventsOf(store, ['group-changed', 'group-deleted'], { since: at + 1 }),
  ])
  if (memberships === undefined || trees === undefined) return tooMany
  const isOther = ({ name, facts }: AuditEvent) =>
    name === 'group-deleted' || /\b(?:name|parent_id)\b/.test(String(facts['changed']))
  if (trees.some(isOther)) return { unknown: 'groups were renamed, moved or deleted since then' }
  const present = new Set((await store.listOf(membershipKind, userId)).map(({ groupId }) => groupId))
  const byGroup = Map.groupBy(memberships, ({ facts }) => String(facts['group']))
  const ids = [...new Set([...present, ...byGroup.keys()])].filter((id) =>
    wasSo(byGroup.get(id) ?? [], 'group-member-added', present.has(id)),
  )
  return { value: await groupsAbove(store, ids) }
}

async function pastClient(
  store: Sources,
  client: Client,
  { name, fact, read }: AccessRule['member'],
  at: Seconds,
): Promise<Past<Client>> {
  const ofMember = (events: Events) =>
    events?.filter(({ facts }) =>
      String(facts['changed'] ?? '')
        .split(' ')
        .includes(name),
    )
  const subject = { clientId: client.id }
  const later = ofMember(
    await eventsOf(store, ['client-changed', 'registration-changed'], { ...subject, since: at + 1 }),
  )
  if (later === undefined) return tooMany
  if (later.length === 0) return { value: client }
  const before = fact && ofMember(await eventsOf(store, ['client-changed'], { ...subject, until: at }))
  const text = before ? before.at(-1)?.facts[fact ?? ''] : undefined
  if (text === undefined || read === undefined)
    return { unknown: `${name} of the client was changed since then` }
  return { value: { ...client, extra: { ...client.extra, [name]: read(String(text)) } } }
}
