import { type Check, checksBy } from '../check.ts'
import { observe } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable, type Rule } from '../observation.ts'
import { type Document, membersOf } from '../server.ts'
import { random } from '../tokens.ts'

/** RFC 8414 and OpenID Connect Discovery: the metadata documents. */
export const metadataChecks: readonly Check[] = checksBy({
  'rfc8414-3.2-no-empty-arrays': async (lab) => {
    const { seen, members } = oauthOf(lab)
    const empty = Object.entries(members).filter(([, value]) => Array.isArray(value) && value.length === 0)
    return observe(empty.length === 0, `empty: ${empty.map(([name]) => name).join(', ')}`, seen)
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
  'oidc-disc-3-cors': async (lab) => {
    const origin = `https://${random(8).toLowerCase()}.example`
    const allows: Rule = ({ headers: { 'access-control-allow-origin': allowed } }) =>
      allowed === '*' || allowed === origin
        ? undefined
        : `access-control-allow-origin is ${allowed ?? 'absent'}`
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
  'oidc-core-15.2-bare-keys': async (lab) => {
    const seen = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
    const keys = [membersOf(seen)?.['keys']].flat().map((key) => Object(key))
    const isBare = keys.every((key) => (key.kty === 'RSA' ? key.n && key.e : key.crv && key.x))
    return observe(isBare, 'a key lacks n and e, or crv and x', seen)
  },
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

function member({ seen, members }: Document, name: string, fits: (value: unknown) => boolean, expected = '') {
  return observe(
    fits(members[name]),
    `${name} is ${JSON.stringify(members[name]) ?? 'absent'} ${expected}`.trim(),
    seen,
  )
}

export function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
