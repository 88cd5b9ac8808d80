import type { Config } from '../../config/schema.ts'
import { accept, type Decision } from '../../domain/decision.ts'
import { membershipKind } from '../../domain/group.ts'
import type { Client } from '../../domain/model.ts'
import { knownTo } from '../../feature/known-to.ts'
import { declared } from '../../features.ts'
import { RecordExists, type Store } from '../../storage/store.ts'
import { systemClock, systemRandom } from '../../system/system.ts'
import { keepAdministrator } from '../../users/administrators.ts'
import { addToGroup, changeGroups, listGroups, removeFromGroup } from '../../users/groups.ts'
import { addUser, deleteUser } from '../../users/rules/user.ts'
import { ifFound, unlessMissing } from '../failure.ts'
import { taken } from '../find.ts'
import { operatorOn } from '../operate.ts'
import { clientTarget } from './client-target.ts'
import type { State, Target } from './target.ts'

interface StoreOptions {
  readonly store: Store
  readonly config: Config
  /** The group that keeps a member; absent: it need not. */
  readonly administrators?: string | undefined
  /** Invitations are printed, also if there is a mail server. */
  readonly isPrinted: boolean
}

/** A store: each object is a transaction, and all groups are one. */
export function storeTarget({ store, config, administrators, isPrinted }: StoreOptions): Target {
  const guard = <T>(decision: Decision<T>) => keepAdministrator(decision, administrators, systemClock())
  return {
    readState: () => readState(store, config),
    changeGroups: (_, decide) => changeGroups(store, (groups) => guard(decide(groups))),
    deleteGroups: (_, decide) => changeGroups(store, (groups) => guard(decide(groups))),
    async addUser(user, context) {
      // Loaded late: most runs invite no user.
      const { createInvitation } = await import('../../pages/emails/invitation.ts')
      const { username, lockedAt } = user
      const isInvited = lockedAt === undefined
      const sources = { config, random: systemRandom }
      const invitation = isInvited ? createInvitation(sources, user, !isPrinted, context) : undefined
      const writes = [...addUser(user, isInvited, context), ...(invitation?.writes ?? [])]
      await store.write(...writes).catch(nameTaken)
      const error = (line: string) =>
        process.stderr.write(`lychgate: ${line}; give the link to ${username} yourself\n`)
      return invitation?.deliver({ error })
    },
    async changeUser({ before, after, decide }) {
      const isLocked = after.lockedAt !== undefined
      await store
        .transact('user', before.id, (user) => (isLocked ? guard(decide(user)) : decide(user)))
        .catch(nameTaken)
    },
    async addMember(group, { id }, context) {
      await addToGroup(store, group, id, context)
    },
    // After all additions: another user may be the next administrator.
    async removeMember(group, { id }, context) {
      await removeFromGroup(store, group, id, context, guard)
    },
    async deleteUser({ id }, context) {
      await store.transact('user', id, (user) =>
        user === undefined ? accept(undefined) : guard(deleteUser(user, context)),
      )
    },
    ...clientTarget(async (operation, { id }, context, body) => {
      const { perform } = operatorOn(store, config, administrators, context)
      const performed = perform(operation, { client_id: id }, body)
      if (operation.kind === 'delete') await ifFound(performed)
      else await unlessMissing(performed, `${id} was removed in the meantime`)
    }),
  }
}

/** @throws {CommandFailed} when another user has the user name or the address. */
function nameTaken(error: unknown): never {
  throw error instanceof RecordExists ? taken() : error
}

const pageSize = 10_000

/** Reads everything that files can describe. */
async function readState(store: Store, config: Config): Promise<State> {
  const [groups, users, all] = await Promise.all([
    listGroups(store),
    store.list('user'),
    store.list('client'),
  ])
  const memberships = new Map<string, string[]>()
  let after: string | undefined
  for (;;) {
    const page = await store.listFrom(membershipKind, { prefix: '', after, limit: pageSize })
    for (const { userId, groupId } of page) {
      const known = memberships.get(userId)
      if (known === undefined) memberships.set(userId, [groupId])
      else known.push(groupId)
    }
    const last = page.at(-1)
    if (page.length < pageSize || last === undefined) break
    after = membershipKind.rowOf(last).id
  }
  const isOwn = ({ origin }: Client) => origin !== 'registered'
  return {
    groups,
    users,
    clients: all.filter(isOwn),
    otherClientIds: new Set(all.filter((client) => !isOwn(client)).map(({ id }) => id)),
    memberships,
    known: knownTo(config, declared),
    attributes: config.accounts.attributes,
  }
}
