import type { FastifyInstance } from 'fastify'
import { lockClient, removeClient, rotateClientSecret, unlockClient } from '../../clients/integration.ts'
import type { Client } from '../../domain/model.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { type Act, actPage, requireFound } from './act-page.ts'
import { type AdminPage, adminPath } from './admin-page.ts'
import { kindOf } from './client-form.ts'

/** For how long a replaced secret is accepted, too: long enough to roll out the new one. */
const keepSeconds = 86_400

/** What an administrator does to a client, a page each. */
export function clientActPages(
  _app: FastifyInstance,
  { service, store, random }: PageDeps,
): readonly AdminPage[] {
  const urlOf = (id: string) => `${service.prefix}${adminPath('clients')}/${encodeURIComponent(id)}`
  const find = async (id: string) => {
    const subject = requireFound(await store.find('client', id), 'client')
    return { subject, name: subject.name ?? id, url: urlOf(id) }
  }
  const base = { section: 'clients', find } as const
  const backTo = ({ id }: Client) => `/clients/${encodeURIComponent(id)}`

  const lock: Act<Client> = {
    ...base,
    path: '/clients/:id/lock',
    title: msg('admin.client.lock'),
    about: msg('admin.client.lock.about'),
    isTyped: true,
    perform: async (client, { store, context, done }) => {
      await store.transact('client', client.id, (found) => lockClient(requireFound(found, 'client'), context))
      return done('client-locked', backTo(client))
    },
  }
  const unlock: Act<Client> = {
    ...base,
    path: '/clients/:id/unlock',
    title: msg('admin.client.unlock'),
    about: msg('admin.client.unlock.about'),
    isTyped: false,
    perform: async (client, { store, context, done }) => {
      await store.transact('client', client.id, (found) =>
        unlockClient(requireFound(found, 'client'), context),
      )
      return done('client-unlocked', backTo(client))
    },
  }
  /** The old secret of an app that runs is accepted for a day; that of a leak ends at once. */
  const rotation = (path: string, keep: number, texts: Pick<Act<Client>, 'title' | 'about' | 'isTyped'>) =>
    ({
      ...base,
      ...texts,
      path,
      perform: async (client, { store, context, render }) => {
        const { id: clientId, name = clientId } = client
        const keepUntil = keep > 0 ? context.at + keep : undefined
        const fresh = random(32)
        const secret = await store.transact('client', clientId, (found) =>
          rotateClientSecret(requireFound(found, 'client'), fresh, context, keepUntil),
        )
        const model = {
          clientId,
          name,
          kind: kindOf(client),
          secret,
          issuer: service.issuer,
          url: urlOf(clientId),
        }
        return render('admin/client-secret', { ...model, isNew: false })
      },
    }) satisfies Act<Client>
  const secret = rotation('/clients/:id/secret', keepSeconds, {
    title: msg('admin.client.secret'),
    about: msg('admin.client.secret.about'),
    isTyped: false,
  })
  const leaked = rotation('/clients/:id/leaked-secret', 0, {
    title: msg('admin.client.leaked'),
    about: msg('admin.client.leaked.about'),
    isTyped: true,
  })
  const remove: Act<Client> = {
    ...base,
    path: '/clients/:id/remove',
    title: msg('admin.client.remove'),
    about: msg('admin.client.remove.about'),
    isTyped: true,
    perform: async ({ id }, { store, context, done }) => {
      await store.transact('client', id, (found) => removeClient(requireFound(found, 'client'), context))
      return done('client-removed', '/clients')
    },
  }
  return [lock, unlock, secret, leaked, remove].map(actPage)
}
