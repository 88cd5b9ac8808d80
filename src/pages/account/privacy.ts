import type { FastifyInstance } from 'fastify'
import { type Attribute, attributesOf } from '../../domain/attributes.ts'
import { auditEvent } from '../../domain/audit.ts'
import { connectionsOf, consentKind } from '../../domain/connections.ts'
import { accept, removeUser } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { AuditEvent, Grant, Passkey, Seconds, Session, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { isoInstant } from '../../system/system.ts'
import { keepAdministrator, lastAdministrator } from '../../users/administrators.ts'
import { groupsOf, inOrder } from '../../users/groups.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { isSameName } from '../../users/rules/user.ts'
import { msg } from '../i18n/i18n.ts'
import { type AccountModel, type AccountPage, sectionPath, type Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-privacy': AccountModel & {
      /** Absent where only the operator deletes accounts. */
      readonly deleteUrl?: string
    }
    'account-delete': AccountModel & {
      /** What has to be typed. */
      readonly username: string
      /** The way back. */
      readonly keepUrl: string
    }
    /** Shown after the account is deleted and its user signed out. */
    'account-deleted': Readonly<Record<never, never>>
  }
}

const deletePath = '/account/delete'

/** Sends a copy of everything stored about the user. Its form needs a recent sign-in. */
export function privacyPage(app: FastifyInstance, deps: AppDeps): AccountPage {
  const { config, service, store } = deps
  const deleteUrl = config.accounts.deletion === 'on' ? { deleteUrl: service.prefix + deletePath } : {}
  return {
    path: '/account/privacy',
    section: 'privacy',
    formRequires: 'recent',
    show: ({ render }) => render('account-privacy', deleteUrl),
    submit: async ({ user, now, context, reply }) => {
      await store.write(auditEvent('user-exported', context, { userId: user.id }))
      const copy = await exportUserData(app, deps, user, now)
      return reply
        .header('content-disposition', 'attachment; filename="account.json"')
        .type('application/json; charset=utf-8')
        .send(`${JSON.stringify(copy, undefined, 2)}\n`)
    },
  }
}

/** Deletes the account of a user who types their name. */
export function deletePage(app: FastifyInstance, { config, service, store }: AppDeps): AccountPage {
  const keepUrl = service.prefix + sectionPath('privacy')
  const show = ({ user: { username }, render }: Visit, problem?: Text) =>
    render('account-delete', { username, keepUrl }, problem)
  return {
    path: deletePath,
    section: 'privacy',
    requires: 'recent',
    show,
    submit: async (submission) => {
      const { form, user, context, reply } = submission
      if (!isSameName(single(form, 'username') ?? '', user.username))
        return show(submission, msg('delete.other'))
      const event = auditEvent('user-removed', context, { userId: user.id })
      try {
        await store.transact('user', user.id, (current) => {
          if (current === undefined) return accept(undefined)
          const removal = accept(undefined, removeUser(user.id, context.at), event)
          return keepAdministrator(removal, config.admin.group, context.at)
        })
      } catch (error) {
        if (!(error instanceof OAuthError && error.detail.rule === lastAdministrator)) throw error
        return show(submission, msg('delete.lastAdministrator'))
      }
      app.browser.dropSession(reply)
      return reply.page('account-deleted', {})
    },
  }
}

/** Returns everything that is stored about a user, as JSON with ISO dates and without any secret or hash. */
async function exportUserData(app: FastifyInstance, { config, store }: AppDeps, user: User, now: Seconds) {
  const visible = config.accounts.attributes.filter((one) => one.visible === 'user')
  const { id } = user
  const grants = await store.listOf('grant', id)
  const consents = await store.listOf(consentKind, id)
  const codes = await store.find(secondFactorKind, id)
  const events = await store.audit({ since: 0, userId: id, limit: everyEvent })
  const clientIds = [...new Set([...grants, ...consents].map(({ clientId }) => clientId))]
  const connected = new Set(connectionsOf(grants, consents, now).map(({ clientId }) => clientId))
  const grantsOf = Map.groupBy(grants, ({ clientId }) => clientId)
  const consentOf = new Map(consents.map((consent) => [consent.clientId, consent]))
  const describeApp = async (clientId: string) => {
    const consent = consentOf.get(clientId)
    return {
      client_id: clientId,
      name: (await app.resolveClient(clientId))?.name,
      connected: connected.has(clientId),
      remembered: consent && { granted_at: isoInstant(consent.grantedAt), allowed: consent.allowed },
      grants: (grantsOf.get(clientId) ?? []).map(describeGrant),
    }
  }
  return {
    made_at: isoInstant(now),
    account: { ...describeUser(user), attributes: attributesOf(visible, user) },
    sessions: (await store.listOf('session', id)).map(describeSession),
    passkeys: (await store.listOf(passkeyKind, id)).map(describePasskey),
    ...(codes && {
      one_time_codes: {
        set_up_at: isoInstant(codes.createdAt),
        confirmed: codes.confirmedAt !== undefined,
        recovery_codes_left: codes.recoveryHashes.length,
      },
    }),
    groups: inOrder(await groupsOf(store, id)).map(({ name, description }) => ({ name, description })),
    apps: await Promise.all(clientIds.map(describeApp)),
    activity: events.map(({ name, at, by, from, clientId, facts }) => ({
      at: isoInstant(at),
      event: name,
      by,
      from,
      client_id: clientId,
      facts: withoutHidden(facts, visible),
    })),
  }
}

/** Leaves out the names of attributes that the user does not see. */
function withoutHidden(facts: AuditEvent['facts'], visible: readonly Attribute[]): AuditEvent['facts'] {
  const { changed } = facts
  if (typeof changed !== 'string') return facts
  const isSeen = (name: string) =>
    !name.startsWith('attributes.') || visible.some((one) => name === `attributes.${one.name}`)
  return { ...facts, changed: changed.split(' ').filter(isSeen).join(' ') }
}

/** More events than the audit log keeps of a user. */
const everyEvent = 1_000_000

function describeUser({ id, username, email, passwordHash, claims, createdAt, updatedAt }: User) {
  return {
    sub: id,
    username,
    email,
    has_password: passwordHash !== undefined,
    claims,
    created_at: isoInstant(createdAt),
    updated_at: isoInstant(updatedAt),
  }
}

function describeSession({ browser, from, methods, authenticatedAt, idleExpiresAt, expiresAt }: Session) {
  return {
    signed_in_at: isoInstant(authenticatedAt),
    browser,
    from,
    methods,
    ends_at: isoInstant(Math.min(idleExpiresAt, expiresAt)),
  }
}

function describePasskey({ id, name, transports, backedUp, createdAt, usedAt }: Passkey) {
  return {
    id,
    name,
    transports,
    backed_up: backedUp,
    created_at: isoInstant(createdAt),
    last_used_at: isoInstant(usedAt),
  }
}

function describeGrant(grant: Grant) {
  const { scope, resource, redirectUri, claims, approvedAt, rotatedAt, expiresAt, revokedAt } = grant
  return {
    granted_at: isoInstant(approvedAt),
    last_used_at: rotatedAt && isoInstant(rotatedAt),
    scope,
    resource,
    redirect_uri: redirectUri || undefined,
    claims,
    ends_at: isoInstant(expiresAt),
    revoked_at: revokedAt && isoInstant(revokedAt),
  }
}
