import { auditEvent } from '../../domain/audit.ts'
import { connectionsOf, endConnections } from '../../domain/connections.ts'
import { accept } from '../../domain/decision.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { operatorOccasion } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { findPerson, requirePerson } from './person.ts'

/** `lychgate user revoke`: ends every session and every grant of a person; they may sign in again. */
export async function userRevoke(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findPerson(store, user)
    const question = `Sign ${username} out everywhere and take back everything they granted?`
    await insist(flags, question, 'nothing was revoked')
    const occasion = operatorOccasion()
    const [grants, consents, sessions] = await Promise.all([
      store.listOf('grant', id),
      store.listOf('consent', id),
      store.listOf('session', id),
    ])
    const connections = connectionsOf(grants, consents, occasion.at)
    await store.transact('account', id, (found) => {
      const { id: accountId } = requirePerson(found)
      return accept(
        undefined,
        { op: 'deleteSessionsOf', accountId },
        ...endConnections(connections, { ...occasion, accountId }),
        ...(sessions.length > 0 ? [auditEvent('session-ended', occasion, { accountId, which: 'all' })] : []),
      )
    })
    if (flags.json)
      printJson({ sub: id, revoked: true, clients: connections.map(({ clientId }) => clientId) })
    else printMembers({ revoked: username, clients: connections.length })
  })
}
