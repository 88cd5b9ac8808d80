import type { FastifyInstance } from 'fastify'
import { type AttributeChange, attributeChange, changedAttributes } from '../../domain/attributes.ts'
import { type TextClaim, textClaims } from '../../domain/claims.ts'
import { accept } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { editProfile } from '../../users/rules/edit-profile.ts'
import { type ClaimFault, changedClaims, claimFault } from '../../users/rules/editable-claims.ts'
import {
  type AttributeField,
  type AttributeTexts,
  attributeField,
  attributeFieldFault,
  attributeTexts,
} from '../attributes.ts'
import { msg } from '../i18n/i18n.ts'
import type { AccountModel, AccountPage, Visit } from './account-page.ts'
import { isVerificationSent } from './email.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-profile': AccountModel & {
      readonly username: string
      /** The claims that the operator lets users change. */
      readonly fields: readonly {
        readonly claim: TextClaim
        readonly value: string
        readonly fault?: ClaimFault
      }[]
      /** The claims that only the operator changes. */
      readonly facts: readonly { readonly claim: string; readonly label?: Text; readonly text: string }[]
      /** Attributes that the user may see; with a type: may change, too. */
      readonly attributes: readonly AttributeField[]
      readonly email: {
        readonly address?: string
        readonly verified: boolean
        /** Whether an email with a link can be sent. */
        readonly canVerify: boolean
        /** Where it is changed; absent where only the operator does that. */
        readonly url?: string
      }
    }
  }
}

type TypedClaims = Readonly<Partial<Record<TextClaim, string>>>

/** The claims of the user; those the operator permits can be changed. The email address has its own page. */
export function profilePage(app: FastifyInstance, { config, service, store }: PageDeps): AccountPage {
  const editable = config.accounts.editable.filter((claim) => claim !== 'email')
  const canSend = app.emails.canSend
  const emailUrl =
    canSend && config.accounts.editable.includes('email') ? { url: `${service.prefix}/account/email` } : {}

  const visible = config.accounts.attributes.filter((one) => one.visible === 'user')
  const own = visible.filter((one) => one.editable === 'user')

  const show = ({ user, request, render }: Visit, typed: TypedClaims = {}, texts: AttributeTexts = {}) =>
    render('account-profile', {
      username: user.username,
      attributes: visible.map((attribute) =>
        attributeField(attribute, user, {
          texts,
          language: request.language,
          isEditable: attribute.editable === 'user',
        }),
      ),
      fields: editable.map((claim) => {
        const fault = typed[claim] === undefined ? undefined : claimFault(claim, typed[claim])
        const value = typed[claim] ?? String(user.claims[claim] ?? '')
        return { claim, value, ...(fault !== undefined && { fault }) }
      }),
      facts: Object.keys(user.claims)
        .filter((claim) => !notFacts.has(claim) && !editable.some((each) => each === claim))
        .flatMap((claim) => factOf(user, claim)),
      email: {
        ...(user.email !== undefined && { address: user.email }),
        verified: user.claims['email_verified'] === true,
        canVerify: canSend,
        ...emailUrl,
      },
    })

  const save = async ({ user, context }: Visit, typed: TypedClaims, change: AttributeChange) => {
    await store.transact('user', user.id, (current) => {
      if (current === undefined) return accept(undefined)
      const claims = changedClaims(current.claims, typed)
      const attributes = changedAttributes(current, change)
      return { ...editProfile(current, { claims, attributes }, context), result: undefined }
    })
  }

  return {
    path: '/account/profile',
    section: 'profile',
    show: (visit) => show(visit),
    submit: async (visit) => {
      const { form, user, context, reply, done } = visit
      if (single(form, 'verify') !== undefined)
        return done((await isVerificationSent(app, user, context)) ? 'email-sent' : 'email-saved')
      const typed = editable.map((claim) => [claim, (single(form, claim) ?? '').trim()] as const)
      const texts = attributeTexts(form, own)
      const attributes = attributeChange(own, texts)
      const isWrong = typed.some(([claim, text]) => claimFault(claim, text) !== undefined)
      if (isWrong || own.some((attribute) => attributeFieldFault(attribute, attributes) !== undefined)) {
        reply.code(400)
        return show(visit, Object.fromEntries(typed), texts)
      }
      await save(visit, Object.fromEntries(typed), attributes)
      return done('profile-saved')
    },
  }
}

/** Shown elsewhere on the page, or for programs only. */
const notFacts = new Set([
  'preferred_username',
  'email',
  'email_verified',
  'updated_at',
  'phone_number_verified',
])

/** Returns a claim that only the operator changes, on one line. A claim that is no standard one has no label. */
function factOf({ claims }: User, claim: string): { claim: string; text: string; label?: Text }[] {
  const value = claims[claim]
  if (value === undefined || value === '') return []
  const text = typeof value === 'object' ? Object.values(value).join(', ') : String(value)
  const known = ([...textClaims, 'phone_number', 'address'] as const).find((each) => each === claim)
  return [{ claim, text, ...(known && { label: msg(`claim.${known}`) }) }]
}
