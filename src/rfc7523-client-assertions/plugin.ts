import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { check } from '../domain/check.ts'
import type { FailedProof } from '../domain/client-authentication.ts'
import { insert } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { PublicKey } from '../domain/key-set.ts'
import type { Client } from '../domain/model.ts'
import { createKeySets } from '../fetch/key-sets.ts'
import { RecordExists } from '../storage/store.ts'
import { failureOf, parseAssertion, readAssertion } from './rules/assertion.ts'
import { assertClaims, usedAssertionKind, useOf } from './rules/claims.ts'
import { keysOf } from './rules/registration.ts'
import { assertSignature } from './rules/signature.ts'

const method = 'private_key_jwt'
/** The endpoints that authenticate clients. */
const authenticating = ['token', 'pushed_authorization_request', 'revocation', 'introspection']

/**
 * RFC 7523 §2.2: a client authenticates with a JWT that it signs, wherever clients authenticate. What an assertion must
 * be is decided in rules/; its keys are registered, or fetched from `jwks_uri` (src/fetch).
 */
export const clientAssertions = fp<AppDeps>(
  async (app, { config, service, store, clock, fetchUrl }) => {
    const { keysAt } = createKeySets({
      fetchUrl,
      bounds: config.fetch,
      clock,
      onFailure: (url, error) => app.log.warn({ err: error, url }, 'a key set could not be fetched'),
    })

    async function keysFor({ extra }: Client, kid: unknown): Promise<readonly PublicKey[]> {
      const uri = extra?.['jwks_uri']
      if (typeof uri !== 'string') return keysOf(extra?.['jwks'])
      try {
        return await keysAt(uri, typeof kid === 'string' ? kid : undefined)
      } catch (cause) {
        const detail = { rule: 'rfc7523-3-signature', stored: uri, received: String(cause), cause }
        throw new OAuthError('invalid_client', 'the keys at jwks_uri cannot be fetched', detail)
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
      if (client?.authenticationMethod !== method || assertion === undefined)
        return { why: 'not a client with keys' }
      try {
        assertClaims(assertion, client, audience(), clock())
        assertSignature(assertion, client, await keysFor(client, assertion.header['kid']))
        await use(assertion, client.id)
        return undefined
      } catch (error) {
        return failureOf(error)
      }
    }

    /** Uses an assertion: of several nodes, one inserts its record. */
    async function use(assertion: Parameters<typeof useOf>[0], clientId: string): Promise<void> {
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
    })
  },
  { name: 'client-assertions', dependencies: ['client-authentication'] },
)
