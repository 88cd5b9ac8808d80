import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { type TextClaim, textClaims } from '../../domain/claims.ts'
import { accept, withWrites } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { type ClaimFault, changedClaims, claimFault } from '../../users/rules/editable-claims.ts'
import { changeProfile } from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import { ownPages, type Submission, type Visit } from '../own-pages.ts'
import { isVerificationSent } from './email.ts'
import type { AccountProfilePage } from './models.ts'

/** What apps can learn of a user, as far as the operator lets them say it themselves; the address is email.ts. */
export function ownProfile(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store } = deps
  const { visit, submission, back } = ownPages(app, deps)
  const action = `${service.prefix}/account/profile`
  const editable = config.accounts.editable.filter((claim) => claim !== 'email')

  app.get('/account/profile', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'profile' })
    return here === undefined ? reply : show(here, reply)
  })

  app.post('/account/profile', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, { section: 'profile' })
    if (here === undefined) return reply
    const { form, user, now } = here
    const context = userContext(request, now)
    if (single(form, 'verify') !== undefined) {
      const isSent = await isVerificationSent(app, user, context)
      return back(reply, isSent ? 'email-sent' : 'email-saved')
    }
    const wanted = wantedOf(form)
    const faults = faultsOf(wanted)
    if (faults.size > 0) return show(here, reply, wanted, faults)
    await save(here, wanted, context)
    return back(reply, 'profile-saved')
  })

  const wantedOf = (form: Parameters): Wanted =>
    Object.fromEntries(editable.map((claim) => [claim, (single(form, claim) ?? '').trim()]))

  const save = async ({ user, now }: Submission, wanted: Wanted, context: AuditContext) => {
    await store.transact('user', user.id, (current) => {
      if (current === undefined) return accept(undefined)
      const claims = changedClaims(current.claims, wanted)
      const changed = Object.keys(claims).join(' ')
      if (changed === '') return accept(undefined)
      return withWrites(
        { ...changeProfile(current, { claims }, now), result: undefined },
        auditEvent('person-changed', context, { userId: current.id, changed }),
      )
    })
  }

  const show = (
    { frame, hidden, user }: Visit,
    reply: FastifyReply,
    wanted: Wanted = {},
    faults: ReadonlyMap<TextClaim, ClaimFault> = new Map(),
  ) => {
    const model: AccountProfilePage = {
      frame,
      action,
      hidden,
      username: user.username,
      fields: editable.map((claim) => {
        const fault = faults.get(claim)
        const value = wanted[claim] ?? textOf(user, claim)
        return { claim, value, ...(fault !== undefined && { fault }) }
      }),
      facts: Object.keys(user.claims)
        .filter((claim) => !notFacts.has(claim) && !editable.some((each) => each === claim))
        .flatMap((claim) => factOf(user, claim)),
      email: {
        ...(user.email !== undefined && { address: user.email }),
        verified: user.claims['email_verified'] === true,
        canVerify: app.emails.canSend,
        ...(config.accounts.editable.includes('email') &&
          app.emails.canSend && { url: `${service.prefix}/account/email` }),
      },
    }
    return reply.page('account-profile', model, { status: faults.size > 0 ? 400 : 200 })
  }
}

type Wanted = Readonly<Partial<Record<TextClaim, string>>>

/** Said elsewhere on the page, or for programs only. */
const notFacts = new Set([
  'preferred_username',
  'email',
  'email_verified',
  'updated_at',
  'phone_number_verified',
])

function faultsOf(wanted: Wanted): ReadonlyMap<TextClaim, ClaimFault> {
  const entries = Object.entries(wanted) as [TextClaim, string][] // Object.entries forgets the names
  return new Map(
    entries.flatMap(([claim, text]) => {
      const fault = claimFault(claim, text)
      return fault === undefined ? [] : [[claim, fault] as const]
    }),
  )
}

function textOf({ claims }: User, claim: string): string {
  const value = claims[claim]
  return value === undefined ? '' : String(value)
}

/** What a standard claim is called; a claim of the operator's own has its name only. */
function labelOf(claim: string): Text | undefined {
  const known = textClaims.find((each) => each === claim)
  if (known !== undefined) return msg(`claim.${known}`)
  switch (claim) {
    case 'phone_number':
    case 'address':
      return msg(`claim.${claim}`)
    default:
      return undefined
  }
}

/** A claim that only the operator changes, on one line. */
function factOf({ claims }: User, claim: string): AccountProfilePage['facts'] {
  const value = claims[claim]
  if (value === undefined || value === '') return []
  const text = typeof value === 'object' ? Object.values(value).join(', ') : String(value)
  const label = labelOf(claim)
  return [{ claim, text, ...(label && { label }) }]
}
