import { type Check, must, should } from '../check.ts'
import { header, json, observe, status } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { type Document, membersOf } from '../server.ts'

/** RFC 8414 and OpenID Connect Discovery: the metadata documents. */
export const metadataChecks: readonly Check[] = [
  must('rfc8414-3.2-ok-json', 'the metadata are a JSON object of type application/json', async (lab) =>
    judge(oauthOf(lab).seen, status(200), json),
  ),
  must(
    'rfc8414-3.3-issuer-identical',
    'issuer is the identifier that the URL of the document was made from, character for character',
    async (lab) =>
      member(
        oauthOf(lab),
        'issuer',
        (value) => value === lab.server.issuer,
        `it should be ${lab.server.issuer}`,
      ),
  ),
  must(
    'rfc8414-2-issuer',
    'issuer is an https URL without query and fragment; http only on loopback',
    async (lab) =>
      member(oauthOf(lab), 'issuer', isIssuer, 'it should be an https URL without query and fragment'),
  ),
  must('rfc8414-2-authorization-endpoint', 'authorization_endpoint is a URL', async (lab) =>
    member(oauthOf(lab), 'authorization_endpoint', isEndpoint, 'it should be an absolute URL'),
  ),
  must('rfc8414-2-token-endpoint', 'token_endpoint is a URL', async (lab) =>
    member(oauthOf(lab), 'token_endpoint', isEndpoint, 'it should be an absolute URL'),
  ),
  must('rfc8414-2-response-types', 'response_types_supported is a list', async (lab) =>
    member(oauthOf(lab), 'response_types_supported', isList, 'it should be a list'),
  ),
  must('rfc8414-3.2-no-empty-arrays', 'members without elements are left out', async (lab) => {
    const { seen, members } = oauthOf(lab)
    const empty = Object.entries(members).filter(([, value]) => Array.isArray(value) && value.length === 0)
    return observe(empty.length === 0, `empty: ${empty.map(([name]) => name).join(', ')}`, seen)
  }),
  must('rfc8414-3.1-get', 'the metadata come by GET, without authentication', async (lab) =>
    judge(oauthOf(lab).seen, status(200)),
  ),
  must('rfc8414-2-jwks-uri', 'jwks_uri has a key set without private keys', async (lab) => {
    const seen = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
    const keys = membersOf(seen)?.['keys']
    const isSound =
      Array.isArray(keys) && keys.every((key) => !['d', 'p', 'q', 'k'].some((name) => name in Object(key)))
    return judgeEach(judge(seen, status(200)), observe(isSound, 'it is no set of public keys', seen))
  }),
  must(
    'rfc8414-2-auth-signing-algs',
    'the algorithms of assertions are listed where clients may sign, and none is not one of them',
    async (lab) => {
      const signs = ['private_key_jwt', 'client_secret_jwt'].some((method) =>
        lab.server.supports('token_endpoint_auth_methods_supported', method),
      )
      if (!signs) throw new NotApplicable('clients do not sign')
      const isSound = (value: unknown) => isList(value) && !value.includes('none')
      return member(
        oauthOf(lab),
        'token_endpoint_auth_signing_alg_values_supported',
        isSound,
        'it should be a list without none',
      )
    },
  ),
  must('rfc8414-2-code-challenge-methods', 'code_challenge_methods_supported has S256', async (lab) =>
    member(
      oauthOf(lab),
      'code_challenge_methods_supported',
      (value) => isList(value) && value.includes('S256'),
      'it should have S256',
    ),
  ),
  must(
    'rfc8414-2-grant-types-default',
    'a server without the implicit grant lists its grant types, because the default has it',
    async (lab) => {
      const isImplicit = (lab.server.list('response_types_supported') ?? []).some((type) =>
        /\btoken\b/.test(type),
      )
      if (isImplicit) throw new NotApplicable('the server has the implicit grant')
      return member(
        anyOf(lab),
        'grant_types_supported',
        (value) => isList(value) && !value.includes('implicit'),
        'absent, it means authorization_code and implicit',
      )
    },
  ),
  should(
    'rfc9700-2.1.2-no-implicit',
    'no response type puts an access token into the authorization response',
    async (lab) => {
      const types = (lab.server.list('response_types_supported') ?? []).filter((type) =>
        type.split(' ').includes('token'),
      )
      return observe(types.length === 0, `response_types_supported has ${types.join(', ')}`, anyOf(lab).seen)
    },
  ),
  must('rfc9207-2.3-flag', 'authorization_response_iss_parameter_supported is true', async (lab) => {
    const flag = 'authorization_response_iss_parameter_supported'
    if (lab.server.metadata[flag] === undefined) throw new NotApplicable(`the metadata has no ${flag}`)
    return member(anyOf(lab), flag, (value) => value === true, 'it should be true')
  }),
  must(
    'rfc9068-4-consistent-metadata',
    'both metadata documents have the same issuer and keys',
    async (lab) => {
      const [oauth, openid] = [oauthOf(lab), openidOf(lab)]
      const differing = ['issuer', 'jwks_uri', 'token_endpoint', 'authorization_endpoint'].filter(
        (name) => oauth.members[name] !== openid.members[name],
      )
      return observe(
        differing.length === 0,
        `they differ in ${differing.join(', ')}`,
        oauth.seen,
        openid.seen,
      )
    },
  ),
  must(
    'oidc-disc-4.2-response',
    'the OpenID configuration is a JSON object of type application/json',
    async (lab) => judge(openidOf(lab).seen, status(200), json),
  ),
  must(
    'oidc-disc-4.3-issuer-exact',
    'issuer is the identifier that the URL of the document was made from, character for character',
    async (lab) =>
      member(
        openidOf(lab),
        'issuer',
        (value) => value === lab.server.issuer,
        `it should be ${lab.server.issuer}`,
      ),
  ),
  must(
    'oidc-disc-3-issuer',
    'issuer is an https URL without query and fragment; http only on loopback',
    async (lab) =>
      member(openidOf(lab), 'issuer', isIssuer, 'it should be an https URL without query and fragment'),
  ),
  must('oidc-disc-3-authorization-endpoint', 'authorization_endpoint is a URL', async (lab) =>
    member(openidOf(lab), 'authorization_endpoint', isEndpoint, 'it should be an absolute URL'),
  ),
  must('oidc-disc-3-token-endpoint', 'token_endpoint is a URL', async (lab) =>
    member(openidOf(lab), 'token_endpoint', isEndpoint, 'it should be an absolute URL'),
  ),
  should('oidc-disc-3-userinfo-endpoint', 'userinfo_endpoint is a URL', async (lab) =>
    member(openidOf(lab), 'userinfo_endpoint', isEndpoint, 'it should be an absolute URL'),
  ),
  must('oidc-disc-3-response-types', 'response_types_supported is a list', async (lab) =>
    member(openidOf(lab), 'response_types_supported', isList, 'it should be a list'),
  ),
  must('oidc-disc-3-subject-types', 'subject_types_supported has public, pairwise or both', async (lab) =>
    member(
      openidOf(lab),
      'subject_types_supported',
      (value) =>
        isList(value) && value.length > 0 && value.every((type) => ['public', 'pairwise'].includes(type)),
      'it should have public, pairwise or both',
    ),
  ),
  must('oidc-disc-3-id-token-algs', 'id_token_signing_alg_values_supported has RS256', async (lab) =>
    member(
      openidOf(lab),
      'id_token_signing_alg_values_supported',
      (value) => isList(value) && value.includes('RS256'),
      'it should have RS256',
    ),
  ),
  should('oidc-disc-3-claims-supported', 'claims_supported lists the claims', async (lab) =>
    member(openidOf(lab), 'claims_supported', isList, 'it should be a list'),
  ),
  must('oidc-disc-3-scopes-openid', 'scopes_supported, if present, has openid', async (lab) => {
    if (openidOf(lab).members['scopes_supported'] === undefined)
      throw new NotApplicable('there is no scopes_supported')
    return member(
      openidOf(lab),
      'scopes_supported',
      (value) => isList(value) && value.includes('openid'),
      'it should have openid',
    )
  }),
  must('oidc-disc-3-jwks-uri', 'jwks_uri has a set of public asymmetric keys', async (lab) => {
    const seen = await lab.wire.send({ url: String(openidOf(lab).members['jwks_uri']) })
    const keys = membersOf(seen)?.['keys']
    const isSound =
      Array.isArray(keys) &&
      keys.length > 0 &&
      keys.every((key) => Object(key).kty !== 'oct' && !('d' in Object(key)))
    return judgeEach(judge(seen, status(200)), observe(isSound, 'it is no set of public keys', seen))
  }),
  should('oidc-core-10.2.1-jwks-cache', 'the key set says how long it may be cached', async (lab) =>
    judge(
      await lab.wire.send({ url: lab.server.endpoint('jwks_uri') }),
      header('cache-control', /max-age=\d/),
    ),
  ),
  must(
    'oidc-core-15.2-bare-keys',
    'public keys are there as bare members, not in certificates alone',
    async (lab) => {
      const seen = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
      const keys = [membersOf(seen)?.['keys']].flat().map((key) => Object(key))
      const isBare = keys.every((key) => (key.kty === 'RSA' ? key.n && key.e : key.crv && key.x))
      return observe(isBare, 'a key lacks n and e, or crv and x', seen)
    },
  ),
  must('rfc6749-3.1-no-fragment-endpoint', 'the URLs of the endpoints have no fragment', async (lab) => {
    const found = ['authorization_endpoint', 'token_endpoint'].filter((name) =>
      String(lab.server.metadata[name]).includes('#'),
    )
    return observe(found.length === 0, `${found.join(', ')} has a fragment`, anyOf(lab).seen)
  }),
]

/** @throws {NotApplicable} */
function oauthOf({ server }: Lab): Document {
  if (server.oauth === undefined) throw new NotApplicable('there is no metadata document of RFC 8414')
  return server.oauth
}

/** @throws {NotApplicable} */
export function openidOf({ server }: Lab): Document {
  if (server.openid === undefined) throw new NotApplicable('there is no OpenID configuration')
  return server.openid
}

/** The document of RFC 8414, or the OpenID configuration. */
export function anyOf(lab: Lab): Document {
  return lab.server.oauth ?? openidOf(lab)
}

function member(
  { seen, members }: Document,
  name: string,
  fits: (value: unknown) => boolean,
  wanted: string,
) {
  return observe(
    fits(members[name]),
    `${name} is ${JSON.stringify(members[name]) ?? 'absent'}: ${wanted}`,
    seen,
  )
}

export function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function isIssuer(value: unknown): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || /[?#]/.test(String(value))) return false
  return (
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname))
  )
}

function isEndpoint(value: unknown): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url !== null && (url.protocol === 'https:' || isIssuer(url.origin))
}
