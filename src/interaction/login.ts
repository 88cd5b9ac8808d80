import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { factorsOf } from '../credentials/factors.ts'
import type { AppDeps } from '../deps.ts'
import { methodsOf } from '../domain/authentication-context.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { secondStepOf } from '../domain/second-factor.ts'
import { isSameText } from '../domain/secret.ts'
import { noteRefusal } from '../http/errors.ts'
import { forged } from '../http/forgery.ts'
import { assertForm, parametersOf } from '../http/parameters.ts'
import { says } from '../texts/catalogue.ts'
import { accountChooser } from './choose-account.ts'
import { comeBack, loginForms, mustConfirm } from './login-forms.ts'
import { passkeyProof } from './passkey-proof.ts'
import { clientOf, type GoOn, type Pending, pendingLoader } from './pending.ts'
import { secondStep } from './second-step.ts'
import { passwordSignIn } from './sign-in.ts'
import { type Evidence, sessionStarter } from './start-session.ts'

/** Sign-in and the choice of an account, OpenID Connect Core §3.1.2.3. */
export function loginPage(app: FastifyInstance, deps: AppDeps, goOn: GoOn): void {
  const { store, clock } = deps
  const load = pendingLoader(app, deps)
  const signIn = passwordSignIn(app, deps)
  const startSession = sessionStarter(app, deps)
  const forms = loginForms(app, deps)
  const chooser = accountChooser(app, deps, forms)
  const provePasskey = passkeyProof(deps, forms)
  const second = secondStep(app, deps, forms, provePasskey)

  app.get('/login', { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    const now = clock()
    const pending = await load(request, single(query, 'interaction'), now)
    const { step, session } = pending
    if (single(query, 'another') !== undefined) return forms.showLogin(pending, reply)
    const switching = single(query, 'switch') !== undefined
    if (!switching && step !== 'login' && step !== 'select_account') return goOn(pending, reply)
    const person = switching ? undefined : await app.shortcuts?.signsIn(pending.request)
    if (person !== undefined) return finish(pending, byNothing(person), reply, now)
    const half = switching ? undefined : await second.halfOf(pending, now)
    if (half !== undefined) {
      return second.show(pending, half, reply, { recovery: single(query, 'recovery') !== undefined })
    }
    const chooses = step === 'select_account' || switching || session === undefined
    if (chooses && (step === 'select_account' || (await chooser.hasOthers(pending, request))))
      return chooser.show(pending, reply)
    const { loginHint } = pending.request
    const username = loginHint ?? (switching ? undefined : await nameToConfirm(pending))
    return forms.showLogin(pending, reply, { username })
  })

  app.post('/login', { schema: { hide: true }, preValidation: assertForm }, async (request, reply) => {
    const form = parametersOf(request.body)
    const now = clock()
    const pending = await load(request, single(form, 'interaction'), now)
    if (!isSameText(single(form, 'csrf'), forms.csrfOf(pending))) throw forged(forms.pageUrl(pending))
    const [chosen, decision] = [single(form, 'account'), single(form, 'decision')]
    if (chosen !== undefined) return chooser.choose(pending, chosen, reply)
    const person = await listed(single(form, 'as'))
    if (person !== undefined) return finish(pending, byNothing(person), reply, now)
    if (decision === 'switch') return reply.redirect(`${forms.pageUrl(pending)}&another=1`, 303)
    if (single(form, 'step') === 'second') return bySecondFactor(pending, form, reply, now)
    if (decision === 'passkey') return byPasskey(pending, form, reply, now)
    return byPassword(pending, form, request, reply, now)
  })

  const byPassword = async (
    pending: Pending,
    form: Parameters,
    request: FastifyRequest,
    reply: FastifyReply,
    now: Seconds,
  ) => {
    const [username, password] = [single(form, 'username') ?? '', single(form, 'password') ?? '']
    let account: Account | undefined
    try {
      account = await signIn(request, { username, password, ...clientOf(pending) }, now)
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      noteRefusal(error, reply)
      reply.headers(error.headers)
      return forms.showLogin(pending, reply, {
        username,
        problem: comeBack(error, pending),
        status: error.status,
      })
    }
    if (account === undefined) return forms.refuse(pending, reply, wrongPassword, username)
    if (account.lockedAt !== undefined) return forms.refuse(pending, reply, says('login.locked'), username)
    if (secondStepOf(await factorsOf(deps, account.id), pending.request.acr) !== undefined) {
      await second.begin(pending, account, now)
      return reply.redirect(forms.pageUrl(pending), 303)
    }
    const evidence = { account, methods: methodsOf({ password: true, codes: false, passkey: false }) }
    if (await startSession(pending, evidence, reply, now)) return forms.goOn(pending, reply)
    return forms.refuse(pending, reply, wrongPassword, username)
  }

  const bySecondFactor = async (pending: Pending, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const half = await second.halfOf(pending, now)
    // It took too long, or something of it changed: the page that comes then says where things stand.
    if (half === undefined) return reply.redirect(forms.pageUrl(pending), 303)
    const evidence = await second.check(pending, half, form, reply)
    return evidence === undefined ? reply : finish(pending, evidence, reply, now)
  }

  const byPasskey = async (pending: Pending, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const shown = await provePasskey(pending, form, reply, now)
    const again = { ...pending, interaction: withoutChallenge(pending) }
    if (!('passkey' in shown)) return forms.refuse(again, reply, shown)
    const { passkey, account, ownerChecked } = shown
    if (account.lockedAt !== undefined) return forms.refuse(again, reply, says('login.locked'))
    const methods = methodsOf({ password: false, codes: false, passkey: true }, ownerChecked)
    return finish(again, { account, methods, passkeyId: passkey.id }, reply, now)
  }

  const finish = async (pending: Pending, evidence: Evidence, reply: FastifyReply, now: Seconds) =>
    (await startSession(pending, evidence, reply, now))
      ? forms.goOn(pending, reply)
      : forms.refuse(pending, reply, says('login.changed'))

  /** Whom somebody pressed the button of, on a development server. */
  const listed = async (username: string | undefined): Promise<Account | undefined> =>
    username === undefined
      ? undefined
      : (await app.shortcuts?.people())?.find((person) => person.username === username)

  /** Whoever has to prove it again should not have to type who they are; they still may. */
  const nameToConfirm = async (pending: Pending): Promise<string | undefined> => {
    if (pending.session === undefined || !mustConfirm(pending)) return undefined
    return (await store.find('account', pending.session.accountId))?.username
  }
}

function withoutChallenge({ interaction }: Pending) {
  const { challenge: _, ...rest } = interaction
  return rest
}

/** As if the password had been typed. */
function byNothing(account: Account): Evidence {
  return { account, methods: methodsOf({ password: true, codes: false, passkey: false }) }
}

const wrongPassword = says('login.wrong')
