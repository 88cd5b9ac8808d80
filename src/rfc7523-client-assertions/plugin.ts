import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { check } from '../domain/check.ts'
import type { FailedProof } from '../domain/client-authentication.ts'
import { insert } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { algorithmNamed, type PublicKey } from '../domain/key-set.ts'
import type { Client } from '../domain/model.ts'
import { createKeySets } from '../fetch/key-sets.ts'
import { RecordExists } from '../storage/store.ts'
import { type Assertion, failureOf, isForeign, parseAssertion, readAssertion } from './rules/assertion.ts'
import { assertClaims, usedAssertionKind, useOf } from './rules/claims.ts'
import { keysOf } from './rules/registration.ts'
import { assertSignature } from './rules/signature.ts'
import { assertTrusted, subjectIds, trustedSubjectKind, unknownSubject } from './rules/trust.ts'

const method = 'private_key_jwt'
/** The endpoints that authenticate clients. */
const authenticating = ['token', 'pushed_authorization_request', 'revocation', 'introspection']

/**
 * RFC 7523 §2.2: a client authenticates with a JWT that it signs, or that an issuer signs which it trusts, wherever clients
 * authenticate. What an assertion must be is decided in rules/; keys are registered or fetched (src/fetch).
 */
export const clientAssertions = fp<AppDeps>(
  async (app, { config, service, store, clock, fetchUrl }) => {
    const keySets = createKeySets({
      fetchUrl,
      bounds: config.fetch,
      clock,
      onFailure: (url, error) => app.log.warn({ err: error, url }, 'a key set could not be fetched'),
    })

    async function keysFor({ extra }: Client, kid: unknown): Promise<readonly PublicKey[]> {
      const uri = extra?.['jwks_uri']
      return typeof uri === 'string'
        ? fetched('at jwks_uri', uri, keySets.keysAt(uri, textOf(kid)))
        : keysOf(extra?.['jwks'])
    }

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
      const assertion = parseAssertion(proof)
      if (assertion === undefined) return { why: 'without an assertion' }
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
    async function verifyOwn(assertion: Assertion, client: Client): Promise<void> {
      assertClaims(assertion, client, audience(), clock())
      const registered = algorithmNamed(client.extra?.['token_endpoint_auth_signing_alg'])
      assertSignature(assertion, registered, await keysFor(client, assertion.header['kid']))
      await use(assertion, client.id)
    }

    /** Verifies what an issuer signed that the client trusts. Nothing is fetched for another one. */
    async function verifyTrusted(assertion: Assertion, client: Client): Promise<void> {
      const { issuer, reusable } = assertTrusted(assertion, client, service.issuer, clock())
      const keys = keySets.keysOfIssuer(issuer, textOf(assertion.header['kid']))
      assertSignature(assertion, undefined, await fetched('of the trusted issuer', issuer, keys))
      if (!reusable) await use(assertion, client.id)
    }

    /** Uses an assertion: of several nodes, one inserts its record. */
    async function use(assertion: Assertion, clientId: string): Promise<void> {
      const isFirst = await store.write(insert(usedAssertionKind, useOf(assertion, clientId))).then(
        () => true,
        (error) => {
          if (error instanceof RecordExists) return false
          throw error
        },
      )
      check(isFirst, 'rfc7523-3-jti-replay', 'invalid_client', 'jti was used before', {
        passed: 'jti was not used before',
      })
    }

    app.addClientAuthentication(method, {
      parameter: 'client_assertion',
      read: (parameters, _authorization, realm) => readAssertion(parameters, realm),
      verify,
      async findClientId(proof) {
        const assertion = parseAssertion(proof)
        const ids = assertion === undefined ? [] : subjectIds(assertion, service.issuer)
        for (const id of ids) {
          const found = await store.find(trustedSubjectKind, id)
          if (found !== undefined) return found.clientId
        }
        return undefined
      },
    })
  },
  { name: 'client-assertions', dependencies: ['client-authentication'] },
)

function textOf(kid: unknown): string | undefined {
  return typeof kid === 'string' ? kid : undefined
}
