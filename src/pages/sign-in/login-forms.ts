import type { FastifyInstance, FastifyReply } from 'fastify'
import { lacksAcr, methodsOf } from '../../domain/authentication-context.ts'
import { clientWords } from '../../domain/localized.ts'
import type { AuthorizationRequest, PageRequest, Passkey, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Text } from '../../domain/text.ts'
import type { OtherSignIns } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { recordNotSignedIn } from '../../users/failed-sign-ins.ts'
import { assertionOptions } from '../../users/passkeys/passkeys.ts'
import { clientLogoUrl } from '../client-logo.ts'
import { type ClientLink, clientLinks, displayName, type NamedUser } from '../describe.ts'
import { busyProblem, type FormModel } from '../forms.ts'
import { changeInteraction, interactionUrl, type Pending } from './pending.ts'
import { handleOf } from './way-back.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** What spares a developer signing in and approving; only on a development server. */
    readonly shortcuts?: Shortcuts
  }
}

/** Shortcuts of a development server. */
export interface Shortcuts {
  /** Returns the users that a button signs in. */
  users(): Promise<readonly User[]>
  /** Returns the user who is signed in for a request without a page. */
  signsIn(request: AuthorizationRequest | PageRequest): Promise<User | undefined>
  /** Whether every request is approved without a page. */
  readonly agrees: boolean
}

declare module '../pages.ts' {
  interface Pages {
    login: SignInModel & {
      /** `login_hint`, or what was typed before. */
      readonly username?: string
      /** Whether the user is signed in and has to prove it again. */
      readonly again: boolean
      /** Where an email with a link to a new password is requested; absent if no email can be sent. */
      readonly forgotUrl?: string
      /** The logo and the links of the client; absent if it names none. */
      readonly client?: { readonly logoUrl?: string; readonly links: readonly ClientLink[] }
      /** Where else users may sign in. */
      readonly elsewhere?: OtherSignIns['ways']
      /** Users that a button signs in, on a development server. */
      readonly users?: readonly NamedUser[]
    }
  }
}

/** What the pages of a sign-in show. */
export interface SignInModel extends FormModel {
  /** Absent if the client has no name. */
  readonly clientName?: string
  /** What the script of the page asks the browser for, Web Authentication Level 3 §5.5, as JSON. */
  readonly passkey?: { readonly options: string }
}

/** What a form of the sign-in shows after an attempt that failed. */
export interface Shown {
  readonly username?: string | undefined
  readonly problem?: Text
  readonly status?: number
}

/** What the forms of the sign-in have in common, and the first of them. */
export function loginForms(app: FastifyInstance, deps: Needs<'store' | 'clock' | 'random' | 'service'>) {
  const { service, store, random } = deps
  const { relyingParty, prefix } = service

  const csrfOf = ({ browserSecret, interaction }: Pending) =>
    app.browser.csrfToken(browserSecret, 'login', interaction.id)

  /** Returns what a passkey has to sign. An interaction has one at a time; `takeChallenge` uses it up. */
  const challengeOf = async (pending: Pending): Promise<string> => {
    const { challenge } = pending.interaction
    if (challenge !== undefined) return challenge
    const fresh = random(32).toString('base64url')
    const before = await changeInteraction(store, pending, (current) => ({ challenge: fresh, ...current }))
    return before.challenge ?? fresh
  }

  const takeChallenge = async (pending: Pending): Promise<string | undefined> =>
    (await changeInteraction(store, pending, ({ challenge: _, ...rest }) => rest)).challenge

  /** Returns what to ask the browser for; nothing if passkeys do not work here or the user has none. */
  const passkeyOf = async (pending: Pending, allowed?: readonly Passkey[]) => {
    if (relyingParty === undefined || allowed?.length === 0) return {}
    const challenge = await challengeOf(pending)
    return { passkey: { options: JSON.stringify(assertionOptions(relyingParty, challenge, allowed)) } }
  }

  const frameOf = (pending: Pending) => {
    const { interaction, client, reply } = pending
    return {
      action: `${prefix}/login`,
      hidden: { ...handleOf(interaction), csrf: csrfOf(pending) },
      ...(client && omitUndefined({ clientName: clientWords(client, reply.request.language).name })),
    }
  }

  /** Returns what the client shows of itself. A client without a logo and links costs no read. */
  const clientOf = async ({ client, reply }: Pending) => {
    if (client === undefined) return {}
    const links = clientLinks(client, reply.request.language)
    const logoUrl = client.logoUri === undefined ? undefined : await clientLogoUrl(app, deps, client)
    if (logoUrl === undefined && links.length === 0) return {}
    return { client: { links, ...(logoUrl !== undefined && { logoUrl }) } }
  }

  const showLogin = async (pending: Pending, shown: Shown = {}): Promise<FastifyReply> => {
    const { username, problem, status = 200 } = shown
    const elsewhere = await app.seams.signInWays.collect(handleOf(pending.interaction))
    const model = {
      ...frameOf(pending),
      ...(username !== undefined && { username }),
      ...(problem !== undefined && { problem }),
      again: mustConfirm(pending),
      ...(await clientOf(pending)),
      ...(isPasskeyEnough(pending) && (await passkeyOf(pending))),
      ...(elsewhere && { elsewhere: elsewhere.ways }),
      ...(app.shortcuts && { users: (await app.shortcuts.users()).map(displayName) }),
      ...(app.emails.canSend && {
        forgotUrl: `${prefix}/forgot-password?${new URLSearchParams(handleOf(pending.interaction))}`,
      }),
    }
    return pending.reply.page('login', model, { status })
  }

  return {
    csrfOf,
    takeChallenge,
    passkeyOf,
    frameOf,
    showLogin,
    pageUrl: ({ interaction }: Pending) => interactionUrl(prefix, 'login', interaction),
    /** Redirects to the consent page, which continues the request. */
    continueFlow: ({ interaction, reply }: Pending) =>
      reply.redirect(interactionUrl(prefix, 'consent', interaction), 303),
    /** Shows the form again after a sign-in that failed: the log gets the rule, the page a text for users. */
    reject: (pending: Pending, problem: Text, username?: string) => {
      const { status } = recordNotSignedIn(pending, problem)
      return showLogin(pending, { username, problem, status })
    },
  }
}

export type LoginForms = ReturnType<typeof loginForms>

/** Whether the signed-in user has to authenticate again, rather than another user being requested. */
export function mustConfirm({ session, step, request }: Pending): boolean {
  const { requiredSub } = request
  return step === 'login' && session !== undefined && (requiredSub ?? session.userId) === session.userId
}

/** Returns what the form shows after a sign-in that was throttled or not evaluated. @throws any other error. */
export function comeBack(error: unknown, { client, reply }: Pending) {
  const throttled = client === undefined ? 'password.throttled' : 'login.throttled'
  const problem = busyProblem(error, reply, throttled, 'login.throttledNetwork')
  return { problem, status: reply.statusCode }
}

/** Whether a passkey alone satisfies the request: a client may require a password. */
function isPasskeyEnough({ request: { acr } }: Pending): boolean {
  const alone = methodsOf({ password: false, codes: false, passkey: true }, true)
  return acr?.essential !== true || !lacksAcr(alone, acr)
}
