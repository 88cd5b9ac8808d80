import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { clientWords } from '../../domain/localized.ts'
import type { AuditEvent, AuditEventName } from '../../domain/model.ts'
import type { Text, Value } from '../../domain/text.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { type Key, msg } from '../i18n/catalogue.ts'
import { fromPlace } from '../i18n/place.ts'
import { ownPages } from '../own-pages.ts'
import { type AccountActivityPage, sectionPath } from './models.ts'

/** More than users read; the rest is in the download. */
const shown = 50

/** What happened to an account, from the audit log, newest first. */
export function ownActivity(app: FastifyInstance, deps: AppDeps): void {
  const { service, store } = deps
  const { visit } = ownPages(app, deps)

  app.get('/account/activity', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'activity' })
    if (here === undefined) return reply
    const { frame, user, now } = here
    const events = await store.audit({ since: 0, userId: user.id, limit: shown + 1 })
    const names = await clientNames(events, request.language)
    const seenFrom = addressPrefix(request.ip)
    const described = events.slice(-shown).map((event): AccountActivityPage['events'][number] => {
      const from =
        event.by === 'operator' || event.from === undefined
          ? undefined
          : fromPlace(event.from, seenFrom, !service.https)
      const what = sentenceOf(event, names.get(event.clientId ?? ''))
      return { at: event.at, agoSeconds: Math.max(1, now - event.at), what, ...(from && { from }) }
    })
    const copyUrl = service.prefix + sectionPath('privacy')
    const older = events.length > shown ? { copyUrl } : {}
    return reply.page('account-activity', { frame, events: described.reverse(), ...older })
  })

  const clientNames = async (
    events: readonly AuditEvent[],
    language: string,
  ): Promise<ReadonlyMap<string, string>> => {
    const ids = new Set(events.flatMap(({ clientId }) => (clientId === undefined ? [] : [clientId])))
    const clients = await Promise.all([...ids].map((id) => store.find('client', id)))
    return new Map(
      clients.flatMap((client) => {
        const name = client && clientWords(client, language).name
        return client && name !== undefined ? [[client.id, name] as const] : []
      }),
    )
  }
}

/** An event in a plain sentence; one that is about no user has none. */
export function sentenceOf(event: AuditEvent, clientName?: string): Text {
  const { name, clientId } = event
  const sentence = sentences[name as OfUser] // undefined for the others
  if (sentence === undefined) return msg('activity.other', { event: { code: name } })
  const app: Value = clientName ?? { code: clientId ?? '' }
  return msg(typeof sentence === 'string' ? sentence : sentence(event), { app })
}

/** What can be about a user who is there to read it. */
type OfUser = Exclude<
  AuditEventName,
  'person-removed' | 'registration' | `${'key' | 'client' | 'registration'}-${string}`
>

const sentences: Readonly<Record<OfUser, Key | ((event: AuditEvent) => Key)>> = {
  'sign-in': ({ clientId }) => (clientId === undefined ? 'activity.signIn' : 'activity.signInFor'),
  'sign-in-failed': 'activity.signInFailed',
  'sign-out': 'activity.signOut',
  consent: 'activity.consent',
  'consent-refused': 'activity.consentRefused',
  grant: 'activity.grant',
  revocation: revocationSentence,
  'person-added': 'activity.added',
  'person-invited': 'activity.invited',
  'person-changed': bySelf('activity.profile', 'activity.profileByOperator'),
  'person-exported': 'activity.exported',
  'person-email-verified': 'activity.emailVerified',
  'person-password-changed': bySelf('activity.password', 'activity.passwordByOperator'),
  'person-locked': 'activity.locked',
  'person-unlocked': 'activity.unlocked',
  'link-made': bySelf('activity.link', 'activity.linkByOperator'),
  'session-ended': bySelf('activity.sessionEnded', 'activity.sessionEndedByOperator'),
  'passkey-added': 'activity.passkeyAdded',
  'passkey-removed': 'activity.passkeyRemoved',
  'passkeys-removed': bySelf('activity.passkeyRemoved', 'activity.passkeysRemovedByOperator'),
  'passkey-copied': 'activity.passkeyCopied',
  'recovery-codes-made': 'activity.recoveryCodes',
  'recovery-code-used': 'activity.recoveryCodeUsed',
  'second-factor-added': 'activity.codesAdded',
  'second-factor-removed': bySelf('activity.codesRemoved', 'activity.codesRemovedByOperator'),
}

function bySelf(person: Key, operator: Key): (event: AuditEvent) => Key {
  return ({ by }) => (by === 'operator' ? operator : person)
}

function revocationSentence({ by, clientId }: AuditEvent): Key {
  switch (by) {
    case 'person':
      return 'activity.revokedByPerson'
    case 'client':
      return 'activity.revokedByClient'
    case 'server':
      return 'activity.revokedByServer'
    case 'operator':
      return clientId === undefined ? 'activity.everyRevokedByOperator' : 'activity.revokedByOperator'
  }
}
