import type { FastifyInstance } from 'fastify'
import { authenticationOf } from '../../clients/describe.ts'
import { keysOf } from '../../clients/keys.ts'
import { check } from '../../domain/check.ts'
import {
  allowedGroupsOf,
  canonicalGroupName,
  type Group,
  groupKind,
  groupNameKind,
} from '../../domain/group.ts'
import { algorithmOf } from '../../domain/key-set.ts'
import type { Client, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { type Explanation, explainRejection } from '../../observability/explain.ts'
import { ago } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import {
  lastRejectionOf,
  mayLeavePkceOut,
  pkceSettings,
  type Remedy,
  remedyOf,
} from '../operations/client-rejection.ts'
import { clientOperations } from '../operations/clients.ts'
import { retried } from '../operations/operation.ts'
import { assertMatches, tagOfClient } from '../operations/rules.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { type ClientChoices, clientChoices } from './client-add.ts'
import { type ClientKind, clientForm, kindOf, repeatedClientFields } from './client-form.ts'
import { type ClientValues, valuesOf } from './client-values.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/client': AdminModel &
      ClientValues & {
        readonly client: Pick<Client, 'id' | 'origin' | 'redirectUris' | 'consent'> & {
          readonly name: string
        }
        readonly kind: ClientKind
        readonly authentication: string
        readonly grantTypes: readonly string[]
        /** Absent: every scope. */
        readonly scope?: readonly string[]
        readonly resources: readonly string[]
        readonly addedAgoSeconds: Seconds
        readonly usedAgoSeconds?: Seconds
        readonly lockedAgoSeconds?: Seconds
        /** Where it came from, if it registered itself. */
        readonly registeredFrom?: string
        readonly publishedBy?: string
        readonly admittedBy?: string
        readonly hasSecret: boolean
        readonly oldSecretUntil?: Seconds
        readonly keys: readonly { readonly kid: string; readonly algorithm: string }[]
        /** Where its keys are fetched. */
        readonly keysUrl?: string
        readonly canHaveKeys: boolean
        /** Only members of these groups may use it; absent: every user may. */
        readonly allowed?: readonly (Pick<Group, 'id' | 'name'> & { readonly url: string })[]
        /** Whether the server knows groups. */
        readonly hasAccess: boolean
        readonly typedGroup: string
        readonly canChange: boolean
        readonly url: string
        /** The last rejected request, and what would let such a request pass. */
        readonly lastRejection?: {
          readonly explanation: Explanation
          readonly remedy?: Remedy | undefined
          /** Settings of the app. */
          readonly settings: readonly string[]
          /** Whether PKCE can be left out. */
          readonly canLeavePkceOut: boolean
        }
      }
    'admin/client-edit': AdminModel & ClientChoices & { readonly name: string; readonly url: string }
  }
}

const accessMember = 'allowed_groups'
const keyMember = 'jwks'

/** A client: where it came from, what it may do, and which groups may use it. */
export function clientPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store, declared } = deps
  const edit = clientOperations(declared).change
  const prefix = service.prefix
  const find = async (id: string) => requireFound(await store.find('client', id), 'client')

  const show = async ({ param, form, now, render }: AdminVisit, problem?: Text) => {
    const client = await find(param('id'))
    const allowed = allowedGroupsOf(client)
    const groups = await Promise.all((allowed ?? []).map((id) => store.find(groupKind, id)))
    const rejection = await lastRejectionOf(store, client)
    const { extra = {}, previousSecret, scope, published, admitted, registeredFrom } = client
    return render(
      'admin/client',
      {
        client: {
          id: client.id,
          name: client.name ?? client.id,
          origin: client.origin,
          redirectUris: client.redirectUris,
          consent: client.consent,
        },
        kind: kindOf(client),
        authentication: authenticationOf(client, declared),
        grantTypes: client.grantTypes,
        ...(scope !== undefined && { scope }),
        resources: client.resources ?? client.introspects,
        addedAgoSeconds: ago(client.issuedAt, now),
        ...(client.usedAt > client.issuedAt && { usedAgoSeconds: ago(client.usedAt, now) }),
        ...(client.lockedAt !== undefined && { lockedAgoSeconds: ago(client.lockedAt, now) }),
        ...(registeredFrom !== undefined && { registeredFrom }),
        ...(published && { publishedBy: published.host }),
        ...(admitted && { admittedBy: admitted.by }),
        hasSecret: client.secretHash !== undefined,
        ...(previousSecret && previousSecret.expiresAt > now && { oldSecretUntil: previousSecret.expiresAt }),
        keys: keysOf(extra['jwks']).map((key) => ({
          kid: key.kid ?? '',
          algorithm: algorithmOf(key, undefined) ?? key.kty,
        })),
        ...(extra['jwks_uri'] !== undefined && { keysUrl: String(extra['jwks_uri']) }),
        canHaveKeys: keyMember in declared.clientMetadata && kindOf(client) !== 'api',
        ...(allowed !== undefined && {
          allowed: groups
            .filter((group) => group !== undefined)
            .map(({ id, name }) => ({ id, name, url: `${prefix}${adminPath('groups')}/${id}` })),
        }),
        typedGroup: single(form, 'allow') ?? '',
        hasAccess: accessMember in declared.clientMetadata,
        canChange: client.origin !== 'registered',
        ...valuesOf(app, service.issuer, client, kindOf(client)),
        ...(rejection !== undefined && {
          lastRejection: {
            explanation: explainRejection(rejection),
            remedy: remedyOf(rejection, client),
            settings: pkceSettings(client, service.issuer),
            canLeavePkceOut: mayLeavePkceOut(client),
          },
        }),
        url: `${prefix}${adminPath('clients')}/${encodeURIComponent(client.id)}`,
      },
      problem,
    )
  }

  /** Changes which groups may use the client, from what they are when the change is written. */
  const changeAccess = async (visit: AdminVisit, change: (ids: readonly string[]) => readonly string[]) => {
    const clientId = visit.param('id')
    await retried(async () => {
      const client = await find(clientId)
      const body = { [accessMember]: change(allowedGroupsOf(client) ?? []) }
      const assertSame = (now: object) => assertMatches(tagOfClient(client), tagOfClient(now as Client)) // what it changes
      await performAt(deps, visit, edit, { client_id: clientId }, body, assertSame)
    })
    return visit.done('saved', `/clients/${encodeURIComponent(clientId)}`)
  }

  return {
    path: '/clients/:id',
    section: 'clients',
    kept: { allow: msg('admin.client.allow') },
    show,
    submit: async (visit) => {
      const { form } = visit
      const [allow, deny] = [single(form, 'allow'), single(form, 'deny')]
      if (single(form, 'pkce') === 'optional') {
        const clientId = visit.param('id')
        await performAt(deps, visit, edit, { client_id: clientId }, { pkce: 'optional' })
        return visit.done('saved', `/clients/${encodeURIComponent(clientId)}`)
      }
      if (deny !== undefined) return changeAccess(visit, (ids) => without(ids, deny))
      if (single(form, 'everyone') !== undefined) return changeAccess(visit, () => [])
      const named = await store.find(groupNameKind, canonicalGroupName((allow ?? '').trim()))
      if (named === undefined) return show(visit, msg('admin.user.noGroup'))
      return changeAccess(visit, (ids) => [...new Set([...ids, named.id])])
    },
  }
}

/** Without any group the client would be open to every user, which has a button of its own. */
function without(ids: readonly string[], denied: string): readonly string[] {
  const left = ids.filter((id) => id !== denied)
  check(
    left.length > 0,
    'lychgate-admin-last-group',
    'invalid_request',
    'it is the only group that may use the app; allow another one first, or every user',
  )
  return left
}

/** Changes a client that an operator added. */
export function clientEditPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store, declared } = deps
  const { change } = clientOperations(declared)
  const choices = clientChoices(app, deps)
  const { fields, read, formOf, typedAgain, changeOf } = clientForm(declared)
  const show = async ({ param, form, request, render }: AdminVisit, problem?: Text) => {
    const client = requireFound(await store.find('client', param('id')), 'client')
    const isTyped = single(form, 'name') !== undefined
    return render(
      'admin/client-edit',
      {
        ...choices(kindOf(client), isTyped ? typedAgain(client, form) : formOf(client), request.language),
        hidden: versionField(form, formOf(client)),
        name: client.name ?? client.id,
        url: `${service.prefix}${adminPath('clients')}/${encodeURIComponent(client.id)}`,
      },
      problem,
    )
  }
  return {
    path: '/clients/:id/edit',
    section: 'clients',
    isForm: true,
    kept: { version: undefined, ...fields },
    repeats: repeatedClientFields,
    show,
    submit: async (visit) => {
      const { param, form, done } = visit
      const clientId = param('id')
      const client = requireFound(await store.find('client', clientId), 'client')
      const body = changeOf(kindOf(client), read(form), client.localized)
      const assertShown = (now: object) => assertVersion(form, formOf(now as Client)) // what it changes
      await performAt(deps, visit, change, { client_id: clientId }, body, assertShown)
      return done('saved', `/clients/${encodeURIComponent(clientId)}`)
    },
  }
}
