import type { FastifyInstance } from 'fastify'
import { resourceName } from '../../domain/localized.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { scopesFor } from '../../pages/scopes.ts'
import { RecordExists } from '../../storage/store.ts'
import { clientOperations } from '../operations/clients.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import {
  type ClientKind,
  clientForm,
  clientKinds,
  type ListedMember,
  offeredKinds,
  repeatedClientFields,
  type TypedClient,
} from './client-form.ts'

/** What can be chosen in the form of a client. */
export interface ClientChoices {
  readonly kind: ClientKind
  readonly typed: TypedClient
  readonly listed: readonly ListedMember[]
  readonly scopes: readonly { readonly name: string; readonly group: string; readonly description: string }[]
  readonly resources: readonly { readonly identifier: string; readonly name: string }[]
}

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/client-kind': AdminModel & { readonly kinds: readonly ClientKind[] }
    'admin/client-add': AdminModel & ClientChoices
    /** The credentials of a client: the secret is shown this once. */
    'admin/client-secret': AdminModel & {
      readonly clientId: string
      readonly name: string
      readonly kind: ClientKind
      readonly secret?: string
      readonly issuer: string
      readonly url: string
      /** Whether it was added just now, and not given another secret. */
      readonly isNew: boolean
    }
  }
}

/** Returns what the form of a client offers, in the language of the request. */
export function clientChoices(app: FastifyInstance, { service, declared }: PageDeps) {
  const { listed } = clientForm(declared)
  const scopesIn = scopesFor(service.catalogue, app.texts, declared.scopes)
  return (kind: ClientKind, typed: TypedClient, language: string): ClientChoices => ({
    kind,
    typed,
    listed,
    scopes: scopesIn(language).map(({ name, group, description }) => ({ name, group, description })),
    resources: service.allResources.map((resource) => ({
      identifier: resource.identifier,
      name: resourceName(resource, language),
    })),
  })
}

/**
 * Adds a client: first what it is, then the fields of that. The identifier comes with the form, so that sending it
 * twice adds one client.
 */
export function clientAddPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, random, declared } = deps
  const { create } = clientOperations(declared)
  const choices = clientChoices(app, deps)
  const { fields, read, requestFor } = clientForm(declared)
  const url = service.prefix + adminPath('clients')
  const show = ({ query, form, request, render }: AdminVisit, problem?: Text) => {
    const wanted = single(form, 'kind') ?? single(query, 'kind')
    const kind = offeredKinds(declared).find((one) => one === wanted)
    if (kind === undefined) return render('admin/client-kind', { kinds: offeredKinds(declared) })
    const hidden = { kind, once: single(form, 'once') ?? random(16).toString('base64url') }
    return render('admin/client-add', { ...choices(kind, read(form), request.language), hidden }, problem)
  }
  return {
    path: '/clients/add',
    section: 'clients',
    isForm: true,
    kept: { kind: undefined, once: undefined, ...fields },
    repeats: repeatedClientFields,
    show,
    submit: async (visit) => {
      const { form, render, done } = visit
      const kind = clientKinds.find((one) => one === single(form, 'kind'))
      const once = single(form, 'once') ?? ''
      if (kind === undefined || !/^[\w-]{22}$/.test(once)) return done('gone', '/clients')
      const clientId = `client_${once}`
      const body = { client_id: clientId, ...requestFor(kind, read(form)) }
      const added = await performAt(deps, visit, create, {}, body).catch((error: unknown) => {
        if (!(error instanceof RecordExists)) throw error
      })
      if (added === undefined) return done('client-added', `/clients/${clientId}`)
      const { client_name: name, client_secret: secret } = added
      return render('admin/client-secret', {
        clientId,
        name: String(name),
        kind,
        ...(secret !== undefined && { secret: String(secret) }),
        issuer: service.issuer,
        url: `${url}/${clientId}`,
        isNew: true,
      })
    },
  }
}
