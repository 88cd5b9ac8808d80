import { auditEvent } from '../../domain/audit.ts'
import { accept } from '../../domain/decision.ts'
import { isSessionLive } from '../../domain/session.ts'
import type { Store } from '../../storage/store.ts'
import { CommandFailed, WrongUsage } from '../failure.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { operatorOccasion } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { findPerson } from '../user/person.ts'

interface EndFlags extends DestructiveFlags {
  readonly user?: string
}

/** `lychgate session end`: one login, or every login of a person. Tokens go on. */
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
  await insist(flags, 'End the session? That browser has to sign in again.', 'nothing was ended')
  const { accountId } = session
  const event = auditEvent('session-ended', operatorOccasion(), { accountId, which: 'one' })
  await store.transact('session', id, (found) => {
    if (found === undefined) throw new CommandFailed('the session had ended already')
    return accept(undefined, { op: 'deleteSession', sessionId: id }, event)
  })
  return 1
}

async function endAllOf(store: Store, user: string, flags: EndFlags): Promise<number> {
  const { id: accountId, username } = await findPerson(store, user)
  await insist(flags, `End every session of ${username}? They have to sign in again.`, 'nothing was ended')
  const occasion = operatorOccasion()
  const live = (await store.listOf('session', accountId)).filter((one) => isSessionLive(one, occasion.at))
  if (live.length === 0) return 0
  const event = auditEvent('session-ended', occasion, { accountId, which: 'all' })
  await store.write({ op: 'deleteSessionsOf', accountId }, event)
  return live.length
}
