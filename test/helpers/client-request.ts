import type { OperatorClientMembers } from '../../src/clients/core-members.ts'
import type { ClientVocabulary, JsonObject } from '../../src/clients/members.ts'
import {
  addOperatorClient as addMembers,
  changeOperatorClient as changeMembers,
  type FreshClient,
} from '../../src/clients/operator-client.ts'
import type { AuditContext } from '../../src/domain/audit.ts'
import type { Client } from '../../src/domain/model.ts'
import { omitUndefined } from '../../src/domain/omit-undefined.ts'

/** What a test says about a client of an operator, under the names of the client model. */
export interface OperatorClientRequest {
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  readonly authenticationMethod?: string | undefined
  readonly grantTypes?: readonly string[] | undefined
  readonly pkce: 'required' | 'optional' | 'auto'
  readonly consent?: Client['consent'] | undefined
  readonly scope?: readonly string[] | undefined
  readonly idTokenSignedResponseAlg: Client['idTokenSignedResponseAlg']
  readonly resources?: readonly string[] | undefined
  /** All other members, under their names on the wire. */
  readonly description?: JsonObject
}

/** Returns the same under the names on the wire. */
export function membersOf(request: Partial<OperatorClientRequest>): OperatorClientMembers {
  const { name, redirectUris, postLogoutRedirectUris, authenticationMethod, grantTypes } = request
  const { pkce, consent, scope, idTokenSignedResponseAlg, resources, description } = request
  const named = {
    client_name: name,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    token_endpoint_auth_method: authenticationMethod,
    grant_types: grantTypes,
    scope: scope?.join(' '),
    id_token_signed_response_alg: idTokenSignedResponseAlg,
  }
  return { ...omitUndefined({ ...named, pkce, consent, resources }), ...description }
}

/** Adds a client as an operator does, without the event: the audit log of a test has what the test does. */
export function addOperatorClient(
  request: OperatorClientRequest,
  known: ClientVocabulary,
  fresh: FreshClient,
  now: number,
) {
  const added = addMembers(membersOf(request), known, fresh, { by: 'operator', at: now })
  const writes = added.writes.filter((write) => write.op !== 'insert' || write.kind !== 'auditEvent')
  return { ...added, writes }
}

/** Changes a client as an operator does. */
export function changeOperatorClient(
  client: Client | undefined,
  change: Partial<OperatorClientRequest>,
  known: ClientVocabulary,
  context: AuditContext,
) {
  return changeMembers(client, membersOf(change), known, context)
}
