import type { FastifyInstance } from 'fastify'
import { attributeChange, attributesOf, changedAttributes } from '../../domain/attributes.ts'
import { single } from '../../domain/parameters.ts'
import type { AppDeps } from '../../feature/deps.ts'
import {
  type AttributeField,
  type AttributeTexts,
  attributeField,
  attributeFieldFault,
  attributeTexts,
} from '../../pages/attributes.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import { editProfile } from '../../users/rules/edit-profile.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
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
export function userAttributesPage(
  _app: FastifyInstance,
  { config, service, store }: AppDeps,
): readonly AdminPage[] {
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
      const { form, param, context, reply } = visit
      const texts = attributeTexts(form, declared)
      const wanted = attributeChange(declared, texts)
      if (declared.some((one) => attributeFieldFault(one, wanted) !== undefined)) {
        reply.code(400)
        return show(visit, texts)
      }
      const userId = param('id')
      await visit.store.transact('user', userId, (found) => {
        const user = requireFound(found, 'user')
        assertVersion(form, attributesOf(declared, user))
        const attributes = changedAttributes(user, wanted)
        return editProfile(user, { attributes }, context)
      })
      return visit.done('saved', backTo(userId))
    },
  }
  return [page]
}
