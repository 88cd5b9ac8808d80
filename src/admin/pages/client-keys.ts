import type { FastifyInstance } from 'fastify'
import type { OperatorClientMembers } from '../../clients/core-members.ts'
import { addKeys, keysOf, readKeyText, removeKey } from '../../clients/keys.ts'
import { algorithmOf } from '../../domain/key-set.ts'
import type { Client } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { clientOperations } from '../operations/clients.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/client-keys': AdminModel & {
      readonly name: string
      readonly keys: readonly { readonly kid: string; readonly algorithm: string }[]
      readonly typed: Readonly<Record<'add' | 'uri' | 'remove', string>>
      readonly url: string
    }
  }
}

/** The public keys of an app: added and removed one by one, so that they can be replaced without a pause, or a URL. */
export function clientKeysPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store, declared } = deps
  const { change } = clientOperations(declared)
  const find = async (id: string) => requireFound(await store.find('client', id), 'client')
  const shownOf = ({ extra = {} }: Client) => [keysOf(extra['jwks']), extra['jwks_uri'] ?? '']
  const show = async ({ param, form, render }: AdminVisit) => {
    const client = await find(param('id'))
    const { id, name = id, extra = {} } = client
    return render('admin/client-keys', {
      hidden: versionField(form, shownOf(client)),
      name,
      keys: keysOf(extra['jwks']).map((key) => ({
        kid: key.kid ?? '',
        algorithm: algorithmOf(key, undefined) ?? key.kty,
      })),
      typed: {
        add: single(form, 'add') ?? '',
        uri: single(form, 'uri') ?? String(extra['jwks_uri'] ?? ''),
        remove: single(form, 'remove') ?? '',
      },
      url: `${service.prefix}${adminPath('clients')}/${encodeURIComponent(id)}`,
    })
  }
  /** By value or by reference: the one replaces the other. */
  const changeOf = ({ form }: AdminVisit, { extra = {} }: Client): OperatorClientMembers => {
    const [added, removed, uri = ''] = ['add', 'remove', 'uri'].map((name) => single(form, name)?.trim())
    const keys = keysOf(extra['jwks'])
    if (added !== undefined) return { jwks: { keys: addKeys(keys, readKeyText(added)) }, jwks_uri: '' }
    if (removed !== undefined) return { jwks: { keys: removeKey(keys, removed) } }
    return uri === '' ? { jwks_uri: '' } : { jwks: '', jwks_uri: uri }
  }
  return {
    path: '/clients/:id/keys',
    section: 'clients',
    isForm: true,
    // What is typed as a public key may be a private one.
    kept: { version: undefined, uri: msg('admin.clientKeys.uri'), remove: msg('admin.clientKeys.kid') },
    show,
    submit: async (visit) => {
      const clientId = visit.param('id')
      // What is changed are the keys that the form showed.
      const assertShown = (client: object) => assertVersion(visit.form, shownOf(client as Client))
      const client = await find(clientId)
      assertShown(client)
      const body = changeOf(visit, client)
      await performAt(deps, visit, change, { client_id: clientId }, body, assertShown)
      return visit.done('saved', `/clients/${encodeURIComponent(clientId)}`)
    },
  }
}
