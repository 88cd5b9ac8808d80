import { readSecret } from '../../config/error.ts'
import { OAuthError } from '../../domain/errors.ts'
import { assertSignature, parseJws } from '../../domain/jws.ts'
import type { Seconds } from '../../domain/model.ts'
import { parseStrictJson } from '../../domain/strict-json.ts'
import type { Needs } from '../../feature/deps.ts'
import { createDocuments } from '../../outbound/documents.ts'
import { FetchFailed } from '../../outbound/exchange.ts'
import type { OwnRequest } from '../../outbound/guarded-fetch.ts'
import { createKeySets } from '../../outbound/key-sets.ts'
import { type AnyUpstream, isStored, redirectUriOf } from '../../users/upstreams.ts'
import {
  assertHeader,
  assertIdToken,
  signatureRules,
  type UpstreamClaims,
  withUserInfo,
} from './rules/id-token.ts'
import { assertIssuer, type Binding, type Provider, readProvider, readTokens } from './rules/requests.ts'
import { metadataUrl } from './schema.ts'

/** An authorization code of an upstream, and what its ID Token has to fit. */
export interface CodeResponse extends Binding {
  readonly code: string
  readonly maxAgeSeconds?: Seconds | undefined
  readonly begunAt: Seconds
  /** The network of the browser that brought it, see address-prefix.ts. */
  readonly from: string
}

const timeoutSeconds = 10
const perOriginPerMinute = 600

/** Talks to the upstreams: their metadata, keys, tokens and UserInfo, all through the guarded fetcher. */
export function upstreamRequests({
  config,
  service,
  keys,
  random,
  clock,
  fetchUrl,
}: Needs<'config' | 'service' | 'keys' | 'random' | 'clock' | 'fetchUrl'>) {
  const sources = { fetchUrl, bounds: config.fetch, clock }
  const documents = createDocuments({ ...sources, parse: readProvider })
  const keySets = createKeySets(sources)
  // Read at the start: a file that cannot be read is a fault of the configuration.
  const configured = new Map(
    config.upstreams.map(({ id, clientSecretFile: file }) => [
      id,
      file === undefined ? undefined : readSecret(file, `upstreams (${id}): clientSecretFile`),
    ]),
  )
  const secretOf = (upstream: AnyUpstream): string => {
    if (!isStored(upstream)) return configured.get(upstream.id) ?? ''
    const { id, sealedSecret } = upstream
    return sealedSecret === undefined ? '' : keys.unseal(sealedSecret, id).toString()
  }
  // An operator named the upstreams, and all sign-ins share what is fetched of them.
  const spender = { purpose: 'operator' } as const

  const providerOf = async ({ issuer }: AnyUpstream): Promise<Provider> => {
    const provider = await reached('its metadata', documents.at(metadataUrl(issuer), spender))
    assertIssuer(provider, issuer)
    return provider
  }

  const requestJson = async (
    what: string,
    url: string,
    from: string,
    own: Omit<OwnRequest, 'timeoutSeconds' | 'perOriginPerMinute'>,
  ) => {
    const limits = { timeoutSeconds, perOriginPerMinute }
    const { body } = await reached(what, fetchUrl(url, { purpose: 'upstream', from }, { ...own, ...limits }))
    return parsed(what, body)
  }

  /** Returns how the token request authenticates, OpenID Connect Core §9. */
  const authenticate = async (upstream: AnyUpstream, form: URLSearchParams) => {
    const { clientId, clientAuthentication, issuer } = upstream
    switch (clientAuthentication) {
      case 'client_secret_basic': {
        const secret = secretOf(upstream)
        // RFC 6749 §2.3.1: both are form-encoded first.
        const pair = [clientId, secret].map((text) => new URLSearchParams({ '': text }).toString().slice(1))
        return { authorization: `Basic ${Buffer.from(pair.join(':')).toString('base64')}` }
      }
      case 'client_secret_post':
        form.set('client_id', clientId)
        form.set('client_secret', secretOf(upstream))
        return {}
      case 'private_key_jwt': {
        const now = clock()
        // The audience is the issuer alone: another server cannot use it, draft-ietf-oauth-rfc7523bis.
        const claims = {
          iss: clientId,
          sub: clientId,
          aud: issuer,
          iat: now,
          exp: now + 60,
          jti: random(16).toString('base64url'),
        }
        form.set('client_id', clientId)
        form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
        form.set(
          'client_assertion',
          await keys.sign(keys.usable('RS256'), 'client-authentication+jwt', claims),
        )
        return {}
      }
    }
  }

  return {
    providerOf,
    /**
     * Exchanges a code, verifies its ID Token, and asks UserInfo for what was requested and is not there.
     * @throws {OAuthError} `upstream_rejected`
     */
    claimsOf: async (
      upstream: AnyUpstream,
      provider: Provider,
      response: CodeResponse,
    ): Promise<UpstreamClaims> => {
      const { code, codeVerifier, from } = response
      const form = new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUriOf(service, upstream),
        code_verifier: codeVerifier,
      })
      const own = { form, ...(await authenticate(upstream, form)) }
      const tokens = readTokens(await requestJson('the token endpoint', provider.tokenEndpoint, from, own))
      const token = parseJws(tokens.idToken)
      assertHeader(token)
      const { kid } = token.header
      const found = keySets.keysAt(provider.keysUri, spender, typeof kid === 'string' ? kid : undefined)
      assertSignature(token, upstream.signingAlgorithm, await reached('its keys', found), signatureRules)
      const claims = assertIdToken(token.claims, { ...upstream, ...response, ...tokens }, clock())
      const { userInfoEndpoint } = provider
      if (userInfoEndpoint === undefined || !lacksRequested(claims, upstream)) return claims
      const authorization = `Bearer ${tokens.accessToken}`
      return withUserInfo(
        claims,
        await requestJson('UserInfo', userInfoEndpoint, from, { authorization }),
        upstream.groupsClaim,
      )
    },
  }
}

/** Whether an ID Token lacks a claim of the requested scope that counts here, or groups that the operator mapped. */
function lacksRequested(
  { email, name, groups }: UpstreamClaims,
  { scope, groups: mapped }: Pick<AnyUpstream, 'scope' | 'groups'>,
): boolean {
  const requested = scope.split(' ')
  return (
    (email === undefined && requested.includes('email')) ||
    (name === undefined && requested.includes('profile')) ||
    (groups === undefined && Object.keys(mapped).length > 0)
  )
}

/** Waits for something that was fetched; what went wrong is the upstream's, and none of it is shown. */
async function reached<T>(what: string, fetching: Promise<T>): Promise<T> {
  try {
    return await fetching
  } catch (error) {
    if (error instanceof OAuthError) throw error
    const why = error instanceof FetchFailed || error instanceof Error ? error.message : 'it failed'
    throw new OAuthError('upstream_rejected', `the upstream could not be used: ${what}`, {
      rule: 'lychgate-upstream-reached',
      status: 502,
      received: why,
      cause: error,
    })
  }
}

function parsed(what: string, body: Buffer): unknown {
  try {
    return parseStrictJson(body.toString())
  } catch (error) {
    throw new OAuthError('upstream_rejected', `the upstream responded with no JSON: ${what}`, {
      rule: 'lychgate-upstream-reached',
      status: 502,
      cause: error,
    })
  }
}
