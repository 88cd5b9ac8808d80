import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { factorsOf } from '../../users/factors.ts'
import type { CounterChange } from '../../users/rules/attempts.ts'
import { secondStepOf } from '../../users/rules/second-factor.ts'
import { findByLogin, type TypedLogin } from '../../users/search.ts'
import { changeCounters, passwordAttempts } from '../../users/throttling.ts'
import { assertOwnForm } from '../forms.ts'
import { msg } from '../i18n/i18n.ts'
import { accountChooser } from './choose-account.ts'
import { enrolmentPage } from './enrol.ts'
import { comeBack, loginForms, mustConfirm } from './login-forms.ts'
import { passkeyProof } from './passkey-proof.ts'
import { type ContinueFlow, clientOf, type Pending, pendingLoader } from './pending.ts'
import { secondStep } from './second-step.ts'
import { type LoginProof, sessionStarter } from './start-session.ts'

/** Serves the sign-in and the choice of an account, OpenID Connect Core §3.1.2.3. */
export function loginPage(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'checkPassword'>,
  continueFlow: ContinueFlow,
): void {
  const { store } = deps
  const load = pendingLoader(app, deps)
  const checkPassword = passwordAttempts(app, deps)
  const startSession = sessionStarter(app, deps)
  const forms = loginForms(app, deps)
  const chooser = accountChooser(app, deps, forms)
  const enrolment = enrolmentPage(deps, forms)
  const provePasskey = passkeyProof(deps, forms)
  const second = secondStep(app, deps, forms, provePasskey)

  app.get('/login', { schema: { hide: true } }, async (request, reply) => {
    const pending = await load(request.query, reply)
    const { step, session, sent } = pending
    if (single(sent, 'another') !== undefined) return forms.showLogin(pending)
    const switching = single(sent, 'switch') !== undefined
    if (!switching && step === 'enrol') return enrolment.show(pending)
    if (!switching && step !== 'login' && step !== 'select_account') return continueFlow(pending)
    const user = switching ? undefined : await app.shortcuts?.signsIn(pending.request)
    if (user !== undefined) return finish(pending, withPassword(user))
    const pendingFactor = switching ? undefined : await second.pendingFactorOf(pending)
    if (pendingFactor !== undefined) {
      return second.show(pending, pendingFactor, { recovery: single(sent, 'recovery') !== undefined })
    }
    const chooses = step === 'select_account' || switching || session === undefined
    if (chooses && (step === 'select_account' || (await chooser.hasOthers(pending))))
      return chooser.show(pending)
    const { loginHint } = pending.request
    const username = loginHint ?? (switching ? undefined : await nameToConfirm(pending))
    return forms.showLogin(pending, { username })
  })

  app.post('/login', { config: { limit: 'signIn' }, schema: { hide: true } }, async (request, reply) => {
    const username = single(parametersOf(request.body), 'username') ?? ''
    const [pending, typed] = await Promise.all([load(request.body, reply), findByLogin(store, username)])
    const { sent } = pending
    assertOwnForm(sent, forms.csrfOf(pending), forms.pageUrl(pending))
    const [chosen, decision] = [single(sent, 'account'), single(sent, 'decision')]
    if (chosen !== undefined) return chooser.choose(pending, chosen)
    const user = await listed(single(sent, 'as'))
    if (user !== undefined) return finish(pending, withPassword(user))
    if (decision === 'later') return enrolment.postpone(pending)
    if (decision === 'switch') return reply.redirect(`${forms.pageUrl(pending)}&another=1`, 303)
    if (single(sent, 'step') === 'second') return bySecondFactor(pending)
    return decision === 'passkey' ? byPasskey(pending) : byPassword(pending, typed, username)
  })

  /** An unknown user takes as long as a wrong password, and both look the same. */
  const byPassword = async (pending: Pending, typed: TypedLogin, username: string) => {
    const { sent, reply, now } = pending
    const { user } = typed
    const password = single(sent, 'password') ?? ''
    let counters: CounterChange | undefined
    try {
      counters = await checkPassword(reply.request, { ...typed, user, password }, now)
    } catch (error) {
      return forms.showLogin(pending, { username, ...comeBack(error, pending) })
    }
    if (user === undefined || counters === undefined) {
      // Without the typed name: users type their password into that field.
      const who = { ...clientOf(pending), ...(user && { userId: user.id }) }
      await store.write(auditEvent('sign-in-failed', userContext(reply.request, now), who))
      return forms.reject(pending, msg('login.wrong'), username)
    }
    if (user.lockedAt !== undefined) {
      await changeCounters(store, counters)
      return forms.reject(pending, msg('login.locked'), username)
    }
    if (secondStepOf(await factorsOf(deps, user.id), pending.request.acr) !== undefined) {
      await changeCounters(store, counters)
      await second.begin(pending, user)
      return reply.redirect(forms.pageUrl(pending), 303)
    }
    if (await startSession(pending, { ...withPassword(user), counters })) return forms.continueFlow(pending)
    return forms.reject(pending, msg('login.wrong'), username)
  }

  const bySecondFactor = async (pending: Pending) => {
    const pendingFactor = await second.pendingFactorOf(pending)
    // It has expired, or a factor was changed: the redirect leads to the page that is next now.
    if (pendingFactor === undefined) return pending.reply.redirect(forms.pageUrl(pending), 303)
    const proof = await second.prove(pending, pendingFactor)
    return proof === undefined ? pending.reply : finish(pending, proof)
  }

  const byPasskey = async (pending: Pending) => {
    const shown = await provePasskey(pending)
    const { challenge: _, ...interaction } = pending.interaction
    const again = { ...pending, interaction }
    if (!('passkey' in shown)) return forms.reject(again, shown)
    const { passkey, user, ownerChecked } = shown
    if (user.lockedAt !== undefined) return forms.reject(again, msg('login.locked'))
    const methods = methodsOf({ password: false, codes: false, passkey: true }, ownerChecked)
    return finish(again, { user, methods, passkeyId: passkey.id })
  }

  const finish = async (pending: Pending, proof: LoginProof) =>
    (await startSession(pending, proof))
      ? forms.continueFlow(pending)
      : forms.reject(pending, msg('login.changed'))

  /** Returns the user whose button was pressed on a development server. */
  const listed = async (username: string | undefined): Promise<User | undefined> =>
    username === undefined
      ? undefined
      : (await app.shortcuts?.users())?.find((user) => user.username === username)

  /** Returns the name of a user who has to authenticate again, for the form; they may change it. */
  const nameToConfirm = async (pending: Pending): Promise<string | undefined> => {
    if (pending.session === undefined || !mustConfirm(pending)) return undefined
    return (await store.find('user', pending.session.userId))?.username
  }
}

/** A password, or a shortcut that counts as one. */
function withPassword(user: User): LoginProof {
  return { user, methods: methodsOf({ password: true, codes: false, passkey: false }) }
}
