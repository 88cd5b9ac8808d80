import { lacksAcr } from './authentication-context.ts'
import { recordCheck } from './check.ts'
import { OAuthError, type OAuthErrorCode } from './errors.ts'
import type {
  AuthorizationRequest,
  Client,
  Consent,
  Hash,
  Interaction,
  RequestedAcr,
  Scope,
  Seconds,
  Session,
  SignInRequest,
} from './model.ts'
import { recordKind } from './record.ts'
import { isLoopbackUri, privateUseScheme } from './redirect-uri.ts'
import { offlineAccess } from './scope-catalogue.ts'

/** Pending authorization requests, by id. */
export const interactionKind = recordKind<Interaction>('interaction', {
  id: ({ id }) => id,
  madeAt: ({ createdAt }) => createdAt,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** What has to happen next for a pending authorization request. */
export type Step = 'login' | 'select_account' | 'consent' | 'respond' | 'reject'

/** What the user has done so far for this request. */
export type Progress = Pick<Interaction, 'authenticatedSessionId' | 'userChosen'>

/** The state of a request before any action of the user. */
export const noProgress: Progress = { userChosen: false }

/**
 * Decides the next step of an authorization request (OpenID Connect Core §3.1.2.3, §3.1.2.4). Nothing is granted before
 * the user has signed in (RFC 6749 §3.1). `respond` means that a code may be issued without asking; `reject` that the
 * wrong user signed in, or not as required.
 * @param availableAcrs The context classes the user could sign in with, where `lacksAcr`.
 */
export function nextStep(
  request: AuthorizationRequest,
  progress: Progress,
  client: Client,
  session: Session | undefined,
  consent: Consent | undefined,
  now: Seconds,
  availableAcrs: readonly string[] = [],
): Step {
  const signIn = signInStep(request, progress, session, now, availableAcrs)
  const step = signIn === 'respond' && needsConsent(request, client, consent) ? 'consent' : signIn
  recordCheck(...whyStep[step])
  return step
}

/** The rule that makes it the next step, and in words. */
const whyStep: Readonly<Record<Step, readonly [rule: string, found: string]>> = {
  login: ['rfc6749-3.1-owner-authenticated-first', 'the user must sign in first'],
  select_account: ['oidc-core-3.1.2.1-prompt-select-account', 'the user must choose an account first'],
  consent: ['service-5-approval-required', 'the user must approve the request'],
  respond: ['rfc6749-3.1-owner-authenticated-first', 'the user is signed in and need not be asked'],
  reject: ['oidc-core-3.1.2.2-specific-sub', 'the signed-in user does not satisfy the request'],
}

/** Decides the step of the sign-in alone: `respond` means that the right user signed in recently enough. */
export function signInStep(
  request: SignInRequest,
  progress: Progress,
  session: Session | undefined,
  now: Seconds,
  availableAcrs: readonly string[] = [],
): Exclude<Step, 'consent'> {
  if (session === undefined) return 'login'
  const authenticatedHere = progress.authenticatedSessionId === session.id
  if (!authenticatedHere && mustAuthenticate(request, session, now)) return 'login'
  if (request.requiredSub !== undefined && request.requiredSub !== session.userId) {
    return authenticatedHere ? 'reject' : 'login'
  }
  if (request.prompt.includes('select_account') && !progress.userChosen && !authenticatedHere)
    return 'select_account'
  return contextStep(request, session, authenticatedHere, availableAcrs)
}

/** Whether the user must re-authenticate, OpenID Connect Core §3.1.2.1. */
export function mustAuthenticate(request: SignInRequest, session: Session, now: Seconds): boolean {
  if (request.prompt.includes('login')) return true
  const maxAge = request.maxAgeSeconds
  // max_age=0 means prompt=login: every session is older once the browser is back.
  return maxAge !== undefined && (maxAge === 0 || now - session.authenticatedAt > maxAge)
}

/** Which consent a request needs: none, consent that may have been remembered, or consent that is asked for now. */
export function consentRule(request: AuthorizationRequest, client: Client): 'none' | 'remembered' | 'asked' {
  if (request.prompt.includes('consent')) return 'asked'
  if (client.origin === 'integration' && client.consent === 'skip' && !isOfApp(request)) return 'none'
  return remembersConsent(request, client) ? 'remembered' : 'asked'
}

/** The scopes the user is asked about: where consent is remembered only what is new at one of the resources. */
export function askedScope(
  request: AuthorizationRequest,
  client: Client,
  consent: Consent | undefined,
): Scope {
  const isRemembered = remembersConsent(request, client) && !request.prompt.includes('consent')
  const fresh = isRemembered ? newScope(request, client, consent) : []
  return fresh.length > 0 ? fresh : wantedScope(request)
}

/**
 * Whether consent to this request is remembered: by the rule of the operator who added the client, or because the host
 * that publishes the client, or the operator who let it register, says where the response goes. Any program on
 * a computer can receive a loopback redirect, and any app that of another one, so that they ask every time (RFC 8252
 * §8.6).
 */
export function remembersConsent(
  { redirectUri }: Pick<AuthorizationRequest, 'redirectUri'>,
  client: Client,
): boolean {
  if (client.consent !== 'remember' || isOfApp({ redirectUri })) return false
  // Of a client that is not stored, a consent may be left from before it was deleted.
  if (client.published?.namedFrom !== undefined) return false
  return client.origin === 'integration' || (termsOf(client) !== undefined && !isLoopbackUri(redirectUri))
}

function isOfApp({ redirectUri }: Pick<AuthorizationRequest, 'redirectUri'>): boolean {
  return privateUseScheme(redirectUri) !== undefined
}

/** Returns the scope that needs consent: the requested one, and that of individually requested claims. */
export function wantedScope(request: AuthorizationRequest): Scope {
  return request.claimScope === undefined ? request.scope : [...request.scope, ...request.claimScope]
}

/** Returns the error of `prompt=none` when a step would need the user (OpenID Connect Core §3.1.2.6). */
export function promptNoneError(step: Exclude<Step, 'respond' | 'reject'> | Remedy['step']): OAuthError {
  const codes: Readonly<Record<typeof step, OAuthErrorCode>> = {
    login: 'login_required',
    select_account: 'account_selection_required',
    consent: 'consent_required',
    enrol: 'interaction_required',
  }
  // RFC 8252 §8.6: a client that registered itself asks every time, and an operator's may have its consent remembered.
  const remedy = step === 'consent' ? ' (lychgate client add --consent remember)' : ''
  return new OAuthError(codes[step], `the request allows no page to be shown, and one is needed${remedy}`, {
    rule: 'oidc-core-3.1.2.1-prompt-none',
    stored: step,
  })
}

/** Returns the error of a sign-in that does not satisfy the request: another user, or another context class. */
export function errorOf(request: SignInRequest, session: Session | undefined): OAuthError {
  if (request.requiredSub === undefined || request.requiredSub === session?.userId) {
    return new OAuthError(
      'unmet_authentication_requirements',
      'claims requests an acr that this user cannot sign in with',
      {
        rule: 'oidc-core-5.5.1.1-acr-essential',
        stored: session?.methods,
        received: request.acr?.values,
      },
    )
  }
  return new OAuthError('login_required', 'another user signed in than the requested one', {
    rule: 'oidc-core-3.1.2.2-specific-sub',
    stored: session?.userId,
    received: request.requiredSub,
  })
}

/** Why a user may not use a client. */
export interface UserDenial {
  readonly rule: string
  /** The `error_description` that the client gets. */
  readonly why: string
  /** The contact that the page names; absent: the operator of the service. */
  readonly contact?: string
  /** What the user has to do first; absent: nothing helps. */
  readonly remedy?: Remedy
}

/** How a user comes to have the sign-in that a policy requires. */
export interface Remedy {
  /** `login`: with a factor that they have. `enrol`: they have to set one up. */
  readonly step: 'login' | 'enrol'
  /** The class of the sign-in, and what the factor is called. */
  readonly acr: RequestedAcr
  readonly kind: 'second factor' | 'passkey'
  /** When it will be required. Absent: it is now. */
  readonly from?: Seconds
}

/** Whether the user may not use the client now. */
export function isBinding(denial: UserDenial | undefined): denial is UserDenial {
  return denial !== undefined && denial.remedy?.from === undefined
}

/** Returns the error for the client of a user who may not use it. */
export function denialError({ rule, why, remedy }: UserDenial): OAuthError {
  if (remedy !== undefined) return new OAuthError('unmet_authentication_requirements', why, { rule })
  const page = { title: { key: 'denied.title' }, advice: { key: 'denied.about' } }
  return new OAuthError('access_denied', why, { rule, page })
}

/**
 * Returns the scope that the user approves (RFC 6749 §3.3), possibly empty. openid is the sign-in itself and stays;
 * offline_access stays with any other scope.
 * @param offered The scopes they were asked about; they allowed the rest before.
 */
export function narrowByUser(
  request: AuthorizationRequest,
  offered: Scope,
  ticked: readonly string[],
): Scope {
  const scope = wantedScope(request)
  const chosen = scope.filter((name) => isNeeded(name) || !offered.includes(name) || ticked.includes(name))
  const left = chosen.some((name) => name !== offlineAccess.name) ? chosen : []
  recordCheck('rfc6749-3.3-scope-in-response-when-different', 'the scope that the user granted', scope, left)
  return left
}

/**
 * Whether the consent page shows the scope without a choice: openid is the sign-in, offline_access the refresh token.
 */
export function isNeeded(name: string): boolean {
  return name === 'openid' || name === offlineAccess.name
}

/**
 * Returns the consent to remember: what was allowed now at each requested resource, and what was remembered before and
 * not requested now. A scope that the user cleared now is no longer allowed.
 */
export function rememberConsent(
  request: AuthorizationRequest,
  userId: string,
  allowed: Scope,
  remembered: Consent | undefined,
  now: Seconds,
  client: Pick<Client, 'published' | 'admitted'> = {},
): Consent {
  const scope = wantedScope(request)
  const terms = termsOf(client)
  const before = ofTerms(remembered, terms)
  const here = request.resource.map((resource) => {
    const kept = allowedAt(resource, before).filter((name) => !scope.includes(name))
    return { resource, scope: [...kept, ...allowed] }
  })
  const elsewhere = before?.allowed.filter(({ resource }) => !request.resource.includes(resource)) ?? []
  return {
    userId,
    clientId: request.clientId,
    allowed: [...elsewhere, ...here],
    grantedAt: now,
    ...(terms !== undefined && { terms }),
  }
}

/** Returns consent that is for these terms. */
function ofTerms(consent: Consent | undefined, terms: Hash | undefined): Consent | undefined {
  return consent?.terms === terms ? consent : undefined
}

/** The terms a consent is tied to, for clients that describe themselves. */
function termsOf({ published, admitted }: Pick<Client, 'published' | 'admitted'>): Hash | undefined {
  return published?.terms ?? admitted?.terms
}

/**
 * Asks a user who can satisfy a requested context class for it, once. Without a page, or for a user who cannot, a
 * voluntary class is ignored (OpenID Connect Core §3.1.2.1) and an essential one rejected (§5.5.1.1).
 */
function contextStep(
  { acr, prompt }: SignInRequest,
  { methods }: Session,
  authenticatedHere: boolean,
  availableAcrs: readonly string[],
): 'login' | 'reject' | 'respond' {
  if (acr === undefined || !lacksAcr(methods, acr)) return 'respond'
  const mayAsk = !authenticatedHere && (acr.essential || !prompt.includes('none'))
  if (mayAsk && acr.values.some((name) => availableAcrs.includes(name))) return 'login'
  return acr.essential ? 'reject' : 'respond'
}

function needsConsent(request: AuthorizationRequest, client: Client, consent: Consent | undefined): boolean {
  const needs = consentRule(request, client)
  // RFC 8252 §8.6: the identity of a client that registered itself is not assured, so it asks every time.
  return needs === 'remembered' ? newScope(request, client, consent).length > 0 : needs === 'asked'
}

function newScope(request: AuthorizationRequest, client: Client, consent: Consent | undefined): Scope {
  const known = ofTerms(consent, termsOf(client))
  const isAllowed = (name: string) =>
    request.resource.every((resource) => allowedAt(resource, known).includes(name))
  return wantedScope(request).filter((name) => !isAllowed(name))
}

function allowedAt(resource: string, consent: Consent | undefined): Scope {
  return consent?.allowed.find((entry) => entry.resource === resource)?.scope ?? []
}
