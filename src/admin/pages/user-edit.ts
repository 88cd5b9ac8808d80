import type { FastifyInstance } from 'fastify'
import { attributeChange, attributesOf, changedAttributes } from '../../domain/attributes.ts'
import { type TextClaim, textClaims } from '../../domain/claims.ts'
import type { User, UserAttributes } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import {
  type AttributeField,
  attributeField,
  attributeFieldFault,
  attributeTexts,
} from '../../pages/attributes.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import { newPasswordProblem } from '../../pages/forms.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { RecordExists } from '../../storage/store.ts'
import { type ClaimFault, changedClaims, claimFault } from '../../users/rules/editable-claims.ts'
import { changeUser, setPassword } from '../operations/user-changes.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/user-edit': AdminModel & {
      readonly user: NamedUser
      readonly typed: { readonly username: string; readonly email: string; readonly isVerified: boolean }
      readonly claims: readonly {
        readonly claim: TextClaim
        readonly value: string
        readonly fault?: ClaimFault
      }[]
      readonly attributes: readonly AttributeField[]
      readonly url: string
    }
    'admin/user-password': AdminModel & { readonly user: NamedUser; readonly url: string }
  }
}

/** The profile of a user. What the form does not send stays. */
export function userEditPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, store } = deps
  const declared = config.accounts.attributes
  const show = async ({ param, form, request, render }: AdminVisit, problem?: Text) => {
    const user = requireFound(await store.find('user', param('id')), 'user')
    const { language } = request
    const isTyped = single(form, 'version') !== undefined
    const texts = isTyped ? attributeTexts(form, declared) : {}
    const { username, email, isVerified } = shownOf(user)
    return render(
      'admin/user-edit',
      {
        hidden: versionField(form, versionedOf(user)),
        user: displayName(user),
        typed: {
          username: single(form, 'username') ?? username,
          email: single(form, 'email') ?? email,
          isVerified: single(form, 'email') === undefined ? isVerified : isTicked(form),
        },
        claims: textClaims.map((claim) => {
          const value = single(form, claim)?.trim() ?? String(user.claims[claim] ?? '')
          return { claim, value, ...omitUndefined({ fault: isTyped ? claimFault(claim, value) : undefined }) }
        }),
        attributes: declared.map((one) => attributeField(one, user, { texts, language, isEditable: true })),
        url: urlOf(deps, user),
      },
      problem,
    )
  }
  const isTicked = (form: AdminVisit['form']) => single(form, 'email_verified') !== undefined
  const shownOf = ({ username, email = '', claims }: User) => ({
    username,
    email,
    isVerified: claims['email_verified'] === true,
  })
  const versionedOf = (user: User) => ({
    ...shownOf(user),
    claims: textClaims.map((claim) => user.claims[claim]),
    attributes: attributesOf(declared, user),
  })

  return {
    path: '/users/:id/edit',
    section: 'users',
    isForm: true,
    kept: {
      version: undefined,
      username: msg('profile.username'),
      email: msg('profile.email'),
      email_verified: undefined,
      ...Object.fromEntries(textClaims.map((claim) => [claim, msg(`claim.${claim}`)])),
      ...Object.fromEntries(declared.map(({ name, label = name }) => [`attribute.${name}`, label])),
    },
    show,
    submit: async (visit) => {
      const { form, param, reply } = visit
      const user = requireFound(await store.find('user', param('id')), 'user')
      const typed = Object.fromEntries(
        textClaims.flatMap((claim) => {
          const text = single(form, claim)?.trim()
          return text === undefined ? [] : [[claim, text] as const]
        }),
      )
      const change = attributeChange(declared, attributeTexts(form, declared))
      const isWrong = textClaims.some((claim) => claimFault(claim, typed[claim] ?? '') !== undefined)
      if (isWrong || declared.some((attribute) => attributeFieldFault(attribute, change) !== undefined)) {
        reply.code(400)
        return show(visit)
      }
      const [username, email] = [single(form, 'username')?.trim(), single(form, 'email')?.trim()]
      // The box said it of the old address: another one is verified only if the box is ticked for it.
      const isSaid = email !== undefined && isTicked(form) !== shownOf(user).isVerified
      const body = {
        claims: changedClaims(user.claims, typed),
        attributes: changedAttributes(user, change).assigned as UserAttributes, // attributeFieldFault has checked them
        ...omitUndefined({
          username: username === user.username ? undefined : username,
          email: email === (user.email ?? '') ? undefined : email,
          email_verified: isSaid && email !== '' ? isTicked(form) : undefined,
        }),
      }
      const assertSeen = (record: object) => assertVersion(form, versionedOf(record as User)) // what it changes
      try {
        await performAt(deps, visit, changeUser, { sub: user.id }, body, assertSeen)
      } catch (error) {
        if (!(error instanceof RecordExists)) throw error
        return show(visit, msg('admin.invite.taken'))
      }
      return visit.done('saved', backTo(user))
    },
  }
}

/** Sets a password that the administrator tells the user. */
export function userPasswordPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const find = async ({ param }: AdminVisit) =>
    requireFound(await deps.store.find('user', param('id')), 'user')
  const show = async (visit: AdminVisit, problem?: Text) => {
    const user = await find(visit)
    return visit.render('admin/user-password', { user: displayName(user), url: urlOf(deps, user) }, problem)
  }
  return {
    path: '/users/:id/password',
    section: 'users',
    isForm: true,
    show,
    submit: async (visit) => {
      const { form } = visit
      const user = await find(visit)
      const problem = newPasswordProblem(form)
      if (problem !== undefined) return show(visit, problem)
      const body = {
        password: single(form, 'password') ?? '',
        disconnect: single(form, 'disconnect') !== undefined,
      }
      await performAt(deps, visit, setPassword, { sub: user.id }, body)
      return visit.done('saved', backTo(user))
    },
  }
}

function urlOf({ service }: Pick<PageDeps, 'service'>, { id }: User): string {
  return `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
}

function backTo({ id }: User): string {
  return `/users/${encodeURIComponent(id)}`
}
