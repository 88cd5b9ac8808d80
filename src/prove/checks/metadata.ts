import { type Check, checksBy } from '../check.ts'
import { header, json, observe, status } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { type Document, membersOf } from '../server.ts'

/** What a member of a document has to be, and the clauses of both documents that say so. */
const memberRows: readonly (readonly [
  member: string,
  fits: (value: unknown, lab: Lab) => boolean,
  ...names: string[],
])[] = [
  [
    'issuer',
    (value, lab) => value === lab.server.issuer,
    'rfc8414-3.3-issuer-identical',
    'oidc-disc-4.3-issuer-exact',
  ],
  ['issuer', isIssuer, 'rfc8414-2-issuer', 'oidc-disc-3-issuer'],
  [
    'authorization_endpoint',
    isEndpoint,
    'rfc8414-2-authorization-endpoint',
    'oidc-disc-3-authorization-endpoint',
  ],
  ['token_endpoint', isEndpoint, 'rfc8414-2-token-endpoint', 'oidc-disc-3-token-endpoint'],
  ['response_types_supported', isList, 'rfc8414-2-response-types', 'oidc-disc-3-response-types'],
  [
    'code_challenge_methods_supported',
    (value) => isList(value) && value.includes('S256'),
    'rfc8414-2-code-challenge-methods',
    'mcp-discovery-pkce-in-oidc-document',
  ],
  [
    'subject_types_supported',
    (value) =>
      isList(value) && value.length > 0 && value.every((type) => ['public', 'pairwise'].includes(type)),
    'oidc-disc-3-subject-types',
  ],
  [
    'id_token_signing_alg_values_supported',
    (value) => isList(value) && value.includes('RS256'),
    'oidc-disc-3-id-token-algs',
  ],
]

/** RFC 8414 and OpenID Connect Discovery: the metadata documents. */
export const metadataChecks: readonly Check[] = checksBy({
  ...Object.fromEntries(
    memberRows.flatMap(([name, fits, ...clauses]) =>
      clauses.map((clause) => [
        clause,
        async (lab: Lab) => {
          const document = clause.startsWith('rfc8414') ? oauthOf(lab) : openidOf(lab)
          return member(document, name, (value) => fits(value, lab))
        },
      ]),
    ),
  ),
  'rfc8414-3.2-ok-json': async (lab) => judge(oauthOf(lab).seen, status(200), json),
  'rfc8414-3.2-no-empty-arrays': async (lab) => {
    const { seen, members } = oauthOf(lab)
    const empty = Object.entries(members).filter(([, value]) => Array.isArray(value) && value.length === 0)
    return observe(empty.length === 0, `empty: ${empty.map(([name]) => name).join(', ')}`, seen)
  },
  'rfc8414-3.1-get': async (lab) => judge(oauthOf(lab).seen, status(200)),
  'rfc8414-2-jwks-uri': async (lab) => {
    const seen = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
    const keys = membersOf(seen)?.['keys']
    const isSound =
      Array.isArray(keys) && keys.every((key) => !['d', 'p', 'q', 'k'].some((name) => name in Object(key)))
    return judgeEach(judge(seen, status(200)), observe(isSound, 'it is no set of public keys', seen))
  },
  'rfc8414-2-auth-signing-algs': async (lab) => {
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
  'rfc8414-2-grant-types-default': async (lab) => {
    const isImplicit = (lab.server.list('response_types_supported') ?? []).some((type) =>
      type.split(' ').some((one) => one === 'token' || one === 'id_token'),
    )
    if (isImplicit) throw new NotApplicable('the server has the implicit grant')
    return member(
      anyOf(lab),
      'grant_types_supported',
      (value) => isList(value) && !value.includes('implicit'),
      'absent, it means authorization_code and implicit',
    )
  },
  'rfc9700-2.1.2-no-implicit': async (lab) => {
    const types = (lab.server.list('response_types_supported') ?? []).filter((type) =>
      type.split(' ').includes('token'),
    )
    return observe(types.length === 0, `response_types_supported has ${types.join(', ')}`, anyOf(lab).seen)
  },
  'rfc9207-2.3-flag': async (lab) => {
    const flag = 'authorization_response_iss_parameter_supported'
    if (lab.server.metadata[flag] === undefined) throw new NotApplicable(`the metadata has no ${flag}`)
    return member(anyOf(lab), flag, (value) => value === true, 'it should be true')
  },
  'rfc9068-4-consistent-metadata': async (lab) => {
    const [oauth, openid] = [oauthOf(lab), openidOf(lab)]
    const differing = ['issuer', 'jwks_uri', 'token_endpoint', 'authorization_endpoint'].filter(
      (name) => oauth.members[name] !== openid.members[name],
    )
    return observe(differing.length === 0, `they differ in ${differing.join(', ')}`, oauth.seen, openid.seen)
  },
  'oidc-disc-4.2-response': async (lab) => judge(openidOf(lab).seen, status(200), json),
  'oidc-disc-3-cors': async (lab) => {
    const origin = 'https://app.example'
    const allows = header('access-control-allow-origin', /^(\*|https:\/\/app\.example)$/)
    const document = await lab.wire.send({
      url: (lab.server.openid ?? lab.server.oauth)?.seen.sent.url ?? '',
      headers: { origin },
    })
    const keys = await lab.wire.send({ url: lab.server.endpoint('jwks_uri'), headers: { origin } })
    const token = await lab.post(
      'token_endpoint',
      { grant_type: 'authorization_code', client_id: 'lychgate-prove' },
      { headers: { origin } },
    )
    return judgeEach(judge(document, allows), judge(keys, allows), judge(token, allows))
  },
  'oidc-disc-3-scopes-openid': async (lab) => {
    if (openidOf(lab).members['scopes_supported'] === undefined)
      throw new NotApplicable('there is no scopes_supported')
    return member(
      openidOf(lab),
      'scopes_supported',
      (value) => isList(value) && value.includes('openid'),
      'it should have openid',
    )
  },
  'oidc-disc-3-jwks-uri': async (lab) => {
    const { seen: document, members } = openidOf(lab)
    const { jwks_uri: url } = members
    if (typeof url !== 'string') return observe(false, 'jwks_uri is absent', document)
    const seen = await lab.wire.send({ url })
    const keys = membersOf(seen)?.['keys']
    const isSound =
      Array.isArray(keys) &&
      keys.length > 0 &&
      keys.every((key) => Object(key).kty !== 'oct' && !('d' in Object(key)))
    return judgeEach(judge(seen, status(200)), observe(isSound, 'it is no set of public keys', seen))
  },
  'oidc-core-10.2.1-jwks-cache': async (lab) =>
    judge(
      await lab.wire.send({ url: lab.server.endpoint('jwks_uri') }),
      header('cache-control', /max-age=\d/),
    ),
  'oidc-core-15.2-bare-keys': async (lab) => {
    const seen = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
    const keys = [membersOf(seen)?.['keys']].flat().map((key) => Object(key))
    const isBare = keys.every((key) => (key.kty === 'RSA' ? key.n && key.e : key.crv && key.x))
    return observe(isBare, 'a key lacks n and e, or crv and x', seen)
  },
  'rfc6749-3.1-no-fragment-endpoint': async (lab) => {
    const found = ['authorization_endpoint', 'token_endpoint'].filter((name) =>
      String(lab.server.metadata[name]).includes('#'),
    )
    return observe(found.length === 0, `${found.join(', ')} has a fragment`, anyOf(lab).seen)
  },
  'oidc-disc-3-userinfo-endpoint': async (lab) =>
    member(openidOf(lab), 'userinfo_endpoint', (value) => value !== undefined),
  'oidc-disc-3-claims-supported': async (lab) =>
    member(openidOf(lab), 'claims_supported', (value) => value !== undefined),
})

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

function member({ seen, members }: Document, name: string, fits: (value: unknown) => boolean, wanted = '') {
  return observe(
    fits(members[name]),
    `${name} is ${JSON.stringify(members[name]) ?? 'absent'} ${wanted}`.trim(),
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
