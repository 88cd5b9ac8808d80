import type { Static } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { RecordExists } from '../../storage/store.ts'
import { upstreamPresets } from '../../users/upstream-presets.ts'
import {
  type AnyUpstream,
  hasUpstreams,
  isStored,
  redirectUriOf,
  trialUrlOf,
  upstreamsOf,
} from '../../users/upstreams.ts'
import { conflict } from '../operations/rules.ts'
import type { ChangedUpstream, NewUpstream } from '../operations/upstream-schema.ts'
import { addUpstream, editUpstream, removeUpstream } from '../operations/upstreams.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { bodyOf, keptUpstream, rareFields, type TypedUpstream, typedAgain, typedOf } from './upstream-form.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/upstream-add': AdminModel &
      UpstreamForm & {
        /** The well-known servers that the form can be filled in for. */
        readonly presets: readonly { readonly id: string; readonly name: string }[]
        /** What is done there, in English. */
        readonly advice?: string
      }
    'admin/upstream': AdminModel &
      UpstreamForm & {
        readonly name: string
        /** Whether the configuration has it: the form only shows it then. */
        readonly isConfigured: boolean
        readonly redirectUri: string
        /** Where an administrator signs in with it to see what it says. */
        readonly tryUrl: string
      }
  }
}

interface UpstreamForm {
  readonly typed: TypedUpstream
  readonly rare: typeof rareFields
  /** The page to return to, or that deletes it. */
  readonly url: string
}

/** Adds an upstream. */
export function upstreamAddPage(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const url = deps.service.prefix + adminPath('upstreams')
  const page: AdminPage = {
    path: '/add-upstream',
    section: 'upstreams',
    isForm: true,
    kept: keptUpstream,
    show: ({ form, query, render }) => {
      const id = single(query, 'preset') ?? ''
      const preset = Object.hasOwn(upstreamPresets, id) ? upstreamPresets[id] : undefined
      const { name, issuer, members } = preset ?? {}
      return render('admin/upstream-add', {
        typed: typedAgain(typedOf(omitUndefined({ id, name, issuer, ...members })), form),
        rare: rareFields,
        presets: Object.entries(upstreamPresets).map(([id, { name }]) => ({ id, name })),
        ...(preset && { advice: preset.advice }),
        url,
      })
    },
    submit: async (visit) => {
      const { form } = visit
      const [id = '', issuer = ''] = ['upstream_id', 'issuer'].map((name) => single(form, name)?.trim())
      const body = { upstream_id: id, issuer, ...bodyOf(form) }
      // `as`: the operation checks what was typed.
      await performAt(deps, visit, addUpstream, {}, body as Static<typeof NewUpstream>).catch(
        (error: unknown) => {
          throw error instanceof RecordExists ? conflict(addUpstream.taken ?? '') : error
        },
      )
      return visit.done('upstream-added', `/upstreams/${id}`)
    },
  }
  return hasUpstreams(deps.config) ? [page] : []
}

/** An upstream: what it may do here, and the redirect URI that it has to know. */
export function upstreamPage(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { service, config } = deps
  const find = async (id: string) => requireFound(await upstreamsOf(deps).find(id), 'upstream')
  const show = async ({ param, form, render }: AdminVisit, problem?: Text) => {
    const upstream = await find(param('id'))
    return render(
      'admin/upstream',
      {
        hidden: versionField(form, versionedOf(upstream)),
        name: upstream.name,
        typed: typedAgain(typedOf(upstream), form),
        rare: rareFields,
        isConfigured: !isStored(upstream),
        redirectUri: redirectUriOf(service, upstream),
        tryUrl: trialUrlOf({ issuer: service.prefix }, upstream),
        url: `${service.prefix}${adminPath('upstreams')}/${upstream.id}/delete`,
      },
      problem,
    )
  }
  const page: AdminPage = {
    path: '/upstreams/:id',
    section: 'upstreams',
    kept: keptUpstream,
    show,
    submit: async (visit) => {
      const { id } = await find(visit.param('id'))
      // `as`: what it changes, and what the operation checks.
      const assertSeen = (record: object) => assertVersion(visit.form, versionedOf(record as AnyUpstream))
      const body: Static<typeof ChangedUpstream> = bodyOf(visit.form)
      await performAt(deps, visit, editUpstream, { upstream_id: id }, body, assertSeen)
      return visit.done('saved', `/upstreams/${id}`)
    },
  }
  return hasUpstreams(config) ? [page] : []
}

/** The version of a form also changes with the secret, which it does not show. */
function versionedOf(upstream: AnyUpstream): object {
  return { ...typedOf(upstream), updatedAt: isStored(upstream) ? upstream.updatedAt : 0 }
}

/** Deletes an upstream; its users stay users. */
export function upstreamDeletePage(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const url = deps.service.prefix + adminPath('upstreams')
  const page = actPage<AnyUpstream>({
    path: '/upstreams/:id/delete',
    section: 'upstreams',
    title: msg('admin.upstream.delete'),
    about: msg('admin.upstream.delete.about'),
    isTyped: true,
    find: async (id) => {
      const subject = requireFound(await upstreamsOf(deps).find(id), 'upstream')
      return { subject, name: subject.name, url: `${url}/${id}` }
    },
    perform: async ({ id }, visit) => {
      await performAt(deps, visit, removeUpstream, { upstream_id: id })
      return visit.done('upstream-deleted', '/upstreams')
    },
  })
  return hasUpstreams(deps.config) ? [page] : []
}
