import type { FastifyInstance } from 'fastify'
import type { Client } from '../../domain/model.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { clientLocks, rotateSecret } from '../operations/client-acts.ts'
import { clientOperations } from '../operations/clients.ts'
import type { DoneWord, Operation } from '../operations/operation.ts'
import { type Act, actPage, requireFound } from './act-page.ts'
import { type AdminPage, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { kindOf } from './client-form.ts'
import { valuesOf } from './client-values.ts'

/** For how long a replaced secret is accepted, too: long enough to roll out the new one. */
const keepSeconds = 86_400

/** What an administrator does to a client, a page each. */
export function clientActPages(app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { service, store, declared } = deps
  const { remove } = clientOperations(declared)
  const { lock, unlock } = clientLocks(declared)
  const urlOf = (id: string) => `${service.prefix}${adminPath('clients')}/${encodeURIComponent(id)}`
  const find = async (id: string) => {
    const subject = requireFound(await store.find('client', id), 'client')
    return { subject, name: subject.name ?? id, url: urlOf(id) }
  }
  const pageOf = (
    verb: string,
    name: 'lock' | 'unlock' | 'secret' | 'leaked' | 'remove',
    isTyped: boolean,
    perform: Act<Client>['perform'],
  ) =>
    actPage({
      path: `/clients/:id/${verb}`,
      section: 'clients',
      title: msg(`admin.client.${name}`),
      about: msg(`admin.client.${name}.about`),
      isTyped,
      find,
      perform,
    })
  const doing =
    (operation: Operation, word: DoneWord): Act<Client>['perform'] =>
    async ({ id }, visit) => {
      await performAt(deps, visit, operation, { client_id: id })
      return visit.done(word, operation.kind === 'delete' ? '/clients' : `/clients/${encodeURIComponent(id)}`)
    }
  const rotating =
    (keep: number): Act<Client>['perform'] =>
    async (client, visit) => {
      const { id: clientId, name = clientId } = client
      const body = { keep_old_seconds: keep }
      const { client_secret: secret } = await performAt(
        deps,
        visit,
        rotateSecret,
        { client_id: clientId },
        body,
      )
      return visit.render('admin/client-secret', {
        name,
        kind: kindOf(client),
        secret: String(secret),
        ...valuesOf(app, service.issuer, client, kindOf(client), String(secret)),
        url: urlOf(clientId),
        isNew: false,
      })
    }
  return [
    pageOf('lock', 'lock', true, doing(lock, 'client-locked')),
    pageOf('unlock', 'unlock', false, doing(unlock, 'client-unlocked')),
    // The old secret of an app that runs is accepted for a day; that of a leak ends at once.
    pageOf('secret', 'secret', false, rotating(keepSeconds)),
    pageOf('leaked-secret', 'leaked', true, rotating(0)),
    pageOf('remove', 'remove', true, doing(remove, 'client-removed')),
  ]
}
