import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { addressPrefix } from '../domain/address-prefix.ts'
import { auditEvent } from '../domain/audit.ts'
import { accept } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { clientWords } from '../domain/localized.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import { present } from '../domain/present.ts'
import { isSameText } from '../domain/secret.ts'
import { beginSession } from '../domain/session.ts'
import type { Text } from '../domain/text.ts'
import { browserName } from '../http/browser-name.ts'
import { noteRefusal } from '../http/errors.ts'
import { forged } from '../http/forgery.ts'
import { assertForm, parametersOf } from '../http/parameters.ts'
import { says } from '../texts/catalogue.ts'
import { ended, formActionOf, type GoOn, type Pending, pendingLoader } from './pending.ts'
import { passwordSignIn } from './sign-in.ts'

/** Sign-in and the choice of an account, OpenID Connect Core §3.1.2.3. */
export function loginPage(app: FastifyInstance, deps: AppDeps, goOn: GoOn): void {
  const { config, service, store, clock } = deps
  const load = pendingLoader(app, deps)
  const signIn = passwordSignIn(app, deps)
  const action = `${service.prefix}/login`

  app.get('/login', { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    const pending = await load(request, single(query, 'interaction'), clock())
    const switching = single(query, 'switch') !== undefined
    if (pending.step !== 'login' && pending.step !== 'select_account' && !switching)
      return goOn(pending, reply)
    if (pending.step === 'select_account' && !switching) return showAccounts(pending, reply)
    const { loginHint } = pending.request
    const asked = loginHint ?? (switching ? undefined : await nameToConfirm(pending))
    return showLogin(pending, reply, { username: asked })
  })

  app.post('/login', { schema: { hide: true }, preValidation: assertForm }, async (request, reply) => {
    const form = parametersOf(request.body)
    const now = clock()
    const pending = await load(request, single(form, 'interaction'), now)
    const decision = single(form, 'decision')
    const chooses = decision === 'continue' || decision === 'switch'
    const csrf = chooses ? csrfOfChoice(pending) : csrfOf(pending)
    if (!isSameText(single(form, 'csrf'), csrf)) throw forged(pageUrl(pending))
    if (decision === 'continue') return continueWithSession(pending, reply)
    if (decision === 'switch') return reply.redirect(`${pageUrl(pending)}&switch=1`, 303)
    const [username, password] = [single(form, 'username') ?? '', single(form, 'password') ?? '']
    const account = await attempt(pending, request, reply, { username, password }, now)
    if (account === undefined) return reply
    const isKept = await replaceSession(pending, account, reply, now)
    if (!isKept) return showLogin(pending, reply, { username, problem: wrongPassword, status: 400 })
    return reply.redirect(nextUrl(pending), 303)
  })

  /** The account, or undefined after the page was shown again with what is wrong. */
  const attempt = async (
    pending: Pending,
    request: FastifyRequest,
    reply: FastifyReply,
    { username, password }: { readonly username: string; readonly password: string },
    now: Seconds,
  ): Promise<Account | undefined> => {
    try {
      const credentials = { username, password, ...clientOf(pending) }
      const account = await signIn(request, reply, credentials, now)
      if (account === undefined) {
        const refusal = notSignedIn()
        noteRefusal(refusal, reply)
        showLogin(pending, reply, { username, problem: wrongPassword, status: refusal.status })
      }
      return account
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      noteRefusal(error, reply)
      reply.headers(error.headers)
      showLogin(pending, reply, { username, problem: comeBack(error), status: error.status })
      return undefined
    }
  }

  /**
   * A new session identifier at every sign-in; the old session of this browser ends. False, and no session, when the
   * password was changed after it was checked: that ended every session, and this one would outlive it.
   */
  const replaceSession = async (
    pending: Pending,
    account: Account,
    reply: FastifyReply,
    now: Seconds,
  ): Promise<boolean> => {
    const { secret, id } = app.browser.mintSession()
    const { ip, headers } = reply.request
    const browser = await browserName(headers['user-agent'])
    const place = { from: addressPrefix(ip), ...(browser !== undefined && { browser }) }
    const session = beginSession(id, account.id, ['pwd'], config.lifetimes, now, place)
    const old = pending.session
    await store.transact('interaction', pending.interaction.id, (current) => {
      if (current === undefined) throw ended()
      const interaction = { ...current, authenticatedSessionId: id, accountChosen: true }
      const writes = [
        { op: 'insertSession', session },
        { op: 'updateInteraction', interaction },
      ] as const
      return accept(
        undefined,
        ...writes,
        ...(old ? [{ op: 'deleteSession', sessionId: old.id } as const] : []),
      )
    })
    const told = (name: 'sign-in' | 'sign-in-failed') =>
      auditEvent(name, { by: 'person', at: now, from: ip }, { accountId: account.id, ...clientOf(pending) })
    const isKept = await store.transact('account', account.id, (current) =>
      current?.passwordHash === account.passwordHash
        ? accept(true, told('sign-in'))
        : accept(false, { op: 'deleteSession', sessionId: id }, told('sign-in-failed')),
    )
    if (isKept) app.browser.keepSession(reply, secret)
    return isKept
  }

  const continueWithSession = async (pending: Pending, reply: FastifyReply) => {
    if (pending.session === undefined) return reply.redirect(pageUrl(pending), 303)
    await store.transact('interaction', pending.interaction.id, (current) => {
      if (current === undefined) throw ended()
      return accept(undefined, { op: 'updateInteraction', interaction: { ...current, accountChosen: true } })
    })
    return reply.redirect(nextUrl(pending), 303)
  }

  /** Whoever has to prove it again should not have to type who they are; they still may. */
  const nameToConfirm = async (pending: Pending): Promise<string | undefined> => {
    if (pending.session === undefined || !mustConfirm(pending)) return undefined
    return (await store.find('account', pending.session.accountId))?.username
  }

  const nextUrl = ({ interaction }: Pending) => `${service.prefix}/consent?interaction=${interaction.id}`
  const pageUrl = ({ interaction }: Pending) => `${action}?interaction=${interaction.id}`
  const csrfOf = ({ browserSecret, interaction }: Pending) =>
    app.browser.csrfToken(browserSecret, 'login', interaction.id)
  /** Bound to the login too: the account on the page is the one that is chosen. */
  const csrfOfChoice = ({ browserSecret, interaction, session }: Pending) =>
    app.browser.csrfToken(browserSecret, 'account', interaction.id, session?.id ?? '')
  const hiddenOf = (pending: Pending) => ({ interaction: pending.interaction.id, csrf: csrfOf(pending) })
  const nameOf = ({ client }: Pending, { request }: FastifyReply) =>
    client ? present({ clientName: clientWords(client, request.language).name }) : {}

  const showLogin = (
    pending: Pending,
    reply: FastifyReply,
    shown: { readonly username: string | undefined; readonly problem?: Text; readonly status?: number },
  ) => {
    const { username, problem, status = 200 } = shown
    const model = {
      action,
      hidden: hiddenOf(pending),
      ...nameOf(pending, reply),
      ...(username !== undefined && { username }),
      ...(problem !== undefined && { problem }),
      again: mustConfirm(pending),
    }
    return reply.page('login', model, { status, ...formActionOf(pending) })
  }

  const showAccounts = async (pending: Pending, reply: FastifyReply) => {
    const account = pending.session && (await store.find('account', pending.session.accountId))
    if (account === undefined) return showLogin(pending, reply, { username: undefined })
    const name = String(account.claims['name'] ?? account.username)
    const model = {
      action,
      hidden: { interaction: pending.interaction.id, csrf: csrfOfChoice(pending) },
      ...nameOf(pending, reply),
      account: { name, username: account.username },
    }
    return reply.page('select-account', model, formActionOf(pending))
  }
}

/** The client that asks for the sign-in; a page of the person's own has none. */
function clientOf({ client }: Pending): { readonly clientId?: string } {
  return client === undefined ? {} : { clientId: client.id }
}

/** Somebody is signed in and has to prove it again, rather than somebody else being asked for. */
function mustConfirm({ session, step, request }: Pending): boolean {
  const { requiredSub } = request
  return step === 'login' && session !== undefined && (requiredSub ?? session.accountId) === session.accountId
}

/** For the log: the page has its own words. */
function notSignedIn(): OAuthError {
  return new OAuthError('access_denied', 'the user name and the password do not belong together', {
    rule: 'lychgate-password',
    status: 400,
  })
}

function comeBack({ status, headers }: OAuthError): Text {
  if (status !== 429) return says('login.busy')
  return says('login.throttled', { later: { in: Number(headers['retry-after']) } })
}

const wrongPassword = says('login.wrong')
