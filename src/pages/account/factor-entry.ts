import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { methodsOf, multiFactor } from '../../domain/authentication-context.ts'
import { accept } from '../../domain/decision.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { recentSeconds } from '../../users/rules/session.ts'
import { whileSignedIn } from '../../users/while-signed-in.ts'
import { ownPages, type Submission, type Visit } from '../own-pages.ts'
import type { AccountSection } from './models.ts'

/**
 * The way to what a user signs in with: by a sign-in of the last minutes, and by one with a second factor for who
 * has one. Otherwise a password or an open browser would suffice to take over the account.
 */
export function factorEntry(
  app: FastifyInstance,
  deps: AppDeps,
  page: string,
  section: AccountSection = 'security',
) {
  const { visit, submission, back } = ownPages(app, deps)
  const entry = { section, recent: true } as const

  const isProven = async ({ session }: Visit, reply: FastifyReply, back: string): Promise<boolean> => {
    const acr = { values: [multiFactor], essential: false }
    const wanted = { page: back, prompt: [], maxAgeSeconds: recentSeconds, acr }
    const availableAcrs = await loadAvailableAcrs(deps, wanted, session)
    if (!availableAcrs.includes(multiFactor)) return true
    await reply.startInteraction(wanted, 'login')
    return false
  }

  return {
    visit: async (request: FastifyRequest, reply: FastifyReply): Promise<Visit | undefined> => {
      const here = await visit(request, reply, entry)
      return here !== undefined && (await isProven(here, reply, page)) ? here : undefined
    },
    submission: async (request: FastifyRequest, reply: FastifyReply): Promise<Submission | undefined> => {
      const here = await submission(request, reply, entry)
      return here !== undefined && (await isProven(here, reply, `${page}?done=again`)) ? here : undefined
    },
    back,
    stepUp: stepUp(app, deps),
  }
}

/**
 * Adds a new factor to the session, as if it had been used at the sign-in: under
 * another identifier, as every session that becomes more. One that was ended in the meantime stays so.
 */
function stepUp(app: FastifyInstance, { store }: Pick<AppDeps, 'store'>) {
  return async ({ session, now }: Visit, factor: 'codes' | 'passkey', reply: FastifyReply): Promise<void> => {
    const { secret, id } = app.browser.mintSession()
    const shown = {
      password: session.methods.includes('pwd'),
      codes: factor === 'codes' || session.methods.includes('otp'),
      passkey: factor === 'passkey' || session.methods.includes('pop'),
    }
    // A passkey is made only where the device made sure who holds it.
    const methods = methodsOf(shown, shown.passkey)
    const signedIn = await app.browser.sessions(reply.request, now)
    const renamed = { op: 'replaceSession', sessionId: session.id, by: id, methods } as const
    // What ends the sessions of a user decides about the user: so does this, and waits for it.
    const isMore = await whileSignedIn(store, session, () =>
      store.transact('user', session.userId, () => accept(undefined, renamed)),
    )
    const beside = signedIn.filter((other) => other.id !== session.id)
    if (isMore) app.browser.keepSession(reply, secret, beside)
  }
}
