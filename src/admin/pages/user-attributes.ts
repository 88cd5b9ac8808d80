import type { FastifyInstance } from 'fastify'
import { attributeChange, attributesOf, changedAttributes } from '../../domain/attributes.ts'
import type { UserAttributes } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import {
  type AttributeField,
  type AttributeTexts,
  attributeField,
  attributeFieldFault,
  attributeTexts,
} from '../../pages/attributes.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import { changeUser } from '../operations/user-changes.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/user-attributes': AdminModel & {
      readonly user: NamedUser
      readonly attributes: readonly AttributeField[]
      readonly url: string
    }
  }
}

/** The custom attributes of a user: administrators see and change all that are declared. */
export function userAttributesPage(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { config, service, store } = deps
  const declared = config.accounts.attributes
  if (declared.length === 0) return []
  const backTo = (id: string) => `/users/${encodeURIComponent(id)}`
  const show = async ({ param, form, request, render }: AdminVisit, texts: AttributeTexts = {}) => {
    const user = requireFound(await store.find('user', param('id')), 'user')
    const { language } = request
    return render('admin/user-attributes', {
      hidden: versionField(form, attributesOf(declared, user)),
      user: displayName(user),
      attributes: declared.map((one) => attributeField(one, user, { texts, language, isEditable: true })),
      url: `${service.prefix}${adminPath('users')}/${encodeURIComponent(user.id)}`,
    })
  }
  const page: AdminPage = {
    path: '/users/:id/attributes',
    section: 'users',
    isForm: true,
    kept: {
      version: undefined,
      ...Object.fromEntries(declared.map(({ name, label = name }) => [`attribute.${name}`, label])),
    },
    show: (visit) =>
      show(visit, single(visit.form, 'version') === undefined ? {} : attributeTexts(visit.form, declared)),
    submit: async (visit) => {
      const { form, param, reply } = visit
      const texts = attributeTexts(form, declared)
      const wanted = attributeChange(declared, texts)
      if (declared.some((one) => attributeFieldFault(one, wanted) !== undefined)) {
        reply.code(400)
        return show(visit, texts)
      }
      const sub = param('id')
      const user = requireFound(await store.find('user', sub), 'user')
      const { given } = changedAttributes(user, wanted)
      const assertSeen = (record: object) => assertVersion(form, attributesOf(declared, record))
      const body = { attributes: given as UserAttributes } // attributeFieldFault has checked them
      await performAt(deps, visit, changeUser, { sub }, body, assertSeen)
      return visit.done('saved', backTo(sub))
    },
  }
  return [page]
}
