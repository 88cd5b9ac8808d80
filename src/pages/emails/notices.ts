/**
 * Emails to users about what happened to their account. They follow from the audit events of a committed transaction,
 * so that no door is forgotten: page, link, admin API, admin page or command.
 */
import type { Config } from '../../config/schema.ts'
import type { Write } from '../../domain/decision.ts'
import type { AuditEvent, AuditEventName, User } from '../../domain/model.ts'
import { MailFailed, sendEmail, senderOf } from '../../outbound/mailer.ts'
import type { Store } from '../../storage/store.ts'
import { countEmail, emailBucket, throttleKind } from '../../users/rules/throttle.ts'
import { browserName } from '../../users/sessions.ts'
import { composeNotice, type NoticeKind } from './emails.ts'

const kinds: Readonly<Partial<Record<AuditEventName, NoticeKind>>> = {
  'user-password-changed': 'password',
  'second-factor-added': 'codes',
  'second-factor-removed': 'codes',
  'recovery-codes-made': 'codes',
  'passkey-added': 'passkey',
  'passkey-removed': 'passkey',
  'passkeys-removed': 'passkey',
  'personal-token-made': 'token',
  'upstream-linked': 'upstream',
  'upstream-unlinked': 'upstream',
}

/** Returns what an event means to its user; undefined for events without an email. */
export function noticeOf({ name, facts }: AuditEvent): NoticeKind | undefined {
  if (name === 'user-changed')
    return `${facts['changed'] ?? ''}`.split(' ').includes('email') ? 'address' : undefined
  // Their first password or passkey: it ends the link.
  if (facts['link'] === 'invitation' || facts['link'] === 'first-user') return undefined
  if (name === 'sign-in') return facts['browser'] === 'new' ? 'browser' : undefined
  return kinds[name]
}

/** A store whose changes are announced to users. */
export interface Notices {
  readonly store: Store
  /** Waits until the emails so far are sent, or have failed. */
  settled(): Promise<void>
}

/**
 * Returns a store that emails users after each commit that concerns them; undefined where no email can be sent, or none
 * is wanted. An email that fails is a line of the log, and nothing waits for it.
 */
export function announcing(
  config: Config,
  store: Store,
  log: (line: string) => void,
  trace: <T>(work: () => Promise<T>) => Promise<T> = (work) => work(),
): Notices | undefined {
  const sender = senderOf(config)
  if (sender === undefined || config.mail.notices === 'off') return undefined
  const underWay = new Set<Promise<void>>()

  const deliver = async (events: readonly AuditEvent[], before: User | undefined): Promise<void> => {
    const [{ userId = '', at, by, userAgent }] = events as [AuditEvent] // at least one
    const notices = [...new Set(events.flatMap((event) => noticeOf(event) ?? []))]
    const user = await store.find('user', userId)
    if (user === undefined) return
    if (notices[0] === 'browser') {
      const key = `new browsers of ${userId}`
      const isDue = await store.transact(throttleKind, emailBucket(key), (row) => countEmail(row, key, at))
      if (!isDue) return
    }
    const browser = by === 'user' ? await browserName(userAgent) : undefined
    // The previous address has an email already, with a link that undoes the user's own change (app.emails).
    const isAnnounced = by === 'user' && !notices.includes('password')
    const former = notices.includes('address') && !isAnnounced ? before?.email : undefined
    for (const to of new Set([user.email, former])) {
      if (to === undefined) continue
      const email = composeNotice(config, { notices, user, to, at, by, browser })
      await sendEmail(sender, email).catch((error: unknown) => {
        log(error instanceof MailFailed ? error.message : `an email about ${notices.join(', ')}: ${error}`)
      })
    }
  }

  const tell = (writes: readonly Write[], result?: unknown): void => {
    const events = writes.flatMap((write) =>
      write.op === 'insert' && write.kind === 'auditEvent' && noticeOf(write.record) ? [write.record] : [],
    )
    if (events.length === 0) return
    for (const [userId, own] of Map.groupBy(events, (event) => event.userId)) {
      const before = userIn(result)
      const running = trace(() => deliver(own, before?.id === userId ? before : undefined))
        .catch((error: unknown) => log(`an email could not be sent: ${error}`))
        .finally(() => underWay.delete(running))
      underWay.add(running)
    }
  }

  return {
    store: {
      ...store,
      transact: async (kind, key, decide) => {
        let [writes, before]: [readonly Write[], unknown] = [[], undefined]
        const result = await store.transact(kind, key, (found) => {
          const decision = decide(found)
          ;[writes, before] = [decision.writes, found]
          return decision
        })
        tell(writes, before)
        return result
      },
      write: async (...writes) => {
        await store.write(...writes)
        tell(writes)
      },
    },
    settled: async () => void (await Promise.all(underWay)),
  }
}

/** Returns the user of what a transaction found: a user, or one with their credentials. */
function userIn(result: unknown): User | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  const record = 'user' in result ? result.user : result
  const isUser = typeof record === 'object' && record !== null && 'username' in record
  return isUser ? (record as User) : undefined // nothing else has a user name
}
