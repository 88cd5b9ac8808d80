import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { lacksAcr, methodsOf } from '../../domain/authentication-context.ts'
import { accept, update } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { interactionKind } from '../../domain/interaction.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Passkey, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Text } from '../../domain/text.ts'
import { recordRejection } from '../../http/errors.ts'
import { assertionOptions } from '../../users/passkeys/passkeys.ts'
import { inARowRule, networkRule } from '../../users/rules/throttle.ts'
import { msg } from '../i18n/catalogue.ts'
import { formActionOf, interactionExpired, type Pending } from './pending.ts'
// Brings `app.shortcuts`.
import type {} from './shortcuts.ts'

/** What a form of the sign-in says when it comes back: nothing yet, or what went wrong. */
export interface Shown {
  readonly username?: string | undefined
  readonly problem?: Text
  readonly status?: number
}

/** What the forms of the sign-in have in common: where they lead, whose they are, and the first of them. */
export function loginForms(app: FastifyInstance, { service, store, random }: AppDeps) {
  const action = `${service.prefix}/login`
  const { relyingParty } = service

  const csrfOf = ({ browserSecret, interaction }: Pending) =>
    app.browser.csrfToken(browserSecret, 'login', interaction.id)

  /** What a passkey is to sign; of an interaction there is one at a time, and `takeChallenge` uses it up. */
  const challengeOf = ({ interaction }: Pending): Promise<string> => {
    if (interaction.challenge !== undefined) return Promise.resolve(interaction.challenge)
    const fresh = random(32).toString('base64url')
    return store.transact(interactionKind, interaction.id, (current) => {
      if (current === undefined) throw interactionExpired()
      const challenge = current.challenge ?? fresh
      return accept(challenge, update(interactionKind, { ...current, challenge }))
    })
  }

  const takeChallenge = ({ interaction }: Pending): Promise<string | undefined> =>
    store.transact(interactionKind, interaction.id, (current) => {
      if (current === undefined) throw interactionExpired()
      const { challenge, ...rest } = current
      return accept(challenge, update(interactionKind, rest))
    })

  /** What the browser is asked for, or nothing where passkeys do not work or would not be enough. */
  const passkeyOf = async (pending: Pending, allowed?: readonly Passkey[]) => {
    if (relyingParty === undefined || allowed?.length === 0) return {}
    const challenge = await challengeOf(pending)
    return { passkey: { options: JSON.stringify(assertionOptions(relyingParty, challenge, allowed)) } }
  }

  const forgotUrl = ({ interaction }: Pending) =>
    `${service.prefix}/forgot-password?interaction=${interaction.id}`

  const frameOf = (pending: Pending) => ({
    action,
    hidden: { interaction: pending.interaction.id, csrf: csrfOf(pending) },
    ...(pending.client && omitUndefined({ clientName: clientWords(pending.client, pending.language).name })),
  })

  const showLogin = async (pending: Pending, reply: FastifyReply, shown: Shown = {}) => {
    const { username, problem, status = 200 } = shown
    const model = {
      ...frameOf(pending),
      ...(username !== undefined && { username }),
      ...(problem !== undefined && { problem }),
      again: mustConfirm(pending),
      ...(passkeyWouldDo(pending) && (await passkeyOf(pending))),
      ...(app.shortcuts && { people: (await app.shortcuts.people()).map(displayName) }),
      ...(app.emails.canSend && { forgotUrl: forgotUrl(pending) }),
    }
    return reply.page('login', model, { status, ...formActionOf(pending) })
  }

  return {
    csrfOf,
    takeChallenge,
    passkeyOf,
    frameOf,
    showLogin,
    pageUrl: ({ interaction }: Pending) => `${action}?interaction=${interaction.id}`,
    /** The consent page goes where the request stands. */
    continueFlow: ({ interaction }: Pending, reply: FastifyReply) =>
      reply.redirect(`${service.prefix}/consent?interaction=${interaction.id}`, 303),
    /** The same form again, after a sign-in that was wrong: the log gets the rule, the page has its own words. */
    reject: (pending: Pending, reply: FastifyReply, problem: Text, username?: string) => {
      const rejection = notSignedIn(problem)
      recordRejection(rejection, reply)
      return showLogin(pending, reply, { username, problem, status: rejection.status })
    },
  }
}

export type LoginForms = ReturnType<typeof loginForms>

/** Whether the signed-in user has to authenticate again, rather than another user being requested. */
export function mustConfirm({ session, step, request }: Pending): boolean {
  const { requiredSub } = request
  return step === 'login' && session !== undefined && (requiredSub ?? session.userId) === session.userId
}

/** An account as users see it. */
export function displayName({ claims, username }: User): {
  readonly name: string
  readonly username: string
} {
  return { name: String(claims['name'] ?? username), username }
}

/** What a form says about a sign-in that was not looked at, and for how long none is. */
export function comeBack({ status, headers, detail: { rule } }: OAuthError, { client }: Pending): Text {
  if (status !== 429) return msg('login.busy')
  if (rule === inARowRule) return msg('login.inARow')
  if (rule === networkRule)
    return msg('login.throttledNetwork', { later: { in: Number(headers['retry-after']) } })
  const later = { in: Number(headers['retry-after']) }
  return msg(client === undefined ? 'password.throttled' : 'login.throttled', { later })
}

/** The rejection of a sign-in as it stands in the log. */
export function notSignedIn({ key }: Text): OAuthError {
  return new OAuthError('access_denied', 'the sign-in was not accepted', {
    rule: 'lychgate-sign-in',
    status: key === 'login.locked' ? 403 : 400,
    received: key,
  })
}

/** A client may insist on a password. */
function passkeyWouldDo({ request }: Pending): boolean {
  const { acr } = request
  const alone = methodsOf({ password: false, codes: false, passkey: true }, true)
  return acr?.essential !== true || !lacksAcr(alone, acr)
}
