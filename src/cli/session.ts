import type { Command } from 'commander'
import { unlessMissing, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags } from './flags.ts'
import { changesUsers, type Json, readsUsers, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
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
  addAnywhereFlags(list, listHelp).action(sessionList)
  const end = group
    .command('end [session]')
    .description('end one session, or every session of a user')
    .option('--user <name>', 'every session of this user')
  addAnywhereFlags(addYesFlag(end), endHelp).action(sessionEnd)
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/sessions.ts')

type OwnedSession = Json & { readonly username: string }

async function sessionList({ user, ...flags }: ServerFlags & { readonly user?: string }): Promise<void> {
  await withOperator(flags, readsUsers, async ({ findUser, list }) => {
    const { listAllSessions, listSessions } = await operations()
    const sessions =
      user === undefined
        ? await list(listAllSessions, {})
        : await list(listSessions, { sub: (await findUser(user)).sub })
    const owned = sessions
      // A server of an earlier version does not say it.
      .map((session) => ({ ...session, username: String(session['username'] ?? session['sub']) }))
      .toSorted(byUser)
    printList(flags, owned, describe, lineOf)
  })
}

function byUser(one: OwnedSession, other: OwnedSession): number {
  if (one.username !== other.username) return one.username < other.username ? -1 : 1
  return Number(one['created_at']) - Number(other['created_at'])
}

function describe({ session_id: session, sub, username, ...others }: OwnedSession) {
  return { session, sub, username, ...others }
}

function lineOf({ session_id, username, browser = '', from = '', ...session }: OwnedSession): string[] {
  const times = `signed in ${instant(Number(session['authenticated_at']))}`
  const amr = (session['amr'] as readonly string[]).join('+') // as a session is described
  return [
    `${session_id}`,
    username,
    `${browser}`,
    `${from}`,
    amr,
    times,
    `ends ${instant(Number(session['ends_at']))}`,
  ]
}

interface EndFlags extends DestructiveFlags, ServerFlags {
  readonly user?: string
}

/** `lychgate session end`: ends one session, or every session of a user. Tokens stay valid. */
async function sessionEnd(id: string | undefined, flags: EndFlags): Promise<void> {
  if ((id === undefined) === (flags.user === undefined)) throw new WrongUsage('name a session, or say --user')
  if (flags.user !== undefined) return endSessionsOf(flags.user, flags)
  await withOperator(flags, changesUsers, async ({ perform }) => {
    const { readSession, endSession } = await operations()
    const session_id = id ?? ''
    const { sub } = await unlessMissing(perform(readSession, { session_id }), 'no session has this id')
    await confirmOrAbort(
      flags,
      'End the session? The user has to sign in again in that browser.',
      'nothing was ended',
    )
    const end = perform(endSession, { sub: String(sub), session_id })
    await unlessMissing(end, 'the session had ended already')
    printResult(flags, { ended: 1 }, { ended: 1 })
  })
}
