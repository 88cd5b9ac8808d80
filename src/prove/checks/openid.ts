import type { JsonWebKey } from 'node:crypto'
import { systemClock } from '../../system/system.ts'
import { asksForPassword } from '../browser.ts'
import { type Check, checksBy } from '../check.ts'
import { endsWithCode, endsWithError, member, observe, status } from '../expect.ts'
import type { Grant } from '../flow.ts'
import type { Lab } from '../lab.ts'
import { judge, NotApplicable, NotTestable } from '../observation.ts'
import { membersOf } from '../server.ts'
import { verifiedJwt } from '../tokens.ts'

type Claims = Readonly<Record<string, unknown>>

/** Facts about the claims of an ID Token: undefined if they are met. */
const claimRows: readonly (readonly [
  name: string,
  fits: (claims: Claims, grant: Grant, lab: Lab, header: Claims) => boolean,
])[] = [
  ['oidc-core-2-iss', ({ iss }, _grant, lab) => iss === lab.server.issuer],
  ['oidc-core-2-sub', ({ sub }) => typeof sub === 'string' && /^[\x20-\x7e]{1,255}$/.test(sub)],
  ['oidc-core-2-aud', ({ aud }, { client }) => [aud].flat().includes(client.id)],
  [
    'oidc-core-2-exp-iat',
    ({ exp, iat }) =>
      typeof exp === 'number' &&
      typeof iat === 'number' &&
      exp > systemClock() &&
      // A date in milliseconds is thousands of years ahead.
      exp < systemClock() * 100 &&
      Math.abs(iat - systemClock()) < 300,
  ],
  ['oidc-core-2-nonce', ({ nonce }, { params }) => nonce === params['nonce']],
  [
    'oidc-core-2-no-key-headers',
    (_claims, _grant, _lab, head) => !['x5u', 'x5c', 'jku', 'jwk'].some((name) => name in head),
  ],
  ['oidc-core-2-null-claims-omitted', (claims) => !Object.values(claims).includes(null)],
]
/** OpenID Connect Core: ID Tokens, UserInfo and prompts. */
export const openidChecks: readonly Check[] = checksBy({
  ...Object.fromEntries(
    claimRows.map(([name, fits]) => [
      name,
      async (lab: Lab) => {
        const grant = await grantOf(lab)
        const { claims, header: head } = await idTokenOf(lab, grant)
        return observe(fits(claims, grant, lab, head), `the claims are ${JSON.stringify(claims)}`, grant.seen)
      },
    ]),
  ),
  'oidc-core-2-signed': async (lab) => {
    const grant = await grantOf(lab)
    const { isSigned, header: head } = await idTokenOf(lab, grant)
    return observe(
      isSigned,
      `the signature (alg ${String(head['alg'])}) is not one of the published keys`,
      grant.seen,
    )
  },
  'jarm-2.2-signed': async (lab) => {
    if (!lab.server.supports('response_modes_supported', 'jwt'))
      throw new NotApplicable('response_modes_supported has no jwt')
    const { ended } = await lab.code({ response_mode: 'jwt' })
    const idToken = ended.kind === 'callback' ? (ended.params.get('response') ?? '') : ''
    const { isSigned } = await idTokenOf(lab, { idToken })
    return observe(isSigned, 'the signature is not one of the published keys', ended.seen)
  },
  'oidc-core-10.1-published-key': async (lab) => {
    const grant = await grantOf(lab)
    const { isSigned, header: head, keys } = await idTokenOf(lab, grant)
    return observe(
      isSigned && (keys.length === 1 || typeof head['kid'] === 'string'),
      'kid is missing, or names another key',
      grant.seen,
    )
  },
  'oidc-core-2-auth-time-when-required': async (lab) => {
    const grant = await lab.grant({ max_age: '3600' })
    const { claims } = await idTokenOf(lab, grant)
    return observe(typeof claims['auth_time'] === 'number', 'auth_time is missing', grant.seen)
  },
  'oidc-core-3.1.3.2-code-from-oidc': async (lab) => {
    const scope = lab.server
      .list('scopes_supported')
      ?.find((name) => name !== 'openid' && name !== 'offline_access')
    if (scope === undefined) throw new NotApplicable('no other scope is known')
    const { seen } = await lab.grant({ scope, prompt: undefined })
    return observe(membersOf(seen)?.['id_token'] === undefined, 'the response has an id_token', seen)
  },
  'oidc-core-12.2-refresh-id-token': async (lab) => {
    const grant = await lab.grant({ max_age: '3600' })
    if (grant.refreshToken === undefined) throw new NotApplicable('the server issues no refresh token')
    const first = (await idTokenOf(lab, grant)).claims
    // The time of the refresh is another one than that of the sign-in.
    await lab.wire.pause(1.1)
    const seen = await lab.refresh(grant.client, grant.refreshToken)
    const idToken = membersOf(seen)?.['id_token']
    if (typeof idToken !== 'string') throw new NotApplicable('a refresh returns no ID Token')
    const second = (await idTokenOf(lab, { ...grant, idToken })).claims
    const changed = ['iss', 'sub', 'aud', 'auth_time'].filter(
      (name) => JSON.stringify(first[name]) !== JSON.stringify(second[name]),
    )
    return observe(changed.length === 0, `changed: ${changed.join(', ')}`, seen)
  },
  'oidc-core-3.1.2.1-prompt-none': async (lab) =>
    endsWithError(
      await silent(lab),
      'login_required',
      'interaction_required',
      'consent_required',
      'account_selection_required',
    ),
  'oidc-core-3.1.2.6-login-required': async (lab) =>
    endsWithError(await silent(lab), 'login_required', 'interaction_required'),
  'oidc-core-3.1.2.1-prompt-login': async (lab) => asksAgain(lab, { prompt: 'login' }),
  'oidc-core-3.1.2.1-max-age-zero': async (lab) => asksAgain(lab, { max_age: '0', prompt: undefined }),
  'oidc-core-3.1.2.2-hint-issuer': async (lab) => {
    const grant = await grantOf(lab)
    const { idToken = '' } = grant
    const [head = '', body = '', signature = ''] = idToken.split('.')
    const forged = (claims: string) => `${head}.${claims}.${'A'.repeat(signature.length)}`
    const correct = await lab.authorize({ id_token_hint: idToken })
    if (endsWithCode(correct).fault !== undefined)
      throw new NotTestable('a request with a correct id_token_hint gets no code')
    const same = await lab.authorize({ id_token_hint: forged(body) })
    const isRejected = endsWithCode(same).fault !== undefined
    if (isRejected) return observe(true, '', correct.seen, same.seen)
    // It may be ignored: then one that names another user changes nothing.
    const before = await lab.authorize({}, { stopsAtPage: true })
    if (asksForPassword(before.seen)) throw new NotTestable('every request asks for the password')
    const { claims } = await idTokenOf(lab, grant)
    const stranger = Buffer.from(JSON.stringify({ ...claims, sub: 'lychgate-prove' })).toString('base64url')
    const other = await lab.authorize({ id_token_hint: forged(stranger) }, { stopsAtPage: true })
    const counts = other.kind === 'callback' ? !other.params.has('code') : asksForPassword(other.seen)
    return observe(!counts, 'the user that a forged hint names counts', same.seen, other.seen)
  },
  'oidc-core-5.3.2-sub-always': async (lab) => {
    const grant = await grantOf(lab)
    const { claims } = await idTokenOf(lab, grant)
    return judge(
      await lab.userinfo(grant.accessToken),
      member('sub', (value) => value === claims['sub'], `the ID Token has ${String(claims['sub'])}`),
    )
  },
  'oidc-core-5.3.2-empty-claims-omitted': async (lab) => {
    const seen = await lab.userinfo((await grantOf(lab)).accessToken)
    return observe(
      !Object.values(membersOf(seen) ?? {}).some((value) => value === null || value === ''),
      'a claim is null or empty',
      seen,
    )
  },
  'oidc-core-5.3-requires-openid': async (lab) => {
    const scope = lab.server
      .list('scopes_supported')
      ?.find((name) => !['openid', 'offline_access'].includes(name))
    if (scope === undefined) throw new NotApplicable('no other scope is known')
    const { accessToken } = await lab.grant({ scope, prompt: undefined })
    return judge(await lab.userinfo(accessToken), status(401, 403))
  },
})

/** A grant of an OpenID request. */
async function grantOf(lab: Lab): Promise<Grant> {
  if (lab.server.openid === undefined) throw new NotApplicable('there is no OpenID configuration')
  return lab.grant()
}

function silent(lab: Lab) {
  return lab.authorize({ prompt: 'none', scope: 'openid' }, { browser: lab.freshBrowser() })
}

/** With a session, a request is made that needs a new sign-in. */
async function asksAgain(lab: Lab, params: Readonly<Record<string, string | undefined>>) {
  await lab.authorize()
  const { seen, kind } = await lab.authorize({ ...params, scope: 'openid' }, { stopsAtPage: true })
  return observe(kind === 'page' && asksForPassword(seen), 'the user is not asked for the password', seen)
}

/** @throws {NotTestable} if it is none, or encrypted. */
async function idTokenOf(lab: Lab, { idToken = '' }: Pick<Grant, 'idToken'>) {
  const [head, body] = idToken
    .split('.')
    .map((part) => membersOf({ body: Buffer.from(part, 'base64url').toString() }))
  if (head === undefined || body === undefined) throw new NotTestable('the ID Token is no signed JWT')
  const set = await lab.wire.send({ url: lab.server.endpoint('jwks_uri') })
  const published: unknown = membersOf(set)?.['keys']
  const keys: readonly JsonWebKey[] = Array.isArray(published) ? published : []
  return { header: head, claims: body, keys, isSigned: verifiedJwt(idToken, keys) !== undefined }
}
