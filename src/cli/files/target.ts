import type { Known } from '../../clients/members.ts'
import type { Attribute } from '../../domain/attributes.ts'
import type { AuditContext } from '../../domain/audit.ts'
import type { Decision } from '../../domain/decision.ts'
import type { Group } from '../../domain/group.ts'
import type { Client, Seconds, User } from '../../domain/model.ts'
import type { Wanted } from './read.ts'

/** What a server or its store has of what files describe. */
export interface State {
  readonly groups: readonly Group[]
  readonly users: readonly User[]
  /** Those that an operator added. */
  readonly clients: readonly Client[]
  /** The client ids that others have: of clients that registered themselves, or publish their metadata. */
  readonly otherClientIds: ReadonlySet<string>
  /** The ids of the groups that a user was added to, by the `sub` of the user. */
  readonly memberships: ReadonlyMap<string, readonly string[]>
  /** What clients may refer to. */
  readonly known: Known
  /** The attributes of users that are declared. */
  readonly attributes: readonly Attribute[]
}

/** One object before and after; absent: it is added. */
export interface Step<T> {
  readonly before?: T
  readonly after: T
  readonly context: AuditContext
}

/** A change of one object. `decide` makes it of what is there by then. */
export interface Changed<T> extends Required<Step<T>> {
  readonly decide: (found: T | undefined) => Decision<unknown>
}

/** Where an invitation went; a link is for the operator to give. */
export interface Invited {
  readonly sent_to?: string
  readonly link?: string
  readonly expires_at?: Seconds
}

/** A change of all groups. */
type DecideGroups = (groups: readonly Group[]) => Decision<void>

/**
 * Where files are applied: a store, or a running server by its admin API. A plan is made of the same domain objects for
 * both; a store decides again in its transactions, and a server in its own.
 */
export interface Target {
  /** The client that the requests are made with. */
  readonly callerId?: string | undefined
  /** @param wanted What the files have; absent: all is read. */
  readState(wanted?: Wanted): Promise<State>
  /** Makes the steps in their order. A store makes all of them in one transaction, by `decide`. */
  changeGroups(steps: readonly Step<Group>[], decide: DecideGroups): Promise<void>
  /** Deletes groups, the lowest first. */
  deleteGroups(groups: readonly Group[], decide: DecideGroups, context: AuditContext): Promise<void>
  /** Returns where the invitation went; a locked user gets none. */
  addUser(user: User, context: AuditContext): Promise<Invited | undefined>
  changeUser(changed: Changed<User>): Promise<void>
  addMember(group: Group, user: User, context: AuditContext): Promise<void>
  removeMember(group: Group, user: User, context: AuditContext): Promise<void>
  deleteUser(user: User, context: AuditContext): Promise<void>
  addClient(client: Client, secret: string | undefined, context: AuditContext): Promise<void>
  /** @param secret The new one, if it is replaced. */
  changeClient(step: Required<Step<Client>>, secret: string | undefined): Promise<void>
  deleteClient(client: Client, context: AuditContext): Promise<void>
}

/** What is done with the target: which scopes it needs follows from that. */
export interface Use {
  /** Absent: everything is read. */
  readonly wanted?: Wanted
  readonly writes?: boolean
}
