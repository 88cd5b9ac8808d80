import type { Operation } from '../../admin/operations/operation.ts'
import { configuredOf } from '../../clients/describe.ts'
import type { AuditContext } from '../../domain/audit.ts'
import type { Client } from '../../domain/model.ts'
import { clientOperations } from '../client-operations.ts'
import type { Target } from './target.ts'

/** Performs an operation on a client. */
type Perform = (
  operation: Operation,
  client: Client,
  context: AuditContext,
  body?: object,
) => Promise<unknown>

/** What is done to clients that files describe: the same operations on a store and on a server. */
export function clientTarget(perform: Perform): Pick<Target, 'addClient' | 'changeClient' | 'deleteClient'> {
  return {
    async addClient(client, secret, context) {
      await perform((await clientOperations()).create, client, context, {
        client_id: client.id,
        ...(secret !== undefined && { client_secret: secret }),
        ...(client.lockedAt !== undefined && { locked: true }),
        ...configuredOf(client),
      })
    },
    async changeClient({ before, after, context }, secret) {
      const { replace } = await clientOperations()
      const [was, is] = [before, after].map(({ lockedAt }) => lockedAt !== undefined)
      await perform(replace, after, context, {
        ...configuredOf(after),
        ...(was !== is && { locked: is }),
        ...(secret !== undefined && { client_secret: secret }),
      })
    },
    async deleteClient(client, context) {
      await perform((await clientOperations()).remove, client, context)
    },
  }
}
