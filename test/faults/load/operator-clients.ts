import { randomBytes } from 'node:crypto'
import { insert } from '../../../src/domain/decision.ts'
import { declared } from '../../../src/features.ts'
import { loadConfig } from '../../../src/settings/load.ts'
import { openStore } from '../../../src/storage/open.ts'
import { systemClock } from '../../../src/system/system.ts'
import { addOperatorClient } from '../../helpers/client-request.ts'
import type { TestClient } from '../../helpers/flow.ts'

/** Public and not on a loopback address, so that a consent may be remembered. */
const redirectUri = 'https://client.example/callback'

/** `count` clients in this store whose consents are remembered. */
export async function addOperatorClients(url: string, count: number): Promise<readonly TestClient[]> {
  const config = loadConfig({ mode: 'dev', flags: {} })
  const known = { declared, scopes: config.scopes.map(({ name }) => name), resources: [config.issuer] }
  const store = await openStore(url)
  const added: TestClient[] = []
  for (let number = 0; number < count; number += 1) {
    const { client } = addOperatorClient(
      {
        name: `Integration ${number}`,
        redirectUris: [redirectUri],
        postLogoutRedirectUris: [],
        authenticationMethod: 'none',
        pkce: 'required',
        consent: 'remember',
        idTokenSignedResponseAlg: 'ES256',
      },
      known,
      { id: randomBytes(16), secret: randomBytes(32) },
      systemClock(),
    )
    await store.write(insert('client', client))
    added.push({ id: client.id, method: 'none', redirectUri })
  }
  await store.close()
  return added
}
