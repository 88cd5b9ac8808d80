import type { FastifyInstance } from 'fastify'
import { clientWords } from '../../domain/localized.ts'
import type { AuditEvent, AuditEventName, Seconds } from '../../domain/model.ts'
import type { Text, Value } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { ago, placeOf } from '../describe.ts'
import { type Key, msg } from '../i18n/i18n.ts'
import { type AccountModel, type AccountPage, sectionPath } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-activity': AccountModel & {
      /** Newest first. */
      readonly events: readonly {
        readonly at: Seconds
        readonly agoSeconds: Seconds
        readonly what: Text
        readonly from?: Text
      }[]
      /** Where older events can be downloaded; absent where there are none. */
      readonly copyUrl?: string
    }
  }
}

/** At most this many events; the rest is in the download. */
const shown = 50

/** Shows the events of an account from the audit log, newest first. */
export function activityPage(app: FastifyInstance, { service, store }: PageDeps): AccountPage {
  const clientNames = async (events: readonly AuditEvent[], language: string) => {
    const ids = new Set(events.flatMap(({ clientId }) => clientId ?? []))
    const clients = await Promise.all([...ids].map((id) => app.resolveClient(id)))
    return new Map(
      clients.flatMap((client) => (client ? [[client.id, clientWords(client, language).name]] : [])),
    )
  }

  return {
    path: '/account/activity',
    section: 'activity',
    show: async ({ user, now, request, render }) => {
      const events = await store.audit({ since: 0, userId: user.id, limit: shown + 1 })
      const names = await clientNames(events, request.language)
      const describe = (event: AuditEvent) => {
        const { at, by, from: prefix, clientId = '' } = event
        const from = by === 'operator' ? undefined : placeOf(prefix, request, service)
        const what = sentenceOf(event, names.get(clientId))
        return { at, agoSeconds: ago(at, now), what, ...(from && { from }) }
      }
      return render('account-activity', {
        events: events.slice(-shown).map(describe).reverse(),
        ...(events.length > shown && { copyUrl: service.prefix + sectionPath('privacy') }),
      })
    },
  }
}

/** Returns an event as a sentence for users. */
export function sentenceOf(event: AuditEvent, clientName?: string): Text {
  const { name, clientId } = event
  const sentence = sentences[name as OfUser] // undefined for the others
  if (sentence === undefined) return msg('activity.other', { event: { code: name } })
  const app: Value = clientName ?? { code: clientId ?? '' }
  const key = typeof sentence === 'string' ? sentence : sentence(event)
  return msg(key, {
    app,
    group: `${event.facts['name'] ?? ''}`,
    upstream: `${event.facts['upstream'] ?? ''}`,
  })
}

/** The events that a user can still read about. */
type OfUser = Exclude<
  AuditEventName,
  | 'user-removed'
  | 'registration'
  | `group-${'created' | 'changed' | 'deleted'}`
  | `upstream-${'added' | 'changed' | 'deleted'}`
  | `${'key' | 'store' | 'client' | 'registration' | 'scope' | 'resource'}-${string}`
>

const sentences: Readonly<Record<OfUser, Key | ((event: AuditEvent) => Key)>> = {
  'sign-in': ({ clientId }) => (clientId === undefined ? 'activity.signIn' : 'activity.signInFor'),
  'sign-in-failed': 'activity.signInFailed',
  'sign-out': 'activity.signOut',
  consent: 'activity.consent',
  'consent-refused': 'activity.consentRefused',
  grant: 'activity.grant',
  revocation: revocationSentence,
  'user-added': 'activity.added',
  'user-invited': 'activity.invited',
  'user-changed': bySelf('activity.profile', 'activity.profileByOperator'),
  'user-exported': 'activity.exported',
  'user-email-verified': 'activity.emailVerified',
  'user-password-changed': bySelf('activity.password', 'activity.passwordByOperator'),
  'user-locked': 'activity.locked',
  'user-unlocked': 'activity.unlocked',
  'personal-token-made': 'activity.tokenMade',
  'personal-token-revoked': 'activity.tokenRevoked',
  'link-made': bySelf('activity.link', 'activity.linkByOperator'),
  'link-deleted': 'activity.linkDeleted',
  'email-tested': 'activity.emailTested',
  'session-ended': sessionSentence,
  'passkey-added': 'activity.passkeyAdded',
  'passkey-removed': 'activity.passkeyRemoved',
  'passkeys-removed': bySelf('activity.passkeyRemoved', 'activity.passkeysRemovedByOperator'),
  'passkey-copied': 'activity.passkeyCopied',
  'recovery-codes-made': 'activity.recoveryCodes',
  'recovery-code-used': 'activity.recoveryCodeUsed',
  'group-member-added': 'activity.groupAdded',
  'group-member-removed': 'activity.groupRemoved',
  'upstream-linked': 'activity.upstreamLinked',
  'upstream-unlinked': 'activity.upstreamUnlinked',
  'second-factor-added': 'activity.codesAdded',
  'second-factor-removed': bySelf('activity.codesRemoved', 'activity.codesRemovedByOperator'),
}

function bySelf(user: Key, operator: Key): (event: AuditEvent) => Key {
  return ({ by }) => (by === 'operator' ? operator : user)
}

function sessionSentence({ by, facts }: AuditEvent): Key {
  if (by === 'operator') return 'activity.sessionEndedByOperator'
  return facts['which'] === 'all' ? 'activity.signedOutEverywhere' : 'activity.sessionEnded'
}

function revocationSentence({ by, clientId }: AuditEvent): Key {
  switch (by) {
    case 'user':
      return 'activity.revokedByUser'
    case 'client':
      return 'activity.revokedByClient'
    case 'server':
      return 'activity.revokedByServer'
    case 'operator':
      return clientId === undefined ? 'activity.everyRevokedByOperator' : 'activity.revokedByOperator'
  }
}
