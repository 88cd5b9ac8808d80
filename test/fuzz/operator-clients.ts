import { insert } from '../../src/domain/decision.ts'
import { vocabularyOf } from '../../src/feature/client-vocabulary.ts'
import type { Deps } from '../../src/feature/deps.ts'
import { declared } from '../../src/features.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import type { ClientKey } from '../helpers/assertions.ts'
import { addOperatorClient, type OperatorClientRequest } from '../helpers/client-request.ts'
import { adminScope } from './administration.ts'
import { requesterName } from './request-objects.ts'
import type { LiveClient } from './world.ts'

export const resourceServerName = 'resource server'
export const administratorName = 'Administrator'
/** The client of a user who administers a group. */
export const delegateName = 'Delegate'
export const boundName = 'Bound'
/** The scope of the clients that act for themselves. */
const machineScope = ['courses:read', 'orders:read']

/** A client of the operator. */
interface OperatorClient extends LiveClient {
  readonly name: string
  readonly scope: readonly string[]
}

/** Adds the clients of the operator. */
export async function addOperatorClients(
  { config, store, clock, random }: Deps,
  key: ClientKey,
  requestKey: ClientKey,
): Promise<OperatorClient[]> {
  const known = vocabularyOf(config, declared)
  const common = {
    postLogoutRedirectUris: ['https://client.example/bye'],
    redirectUris: ['https://client.example/callback'],
    authenticationMethod: 'client_secret_basic',
    pkce: 'required',
    idTokenSignedResponseAlg: 'ES256',
  } as const
  const requests: OperatorClientRequest[] = [
    { ...common, name: 'First party', consent: 'skip', pkce: 'optional' },
    {
      ...common,
      name: 'Remembered',
      consent: 'remember',
      authenticationMethod: 'client_secret_post',
      redirectUris: ['https://two.example/cb?tenant=a%20b', 'https://two.example/other'],
    },
    {
      ...common,
      name: resourceServerName,
      redirectUris: [],
      postLogoutRedirectUris: [],
      resources: known.resources,
    },
    {
      ...common,
      name: 'Machine',
      redirectUris: [],
      postLogoutRedirectUris: [],
      grantTypes: ['client_credentials'],
      scope: machineScope,
    },
    {
      ...common,
      name: 'Signer',
      redirectUris: [],
      postLogoutRedirectUris: [],
      authenticationMethod: 'private_key_jwt',
      grantTypes: ['client_credentials'],
      scope: machineScope,
      description: { jwks: { keys: [key.jwk] } },
    },
    {
      ...common,
      name: requesterName,
      consent: 'remember',
      redirectUris: ['https://signed.example/cb'],
      description: { jwks: { keys: [requestKey.jwk] } },
    },
    {
      ...common,
      name: 'Television',
      redirectUris: [],
      postLogoutRedirectUris: [],
      authenticationMethod: 'none',
      grantTypes: [grantType, 'refresh_token'],
    },
    {
      ...common,
      name: boundName,
      redirectUris: [],
      postLogoutRedirectUris: [],
      grantTypes: ['client_credentials'],
      scope: machineScope,
      description: { dpop_bound_access_tokens: true },
    },
    {
      ...common,
      name: administratorName,
      redirectUris: [],
      postLogoutRedirectUris: [],
      grantTypes: ['client_credentials'],
      scope: adminScope,
    },
    {
      ...common,
      name: delegateName,
      redirectUris: ['https://delegate.example/cb'],
      scope: ['openid', 'admin:users:read'],
    },
  ]
  const clients: OperatorClient[] = []
  for (const request of requests) {
    const fresh = { id: random(16), secret: random(32) }
    const { client, secret } = addOperatorClient(request, known, fresh, clock())
    await store.write(insert('client', client))
    clients.push({
      id: client.id,
      name: request.name,
      scope: request.scope ?? [],
      method: client.authenticationMethod,
      redirectUris: [...request.redirectUris],
      ...(client.grantTypes.includes('client_credentials') && { isMachine: true }),
      ...(client.grantTypes.includes(grantType) && { isDevice: true }),
      ...(secret !== undefined && { secret }),
    })
  }
  return clients
}
