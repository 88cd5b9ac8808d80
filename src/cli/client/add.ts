import { addIntegration, type IntegrationRequest } from '../../clients/integration.ts'
import { auditEvent } from '../../domain/audit.ts'
import { insert } from '../../domain/decision.ts'
import { parseScope } from '../../domain/scope.ts'
import { systemClock, systemRandom } from '../../system.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { authenticationOf, describeClient } from './description.ts'
import { descriptionOf, type MetadataFlags } from './flags.ts'
import { knownTo } from './known.ts'

/** `lychgate client add`: a client with https callbacks, or a resource server; its secret is shown once. */
export async function clientAdd(flags: MetadataFlags & { readonly name: string }): Promise<void> {
  await withStore(flags, async (store, config) => {
    const fresh = { id: systemRandom(16), secret: systemRandom(32) }
    const { client, secret } = addIntegration(requestOf(flags), knownTo(config), fresh, systemClock())
    const event = auditEvent('client-added', operatorContext(), { clientId: client.id, name: flags.name })
    await store.write(insert('client', client), event)
    const credentials = { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) }
    if (flags.json) return printJson({ ...describeClient(client, config), ...credentials })
    const { name, redirectUris, introspects } = client
    printMembers({
      ...credentials,
      client_name: name,
      redirect_uris: redirectUris,
      introspects,
      token_endpoint_auth_method: authenticationOf(client),
    })
    if (secret !== undefined)
      process.stdout.write('\nKeep the secret now: it is stored as a hash and never shown again.\n')
  })
}

function requestOf(flags: MetadataFlags & { readonly name: string }): IntegrationRequest {
  return {
    name: flags.name,
    redirectUris: flags.redirectUri ?? [],
    postLogoutRedirectUris: flags.postLogoutRedirectUri ?? [],
    authenticationMethod: flags.auth,
    pkce: flags.pkce ?? 'required',
    consent: flags.consent,
    scope: flags.scope === undefined ? undefined : parseScope(flags.scope),
    idTokenSignedResponseAlg: flags.idTokenAlg ?? 'RS256',
    introspects: flags.resource ?? [],
    description: descriptionOf(flags),
  }
}
