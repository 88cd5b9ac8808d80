import { auditEvent } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import type { Store } from '../../storage/store.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { CommandFailed, WrongUsage } from '../failure.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { findUser } from '../user/find-user.ts'

interface EndFlags extends DestructiveFlags {
  readonly user?: string
}

/** `lychgate session end`: one login, or every login of a user. Tokens go on. */
export async function sessionEnd(id: string | undefined, flags: EndFlags): Promise<void> {
  if ((id === undefined) === (flags.user === undefined)) throw new WrongUsage('name a session, or say --user')
  await withStore(flags, async (store) => {
    const ended =
      id === undefined ? await endAllOf(store, flags.user ?? '', flags) : await endOne(store, id, flags)
    if (flags.json) printJson({ ended })
    else printMembers({ ended })
  })
}

async function endOne(store: Store, id: string, flags: EndFlags): Promise<number> {
  const session = await store.find('session', id)
  if (session === undefined) throw new CommandFailed('no session has this id')
  await confirmOrAbort(flags, 'End the session? That browser has to sign in again.', 'nothing was ended')
  const { userId } = session
  const event = auditEvent('session-ended', operatorContext(), { userId, which: 'one' })
  await store.transact('session', id, (found) => {
    if (found === undefined) throw new CommandFailed('the session had ended already')
    return accept(undefined, remove('session', id), event)
  })
  return 1
}

async function endAllOf(store: Store, user: string, flags: EndFlags): Promise<number> {
  const { id: userId, username } = await findUser(store, user)
  await confirmOrAbort(
    flags,
    `End every session of ${username}? They have to sign in again.`,
    'nothing was ended',
  )
  const context = operatorContext()
  const live = (await store.listOf('session', userId)).filter((one) => isSessionLive(one, context.at))
  if (live.length === 0) return 0
  const event = auditEvent('session-ended', context, { userId, which: 'all' })
  await store.write({ op: 'deleteSessionsOf', userId }, event)
  return live.length
}
