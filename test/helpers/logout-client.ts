import { insert } from '../../src/domain/decision.ts'
import { declared } from '../../src/features.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { addOperatorClient } from './client-request.ts'
import type { TestClient } from './flow.ts'

/** Adds a client with this logout URI to a store that no server has open. */
export async function addLogoutClient(url: string, uri: string): Promise<TestClient> {
  const store = await openStore(url)
  const redirectUri = 'https://portal.example/callback'
  const known = { declared, scopes: ['openid'], resources: [] }
  const fresh = { id: systemRandom(16), secret: systemRandom(32) }
  const request = {
    name: 'Portal',
    redirectUris: [redirectUri],
    postLogoutRedirectUris: [],
    authenticationMethod: 'client_secret_basic',
    pkce: 'required',
    consent: 'skip',
    idTokenSignedResponseAlg: 'ES256',
    description: { backchannel_logout_uri: uri },
  } as const
  const { client, secret = '' } = addOperatorClient(request, known, fresh, systemClock())
  await store.write(insert('client', client))
  await store.close()
  return { id: client.id, secret, method: client.authenticationMethod, redirectUri }
}
