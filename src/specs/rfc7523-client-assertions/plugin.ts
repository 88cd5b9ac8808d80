import { check } from '../../domain/check.ts'
import type { FailedProof } from '../../domain/client-authentication.ts'
import { insert } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { assertSignature, type Jws, parseJws } from '../../domain/jws.ts'
import { algorithmNamed, type PublicKey } from '../../domain/key-set.ts'
import type { Client } from '../../domain/model.ts'
import type { Plugin } from '../../feature/deps.ts'
import { insertOnce } from '../../storage/store.ts'
import { failureOf, isForeign, readAssertion } from './rules/assertion.ts'
import { adviceOn, assertClaims, signatureRules, usedAssertionKind, useOf } from './rules/claims.ts'
import { assertTrusted, subjectIds, trustedSubjectKind, unknownSubject } from './rules/trust.ts'

const method = 'private_key_jwt'
/** The endpoints that authenticate clients. */
const authenticating = ['token', 'pushed_authorization_request', 'revocation', 'introspection']

/**
 * RFC 7523 §2.2: a client authenticates with a JWT that it signs, or that an issuer signs which it trusts, wherever
 * clients authenticate. What an assertion must be is decided in rules/; keys are registered or fetched (src/outbound).
 */
export const clientAssertions: Plugin<'store' | 'clock' | 'service'> = async (
  app,
  { service, store, clock },
) => {
  /** @throws {OAuthError} `invalid_client` for keys that cannot be fetched. */
  async function fetched(whose: string, from: string, keys: Promise<readonly PublicKey[]>) {
    try {
      return await keys
    } catch (cause) {
      const detail = { rule: 'rfc7523-3-signature', stored: from, received: String(cause), cause }
      throw new OAuthError('invalid_client', `the keys ${whose} cannot be fetched`, detail)
    }
  }

  const audience = () => ({
    issuer: service.issuer,
    endpoints: authenticating.flatMap((name) => {
      const path = app.endpoints.get(name)
      return path === undefined ? [] : [service.issuer + path]
    }),
  })

  async function verify(client: Client | undefined, proof = ''): Promise<FailedProof | undefined> {
    const assertion = parseJws(proof)
    if (assertion === undefined) return { why: 'without an assertion' }
    const failed = await failureFor(assertion, client)
    if (failed === undefined || isForeign(assertion)) return failed
    return { ...failed, advice: adviceOn(assertion.claims['aud'], audience()) }
  }

  async function failureFor(assertion: Jws, client: Client | undefined): Promise<FailedProof | undefined> {
    if (client === undefined && isForeign(assertion)) return unknownSubject(assertion)
    if (client?.authenticationMethod !== method) return { why: 'not a client with keys' }
    try {
      await (isForeign(assertion) ? verifyTrusted(assertion, client) : verifyOwn(assertion, client))
      return undefined
    } catch (error) {
      return failureOf(error)
    }
  }

  /** Verifies what the client signed. */
  async function verifyOwn(assertion: Jws, client: Client): Promise<void> {
    assertClaims(assertion, client, audience(), clock())
    const registered = algorithmNamed(client.extra?.['token_endpoint_auth_signing_alg'])
    const { jwks_uri: uri } = client.extra ?? {}
    const keys = app.clientKeys.keysOf(client, assertion.header['kid'])
    const found = await fetched('at jwks_uri', String(uri), keys)
    assertSignature(assertion, registered, found, signatureRules)
    await use(assertion, client.id)
  }

  /** Verifies what an issuer signed that the client trusts. Nothing is fetched for another one. */
  async function verifyTrusted(assertion: Jws, client: Client): Promise<void> {
    const { issuer, reusable } = assertTrusted(assertion, client, service.issuer, clock())
    const { kid } = assertion.header
    const keys = app.clientKeys.keysOfIssuer(issuer, typeof kid === 'string' ? kid : undefined)
    const found = await fetched('of the trusted issuer', issuer, keys)
    assertSignature(assertion, undefined, found, signatureRules)
    if (!reusable) await use(assertion, client.id)
  }

  /** Uses an assertion: of several nodes, one inserts its record. */
  async function use(assertion: Jws, clientId: string): Promise<void> {
    const isFirst = await insertOnce(store, insert(usedAssertionKind, useOf(assertion, clientId)))
    check(isFirst, 'rfc7523-3-jti-replay', 'invalid_client', 'jti was used before', {
      passed: 'jti was not used before',
    })
  }

  app.seams.clientAuthentication.add(method, {
    parameter: 'client_assertion',
    read: (parameters, _authorization, realm) => readAssertion(parameters, realm),
    verify,
    async findClientId(proof) {
      const assertion = parseJws(proof)
      const ids = assertion === undefined ? [] : subjectIds(assertion, service.issuer)
      for (const id of ids) {
        const found = await store.find(trustedSubjectKind, id)
        if (found !== undefined) return found.clientId
      }
      return undefined
    },
  })
}
