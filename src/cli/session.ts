import type { Command } from 'commander'
import { auditEvent } from '../domain/audit.ts'
import { accept, endSession } from '../domain/decision.ts'
import type { Seconds, Session } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { isSessionLive } from '../users/rules/session.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './files/open-target.ts'
import { findUsers } from './find.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { instant, printList, printResult } from './print.ts'
import { endSessionsOf } from './user-acts.ts'

const listHelp = `
Shows networks, not addresses.

Examples:
  lychgate session list
  lychgate session list --user alice --json
`

const endHelp = `
The user has to sign in again in that browser; grants to clients stay valid. Ids may begin with a hyphen, hence
the --.

Examples:
  lychgate session end -- 3q2-7wAAAA…
  lychgate session end --user alice --yes
`

/** Adds `lychgate session …`: the browsers in which users are signed in. */
export function addSessionCommands(program: Command): void {
  const group = program.command('session').description('list and end the sessions of users')
  const list = group
    .command('list')
    .description('list who is signed in, in which browser, from which network; by user, oldest first')
    .option('--user <name>', 'only of this user: user name, email address or sub')
  addOperatorFlags(list, listHelp).action(sessionList)
  const end = group
    .command('end [session]')
    .description('end one session, or every session of a user')
    .option('--user <name>', 'every session of this user')
  addServerFlags(addOperatorFlags(addYesFlag(end), serverHelp + endHelp)).action(sessionEnd)
}

type OwnedSession = Session & { readonly username: string }

async function sessionList({ user, ...flags }: OperatorFlags & { readonly user?: string }): Promise<void> {
  await withStore(flags, async (store) => {
    const now = systemClock()
    const owned: OwnedSession[] = []
    for (const { id, username } of await findUsers(store, user)) {
      const live = (await store.listOf('session', id)).filter((session) => isSessionLive(session, now))
      owned.push(...live.map((session) => ({ ...session, username })))
    }
    printList(flags, owned, describe, lineOf)
  })
}

/** Describes a session. Its id is the hash of the cookie, and no credential. */
function describe(session: OwnedSession) {
  const { id, userId, username, browser, from } = session
  return {
    session: id,
    sub: userId,
    username,
    ...(browser !== undefined && { browser }),
    ...(from !== undefined && { from }),
    authenticated_at: session.authenticatedAt,
    amr: session.methods,
    created_at: session.createdAt,
    ends_at: endOf(session),
  }
}

function lineOf(session: OwnedSession): string[] {
  const { id, username, browser = '', from = '', methods, authenticatedAt } = session
  const ends = `ends ${instant(endOf(session))}`
  return [id, username, browser, from, methods.join('+'), `signed in ${instant(authenticatedAt)}`, ends]
}

function endOf({ idleExpiresAt, expiresAt }: Session): Seconds {
  return Math.min(idleExpiresAt, expiresAt)
}

interface EndFlags extends DestructiveFlags, ServerFlags {
  readonly user?: string
}

/** `lychgate session end`: ends one session, or every session of a user. Tokens stay valid. */
async function sessionEnd(id: string | undefined, flags: EndFlags): Promise<void> {
  if ((id === undefined) === (flags.user === undefined)) throw new WrongUsage('name a session, or say --user')
  if (flags.user !== undefined) return endSessionsOf(flags.user, flags)
  if (flags.server !== undefined)
    throw new WrongUsage('--server needs --user: a session is found by its user')
  await withStore(flags, async (store) => {
    const ended = await endOne(store, id ?? '', flags)
    printResult(flags, { ended }, { ended })
  })
}

async function endOne(store: Store, id: string, flags: EndFlags): Promise<number> {
  const session = await store.find('session', id)
  if (session === undefined) throw new CommandFailed('no session has this id')
  await confirmOrAbort(
    flags,
    'End the session? The user has to sign in again in that browser.',
    'nothing was ended',
  )
  const { userId } = session
  const context = operatorContext()
  const event = auditEvent('session-ended', context, { userId, which: 'one' })
  await store.transact('session', id, (found) => {
    if (found === undefined) throw new CommandFailed('the session had ended already')
    return accept(undefined, endSession(id, context.at), event)
  })
  return 1
}
