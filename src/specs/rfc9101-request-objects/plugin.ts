import { OAuthError } from '../../domain/errors.ts'
import { assertSignature } from '../../domain/jws.ts'
import { algorithmNamed, algorithmNames, type PublicKey } from '../../domain/key-set.ts'
import type { Client } from '../../domain/model.ts'
import type { Parameters } from '../../domain/parameters.ts'
import type { Plugin } from '../../feature/deps.ts'
import { FetchFailed } from '../../outbound/exchange.ts'
import {
  assertRequestObject,
  assertSigned,
  hasRequestObject,
  notFetched,
  parametersOf,
  parseRequestObject,
  readSent,
  signatureRules,
  signedExtra,
} from './rules.ts'

/**
 * RFC 9101: authorization requests as JWTs that the client signs, by value or at a registered URI, at the authorization
 * endpoint and in pushed requests (RFC 9126 §3). Only what is signed counts. The keys are those by which the client
 * authenticates.
 */
export const requestObjects: Plugin<'config' | 'clock' | 'service' | 'declared' | 'fetchUrl'> = async (
  app,
  { config, service, clock, fetchUrl, declared },
) => {
  const isRequired = config.requestObjects.required === 'on'
  const names = Object.keys(declared.authorizationParameters)
  app.seams.metadata.add({
    request_parameter_supported: true,
    request_uri_parameter_supported: true,
    require_request_uri_registration: true,
    require_signed_request_object: isRequired,
    request_object_signing_alg_values_supported: [...algorithmNames].reverse(),
  })
  app.seams.requestChecks.add((client, extra) => assertSigned(client, extra, isRequired))
  app.seams.requestLoaders.add((parameters, from) => {
    const { client_id: clientId } = parameters
    return hasRequestObject(parameters) && typeof clientId === 'string'
      ? loadOf(clientId, parameters, from)
      : undefined
  })

  async function loadOf(clientId: string, parameters: Parameters, from: string) {
    const client = await app.resolveClient(clientId, 'authorization', from)
    // The core rejects an unknown or locked client; nothing is fetched for it.
    if (client === undefined || client.lockedAt !== undefined) return { parameters }
    return load(parameters, client, from)
  }

  /**
   * Until the signature is verified, an error goes to where the request itself says: what is inside is not proven.
   */
  async function load(parameters: Parameters, client: Client, from: string) {
    const { request: _request, request_uri: _uri, ...outside } = parameters
    let proven: Parameters = outside
    try {
      const sent = readSent(parameters, client)
      const object = parseRequestObject('uri' in sent ? await fetched(sent.uri, from) : sent.value)
      const registered = algorithmNamed(client.extra?.['request_object_signing_alg'])
      assertSignature(object, registered, await keysOf(client, object.header['kid']), signatureRules)
      const inside = parametersOf(object, names, config.limits)
      proven = { ...inside, client_id: client.id }
      assertRequestObject(object, client, service.issuer, clock())
      return { parameters: inside, extra: signedExtra }
    } catch (error) {
      if (error instanceof OAuthError) return { parameters: proven, rejection: error }
      throw error
    }
  }

  async function fetched(uri: string, from: string): Promise<string> {
    try {
      const { body } = await fetchUrl(uri, { purpose: 'requestObject', from })
      return body.toString().trim()
    } catch (error) {
      if (error instanceof FetchFailed) throw notFetched(uri, error)
      throw error
    }
  }

  async function keysOf(client: Client, kid: unknown): Promise<readonly PublicKey[]> {
    try {
      return await app.clientKeys.keysOf(client, kid)
    } catch (cause) {
      const detail = { rule: signatureRules.signature, received: String(cause), cause }
      throw new OAuthError('invalid_request_object', 'the keys at jwks_uri cannot be fetched', detail)
    }
  }
}
