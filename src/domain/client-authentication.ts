import { check, recordCheck } from './check.ts'
import { type ErrorDetail, OAuthError } from './errors.ts'
import type { Client } from './model.ts'
import { type Parameters, single } from './parameters.ts'

/** The credentials of a request, before they are verified. */
export interface ClientCredentials {
  /** Absent: the form names the client. */
  readonly clientId?: string
  /** What proves that the client sent the request: its secret, or an assertion. */
  readonly proof?: string
}

/** The status of a failed authentication: always 401 at introspection (RFC 7662 §2.3). */
export interface AuthenticationRealm {
  readonly alwaysUnauthorized: boolean
}

/** A client that has authenticated, and how. */
export interface Authenticated {
  readonly client: Client
  /** The secret or the assertion; absent: a public client sent its `client_id` alone. */
  readonly proof: string | undefined
  readonly realm: AuthenticationRealm
}

/** Why a proof is not the client's, for the log: the response does not tell. */
export interface FailedProof {
  readonly rule?: string
  /** In a few words, after the name of the method: `with another secret`. */
  readonly why: string
  /** What was expected and what was found, where a text says it better. */
  readonly stored?: ErrorDetail['stored']
  readonly received?: ErrorDetail['received']
  /** For the response: what would accept the proof. It follows from the proof alone, also for an unknown client. */
  readonly advice?: string | undefined
  /** It describes the proof; no client was found by it, so that nothing about a client is in it. */
  readonly namesNoClient?: true
}

/** How a client authentication method works (RFC 7591 §2, `token_endpoint_auth_method`). */
export interface ClientAuthentication {
  /** The form parameter that carries the proof; absent: the Authorization header does. */
  readonly parameter?: string
  /** Returns the credentials of this method, undefined if the request has none. */
  read(
    parameters: Parameters,
    authorization: string | undefined,
    realm: AuthenticationRealm,
  ): ClientCredentials | undefined
  /**
   * Verifies the proof of a client that may use the method. It is called for an unknown client too, so that the time
   * taken does not reveal it.
   */
  verify(
    client: Client | undefined,
    proof: string | undefined,
  ): FailedProof | undefined | Promise<FailedProof | undefined>
  /** Finds the client of a proof that has no `client_id`, in a request that has none either. */
  findClientId?(proof: string): Promise<string | undefined>
}

/** A method by its name, with what its feature declares about it. */
export interface AuthenticationMethod extends ClientAuthentication {
  readonly name: string
  /** The proof is the client secret. */
  readonly usesSecret?: true
}

/** Which client a request claims to be from, by which method, with which proof. */
export interface ClaimedClient {
  readonly method: AuthenticationMethod
  /** Absent: the method finds the client of the proof. */
  readonly clientId: string | undefined
  readonly proof: string | undefined
}

/** The challenge that a 401 to a failed authentication has. */
export const basicChallenge = { 'www-authenticate': 'Basic realm="lychgate"' }

/** A public client sends its `client_id` alone, RFC 6749 §3.2.1 and RFC 7009 §5. */
export const noAuthentication: AuthenticationMethod = {
  name: 'none',
  parameter: 'client_id',
  // It is what remains when no other method finds credentials.
  read: () => undefined,
  verify: () => undefined,
}

/**
 * Reads who a request claims to be from, RFC 6749 §2.3: by one method, never two, and never from the query.
 * @throws {OAuthError} `invalid_request` for two methods at once or no client_id, and what the methods throw.
 */
export function parseClientCredentials(
  methods: Iterable<AuthenticationMethod>,
  authorization: string | undefined,
  parameters: Parameters,
  realm: AuthenticationRealm,
): ClaimedClient {
  const sentId = single(parameters, 'client_id')
  let method = noAuthentication
  let credentials: ClientCredentials = {}
  for (const other of methods) {
    const otherCredentials = other.read(parameters, authorization, realm)
    if (otherCredentials === undefined) continue
    check(
      method === noAuthentication,
      'rfc6749-2.3-one-auth-method',
      'invalid_request',
      `the client authenticates by ${other.parameter ?? 'header'} and by ${method.parameter ?? 'header'} at once`,
      { passed: 'the client authenticates in one way' },
    )
    method = other
    credentials = otherCredentials
  }
  const clientId = credentials.clientId ?? sentId
  check(
    clientId !== undefined || method.findClientId !== undefined,
    'rfc6749-3.2.1-public-sends-client-id',
    realm.alwaysUnauthorized ? 'invalid_client' : 'invalid_request',
    'client_id is missing',
    { passed: 'client_id is present', ...(realm.alwaysUnauthorized && { headers: basicChallenge }) },
  )
  if (clientId !== undefined && clientId !== sentId) assertSameClientId(sentId, clientId, method)
  return { method, clientId, proof: credentials.proof }
}

function assertSameClientId(
  sentId: string | undefined,
  clientId: string,
  { parameter = 'Authorization header' }: AuthenticationMethod,
): void {
  check(
    sentId === undefined,
    'rfc6749-2.3-one-auth-method',
    'invalid_request',
    `client_id differs from the one in the ${parameter}`,
    { stored: clientId, received: sentId, passed: `only the ${parameter} names the client` },
  )
}

/**
 * Accepts the client if its proof was verified (RFC 6749 §2.3): only the registered method counts, or any that sends
 * the secret where an operator registered none (mod_auth_openidc and zitadel/oidc mix the two), and a client_id alone
 * is no credential, RFC 6749 §2.2. Credentials are checked for every grant type (RFC 6749 §3.2.1). An unknown client,
 * a wrong proof and a wrong method get the same error.
 * @param failed What the method found wrong with the proof.
 * @throws {OAuthError} `invalid_client`
 */
export function authenticateClient(
  client: Client | undefined,
  { method, proof }: Omit<ClaimedClient, 'clientId'>,
  failed: FailedProof | undefined,
  realm: AuthenticationRealm,
): Client {
  const isMethod = client !== undefined && isRegisteredMethod(client, method)
  if (client !== undefined && isMethod && failed === undefined && client.lockedAt === undefined) {
    recordCheck(
      proof === undefined
        ? 'rfc6749-3.2.1-public-sends-client-id'
        : 'rfc6749-3.2.1-confidential-must-authenticate',
      'the client authenticates as it registered',
      client.authenticationMethod,
      method.name,
    )
    return client
  }
  const byHeader = method.parameter === undefined
  const isWrongMethod = client !== undefined && !isMethod
  const {
    rule = 'rfc6749-5.2-invalid-client-400-or-401',
    why,
    stored,
    received,
    advice,
  } = failed ?? lockOf(client) ?? {}
  const isOtherClient = isWrongMethod || (client === undefined && !failed?.namesNoClient)
  const isUnauthorized = byHeader || realm.alwaysUnauthorized
  const detail = {
    rule: isWrongMethod ? 'oidc-core-9-registered-method-enforced' : rule,
    // The response does not distinguish these; the log does.
    stored:
      (isOtherClient ? undefined : stored) ?? client?.authenticationMethod ?? 'no client with this client_id',
    received: isOtherClient
      ? method.name
      : `${method.name}, ${why}${received === undefined ? '' : `: ${received}`}`,
  }
  throw clientRejected(isUnauthorized, detail, advice)
}

/**
 * Returns the error of a failed authentication, which says no more to the client than what its proof says. RFC 6749 §5.2: a 401 obliges to a
 * challenge, and clients read any challenge at the token endpoint as a response to theirs.
 */
export function clientRejected(
  isUnauthorized: boolean,
  detail: Pick<ErrorDetail, 'rule' | 'stored' | 'received'>,
  advice?: string,
): OAuthError {
  const description = `client authentication failed${advice === undefined ? '' : `: ${advice}`}`
  return new OAuthError('invalid_client', description, {
    ...detail,
    status: isUnauthorized ? 401 : 400,
    ...(isUnauthorized && { headers: basicChallenge }),
  })
}

function lockOf(client: Client | undefined): FailedProof | undefined {
  if (client?.lockedAt === undefined) return undefined
  return { rule: 'lychgate-client-locked', why: `and an operator locked the client at ${client.lockedAt}` }
}

function isRegisteredMethod(client: Client, method: AuthenticationMethod): boolean {
  return client.authenticationMethod === method.name || (client.anySecretMethod && method.usesSecret) === true
}
