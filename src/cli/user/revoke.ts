import { auditEvent } from '../../domain/audit.ts'
import { connectionsOf, consentKind, endConnections } from '../../domain/connections.ts'
import { accept } from '../../domain/decision.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { findUser, requireUser } from './find-user.ts'

/** `lychgate user revoke`: ends every session and every grant of a user; they may sign in again. */
export async function userRevoke(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findUser(store, login)
    const question = `Sign ${username} out everywhere and take back everything they granted?`
    await confirmOrAbort(flags, question, 'nothing was revoked')
    const context = operatorContext()
    const [grants, consents, sessions] = await Promise.all([
      store.listOf('grant', id),
      store.listOf(consentKind, id),
      store.listOf('session', id),
    ])
    const connections = connectionsOf(grants, consents, context.at)
    await store.transact('user', id, (found) => {
      const { id: userId } = requireUser(found)
      return accept(
        undefined,
        { op: 'deleteSessionsOf', userId },
        ...endConnections(connections, { ...context, userId }),
        ...(sessions.length > 0 ? [auditEvent('session-ended', context, { userId, which: 'all' })] : []),
      )
    })
    if (flags.json)
      printJson({ sub: id, revoked: true, clients: connections.map(({ clientId }) => clientId) })
    else printMembers({ revoked: username, clients: connections.length })
  })
}
