import type { Remedy } from '../../domain/interaction.ts'
import type { Needs } from '../../feature/deps.ts'
import { displayName, type NamedUser } from '../describe.ts'
import type { LoginForms, SignInModel } from './login-forms.ts'
import { changeInteraction, interactionExpired, type Pending } from './pending.ts'

declare module '../pages.ts' {
  interface Pages {
    enrol: SignInModel &
      Pick<Remedy, 'kind' | 'from'> & {
        readonly user: NamedUser
        /** Signs in as another user. */
        readonly anotherUrl: string
        /** Where the factors are set up; absent: not here. */
        readonly passkeysUrl?: string
        readonly codesUrl?: string
      }
  }
}

/** The page for a user who lacks the factor that a policy requires, or will: it leads to where they set it up. */
export function enrolmentPage({ service, store }: Needs<'store' | 'service'>, forms: LoginForms) {
  const { prefix, relyingParty } = service
  return {
    show: async (pending: Pending) => {
      const { session, remedy, interaction, reply } = pending
      const user = await store.find('user', session?.userId ?? '')
      if (session === undefined || remedy === undefined || user === undefined) throw interactionExpired()
      const { kind, from } = remedy
      // Codes come after a password.
      const hasCodes = kind === 'second factor' && session.methods.includes('pwd')
      return reply.page('enrol', {
        ...forms.frameOf(pending),
        kind,
        ...(from !== undefined && { from }),
        user: displayName(user),
        anotherUrl: `${forms.pageUrl(pending)}&another=1`,
        ...(relyingParty && { passkeysUrl: `${prefix}/account/passkeys?for=${interaction.id}` }),
        ...(hasCodes && { codesUrl: `${prefix}/account/one-time-codes?for=${interaction.id}` }),
      })
    },

    /** Continues without the factor, if it is not required yet. */
    postpone: async (pending: Pending) => {
      if (pending.remedy?.from !== undefined)
        await changeInteraction(store, pending, (current) => ({ ...current, enrolsLater: true }))
      return forms.continueFlow(pending)
    },
  }
}
