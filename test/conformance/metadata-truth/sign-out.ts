import { finishedDeliveryKind, logoutDeliveryKind } from '../../../src/domain/logout-delivery.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../../helpers/authorization.ts'
import { claimsOf, exchange } from '../../helpers/flow.ts'
import { json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'

/** At the end of a session the logout token of a client is due, under the sid of its ID Token. */
const logoutTokens: Exercise<boolean> = async (t, { server }) => {
  const { store } = server.deps
  const description = { backchannel_logout_uri: 'https://127.0.0.1:1/out' }
  const client = await integrate(server, { consent: 'skip', description })
  const agent = await signedIn(server, client)
  const { code = '' } = sentAway(await ask(server, client, {}, agent))
  const { id_token: idToken } = await json(await exchange(server, client, code))
  const { sid, sub } = claimsOf(String(idToken))
  await agent.submit(pageOf(await agent.open(`${server.issuer}/oauth/logout`)), { decision: 'logout' })
  const due = await store.find(logoutDeliveryKind, String(sid))
  const found = due ?? (await store.find(finishedDeliveryKind, String(sid)))
  t.match(found, { clientId: client.id, userId: sub })
}

export const signOutPromises: Promises = {
  backchannel_logout_supported: { flag: { true: logoutTokens } },
  backchannel_logout_session_supported: { flag: { true: logoutTokens } },
}
