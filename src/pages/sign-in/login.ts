import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Seconds, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import { recordRejection } from '../../http/errors.ts'
import { assertForm, parametersOf } from '../../http/parameters.ts'
import { factorsOf } from '../../users/factors.ts'
import { secondStepOf } from '../../users/rules/second-factor.ts'
import { forged } from '../forgery.ts'
import { msg } from '../i18n/catalogue.ts'
import { accountChooser } from './choose-account.ts'
import { comeBack, loginForms, mustConfirm } from './login-forms.ts'
import { passkeyProof } from './passkey-proof.ts'
import { type ContinueFlow, clientOf, type Pending, pendingLoader } from './pending.ts'
import { secondStep } from './second-step.ts'
import { passwordSignIn } from './sign-in.ts'
import { type LoginProof, sessionStarter } from './start-session.ts'

/** Sign-in and the choice of an account, OpenID Connect Core §3.1.2.3. */
export function loginPage(app: FastifyInstance, deps: AppDeps, continueFlow: ContinueFlow): void {
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
    if (!switching && step !== 'login' && step !== 'select_account') return continueFlow(pending, reply)
    const person = switching ? undefined : await app.shortcuts?.signsIn(pending.request)
    if (person !== undefined) return finish(pending, byNothing(person), reply, now)
    const pendingFactor = switching ? undefined : await second.pendingFactorOf(pending, now)
    if (pendingFactor !== undefined) {
      return second.show(pending, pendingFactor, reply, { recovery: single(query, 'recovery') !== undefined })
    }
    const chooses = step === 'select_account' || switching || session === undefined
    if (chooses && (step === 'select_account' || (await chooser.hasOthers(pending, request))))
      return chooser.show(pending, reply)
    const { loginHint } = pending.request
    const username = loginHint ?? (switching ? undefined : await nameToConfirm(pending))
    return forms.showLogin(pending, reply, { username })
  })

  app.post(
    '/login',
    { config: { limit: 'signIn' }, schema: { hide: true }, preValidation: assertForm },
    async (request, reply) => {
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
    },
  )

  const byPassword = async (
    pending: Pending,
    form: Parameters,
    request: FastifyRequest,
    reply: FastifyReply,
    now: Seconds,
  ) => {
    const [username, password] = [single(form, 'username') ?? '', single(form, 'password') ?? '']
    let user: User | undefined
    try {
      user = await signIn(request, { username, password, ...clientOf(pending) }, now)
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      recordRejection(error, reply)
      reply.headers(error.headers)
      return forms.showLogin(pending, reply, {
        username,
        problem: comeBack(error, pending),
        status: error.status,
      })
    }
    if (user === undefined) return forms.reject(pending, reply, wrongPassword, username)
    if (user.lockedAt !== undefined) return forms.reject(pending, reply, msg('login.locked'), username)
    if (secondStepOf(await factorsOf(deps, user.id), pending.request.acr) !== undefined) {
      await second.begin(pending, user, now)
      return reply.redirect(forms.pageUrl(pending), 303)
    }
    const proof = { user, methods: methodsOf({ password: true, codes: false, passkey: false }) }
    if (await startSession(pending, proof, reply, now)) return forms.continueFlow(pending, reply)
    return forms.reject(pending, reply, wrongPassword, username)
  }

  const bySecondFactor = async (pending: Pending, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const pendingFactor = await second.pendingFactorOf(pending, now)
    // It took too long, or something of it changed: the page that comes then says where things stand.
    if (pendingFactor === undefined) return reply.redirect(forms.pageUrl(pending), 303)
    const proof = await second.check(pending, pendingFactor, form, reply)
    return proof === undefined ? reply : finish(pending, proof, reply, now)
  }

  const byPasskey = async (pending: Pending, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const shown = await provePasskey(pending, form, reply, now)
    const again = { ...pending, interaction: withoutChallenge(pending) }
    if (!('passkey' in shown)) return forms.reject(again, reply, shown)
    const { passkey, user, ownerChecked } = shown
    if (user.lockedAt !== undefined) return forms.reject(again, reply, msg('login.locked'))
    const methods = methodsOf({ password: false, codes: false, passkey: true }, ownerChecked)
    return finish(again, { user, methods, passkeyId: passkey.id }, reply, now)
  }

  const finish = async (pending: Pending, proof: LoginProof, reply: FastifyReply, now: Seconds) =>
    (await startSession(pending, proof, reply, now))
      ? forms.continueFlow(pending, reply)
      : forms.reject(pending, reply, msg('login.changed'))

  /** The user whose button was pressed on a development server. */
  const listed = async (username: string | undefined): Promise<User | undefined> =>
    username === undefined
      ? undefined
      : (await app.shortcuts?.people())?.find((person) => person.username === username)

  /** Fills in the login of a user who has to authenticate again; they may still change it. */
  const nameToConfirm = async (pending: Pending): Promise<string | undefined> => {
    if (pending.session === undefined || !mustConfirm(pending)) return undefined
    return (await store.find('user', pending.session.userId))?.username
  }
}

function withoutChallenge({ interaction }: Pending) {
  const { challenge: _, ...rest } = interaction
  return rest
}

/** As if the password had been typed. */
function byNothing(user: User): LoginProof {
  return { user, methods: methodsOf({ password: true, codes: false, passkey: false }) }
}

const wrongPassword = msg('login.wrong')
