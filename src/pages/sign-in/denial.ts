import type { FastifyReply } from 'fastify'
import { clientWords } from '../../domain/localized.ts'
import type { User } from '../../domain/model.ts'
import { displayName, type NamedUser } from '../describe.ts'
import type { FormModel } from '../forms.ts'
import { interactionUrl, type PendingAuthorization } from './pending.ts'
import { handleOf } from './way-back.ts'

declare module '../pages.ts' {
  interface Pages {
    denied: FormModel & {
      readonly clientName: string
      readonly user: NamedUser
      /** Switches to another user, who may be allowed to use it. */
      readonly switchUrl: string
      /** A contact; absent: the operator of the service. */
      readonly contact?: string
    }
  }
}

/** Shows a user that they may not use a client, and names a contact. Its form leads back to the client. */
export function showDenial(
  pending: PendingAuthorization,
  user: User,
  { prefix, csrf }: { readonly prefix: string; readonly csrf: string },
): FastifyReply {
  const { interaction, client, denial, reply } = pending
  const { contact } = denial ?? {}
  const model = {
    action: `${prefix}/consent`,
    hidden: { ...handleOf(interaction), csrf },
    clientName: clientWords(client, reply.request.language).name ?? client.id,
    user: displayName(user),
    switchUrl: `${interactionUrl(prefix, 'login', interaction)}&switch=1`,
    ...(contact !== undefined && { contact }),
  }
  return reply.page('denied', model, { status: 403 })
}
