import type { FastifyInstance } from 'fastify'
import type { OperatorClientMembers } from '../../clients/core-members.ts'
import {
  clientOfRecipe,
  type Recipe,
  readRecipe,
  recipeIds,
  weaknessesIn,
  weaknessesOf,
} from '../../clients/recipes.ts'
import { OAuthError } from '../../domain/errors.ts'
import { resourceName } from '../../domain/localized.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
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
import { type ClientValues, valuesOf } from './client-values.ts'

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
    'admin/client-kind': AdminModel & {
      readonly kinds: readonly ClientKind[]
      readonly recipes: readonly { readonly id: string; readonly name: string; readonly isTried: boolean }[]
      readonly chosen: { readonly recipe: string; readonly url: string }
    }
    'admin/client-add': AdminModel &
      ClientChoices & { readonly recipe?: Recipe; readonly weaknesses: readonly string[] }
    /** The credentials of a client: the secret is shown this once. */
    'admin/client-secret': AdminModel &
      ClientValues & {
        readonly name: string
        readonly kind: ClientKind
        readonly secret?: string
        readonly url: string
        /** Whether it was added just now, and not given another secret. */
        readonly isNew: boolean
      }
  }
}

/** Returns what the form of a client offers, in the language of the request. */
export function clientChoices(app: FastifyInstance, { service, declared }: PageDeps) {
  const { listed } = clientForm(declared)
  const scopesIn = scopesFor(service, app.texts, declared.scopes)
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
  const { service, store, random, declared } = deps
  const { create } = clientOperations(declared)
  const choices = clientChoices(app, deps)
  const { fields, read, requestFor, typedOf } = clientForm(declared)
  const url = service.prefix + adminPath('clients')
  const recipes = recipeIds().map((id) => {
    const { name, tried } = readRecipe(id)
    return { id, name, isTried: tried !== undefined }
  })
  const show = ({ query, form, request, render }: AdminVisit, problem?: Text) => {
    const [id, base, kindName, once] = ['recipe', 'url', 'kind', 'once'].map(
      (name) => single(form, name) ?? single(query, name) ?? '',
    )
    const choose = (problem?: Text) => {
      const chosen = { recipe: id ?? '', url: base ?? '' }
      return render('admin/client-kind', { kinds: offeredKinds(declared), recipes, chosen }, problem)
    }
    const recipe = recipes.some((one) => one.id === id) ? readRecipe(id ?? '') : undefined
    let members: OperatorClientMembers = {}
    try {
      if (recipe !== undefined) members = clientOfRecipe(id ?? '', base)
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error
      return choose(msg('admin.client.recipe.urlHint'))
    }
    const ofRecipe = members.token_endpoint_auth_method === 'none' ? 'native' : 'web'
    const kind = recipe ? ofRecipe : offeredKinds(declared).find((one) => one === kindName)
    if (kind === undefined) return choose()
    const isTyped = recipe === undefined || single(form, 'name') !== undefined
    return render(
      'admin/client-add',
      {
        ...choices(kind, isTyped ? read(form) : typedOf(members), request.language),
        ...(recipe && { recipe }),
        weaknesses: recipe === undefined ? [] : weaknessesOf(recipe),
        hidden: {
          kind,
          once: once || random(16).toString('base64url'),
          ...(recipe && { recipe: id ?? '', url: base ?? '' }),
        },
      },
      problem,
    )
  }
  return {
    path: '/clients/add',
    section: 'clients',
    isForm: true,
    kept: { kind: undefined, once: undefined, recipe: undefined, url: undefined, ...fields },
    repeats: repeatedClientFields,
    show,
    submit: async (visit) => {
      const { form, render, done } = visit
      const kind = clientKinds.find((one) => one === single(form, 'kind'))
      const once = single(form, 'once') ?? ''
      if (kind === undefined || !/^[\w-]{22}$/.test(once)) return done('gone', '/clients')
      const clientId = `client_${once}`
      const body = { client_id: clientId, ...requestFor(kind, read(form)) }
      const isByRecipe = single(form, 'recipe') !== undefined
      if (isByRecipe && weaknessesIn(body).length > 0 && single(form, 'weak') === undefined)
        return show(visit, msg('admin.client.recipe.accept'))
      const added = await performAt(deps, visit, create, {}, body).catch((error: unknown) => {
        if (!(error instanceof RecordExists)) throw error
      })
      const client = await store.find('client', clientId)
      if (added === undefined || client === undefined) return done('client-added', `/clients/${clientId}`)
      const { client_name: name, client_secret: made } = added
      const secret = made === undefined ? undefined : String(made)
      return render('admin/client-secret', {
        name: String(name),
        kind,
        ...(secret !== undefined && { secret }),
        ...valuesOf(app, service.issuer, client, kind, secret),
        url: `${url}/${clientId}`,
        isNew: true,
      })
    },
  }
}
