import { put } from '../../domain/decision.ts'
import type { Client, Grant, Session } from '../../domain/model.ts'
import { atSessionEndKind } from '../../domain/session-end.ts'
import type { Plugin } from '../../feature/deps.ts'
import { dueAtSessionEnd, endsWithSession, logoutUriOf, sidOf } from './rules.ts'
import { startSender } from './sender.ts'

/**
 * OpenID Connect Back-Channel Logout 1.0: `sid` in ID Tokens (§2.1), and a logout token (§2.4) for every client that a
 * user signed in to in a session, once that has ended. What is to be done then is stored with the grant, and done by
 * storage (domain/session-end.ts); sender.ts sends the tokens, on any node.
 */
export const backchannelLogout: Plugin<
  'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'fetchUrl'
> = async (app, deps) => {
  const { store, keys } = deps
  app.seams.metadata.add({ backchannel_logout_supported: true, backchannel_logout_session_supported: true })

  app.seams.approvals.add(({ grant, client, session }) => {
    const isConcerned = logoutUriOf(client) !== undefined || endsWithSession(grant, client)
    // A token of the development server's own page has no session.
    return isConcerned && session.id !== '' ? additionTo(grant, client, session) : undefined
  })

  async function additionTo(grant: Grant, client: Client, session: Session) {
    const known = await store.listOf(atSessionEndKind, session.userId)
    const before = known.find((one) => one.sessionId === session.id && one.clientId === client.id)
    const due = dueAtSessionEnd(grant, client, session, before)
    if (due === undefined) return undefined
    const extra = { [endsWithSession(grant, client) ? 'session' : 'sid']: due.sid }
    return { extra, writes: [put(atSessionEndKind, due)] }
  }

  // Most clients get no logout tokens. Their sid follows from the sign-in, so that it adds nothing to the stored
  // grant.
  app.seams.signInClaims.add('sid', (grant) => {
    const { userId = '', clientId, authenticatedAt } = grant
    return { sid: sidOf(grant) ?? keys.pseudonym('sid', userId, clientId, `${authenticatedAt}`) }
  })

  // A client that gets a logout token must not get a new ID Token after it; tokens that end with the session end.
  app.seams.tokenConditions.add((grant, client, at) => {
    const sid = sidOf(grant)
    const isBound = endsWithSession(grant, client)
    if (!isBound && (grant.seq > 0 || logoutUriOf(client) === undefined || sid === undefined))
      return undefined
    return [{ op: 'requireSession', sid: sid ?? '', at }]
  })

  startSender(app, deps)
}
