import { type Check, checksBy } from '../check.ts'
import { redirectUri } from '../clients.ts'
import {
  denies,
  endsWithCode,
  endsWithout,
  header,
  json,
  member,
  noToken,
  observe,
  status,
} from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { encode, type Params } from '../params.ts'
import { membersOf } from '../server.ts'
import { createKey, random } from '../tokens.ts'

/** RFC 9126 and RFC 9449: pushed requests, and tokens that are bound to a key. */
export const pushedChecks: readonly Check[] = checksBy({
  'rfc9126-2.2-created': async (lab) => {
    const { seen } = await push(lab)
    return judge(
      seen,
      status(201),
      json,
      member('request_uri', (value) => typeof value === 'string', 'a string'),
      member('expires_in', (value) => Number.isInteger(value) && Number(value) > 0, 'a positive number'),
      header('cache-control', /no-(store|cache)/),
    )
  },
  'rfc9126-4-use': async (lab) => {
    const { client, uri, params } = await push(lab)
    const ended = await visit(lab, { client_id: client.id, request_uri: uri, state: 'lychgate-prove' })
    const state = ended.kind === 'callback' ? ended.params.get('state') : undefined
    return judgeEach(
      endsWithCode(ended),
      observe(state === params['state'], `state is ${String(state)}, which was not pushed`, ended.seen),
    )
  },
  'rfc9126-4-one-time': async (lab) => {
    const { client, uri } = await push(lab)
    const first = await visit(lab, { client_id: client.id, request_uri: uri })
    return judgeEach(
      endsWithCode(first),
      endsWithout(await visit(lab, { client_id: client.id, request_uri: uri })),
    )
  },
  'rfc9126-2.1-reject-request-uri/pushed': async (lab) =>
    denies((await push(lab, { request_uri: (await push(lab)).uri })).seen),
  'rfc9126-2.2-unguessable-and-bound': async (lab) => {
    const [{ uri }, other] = [await push(lab), await lab.client('other')]
    return endsWithout(await visit(lab, { client_id: other.id, request_uri: uri }))
  },
  'rfc9126-2-endpoint': async (lab) => {
    const { params } = await lab.request()
    const seen = await lab.wire.send({
      url: `${lab.server.endpoint('pushed_authorization_request_endpoint')}?${encode(params)}`,
    })
    return observe(seen.status >= 400, `GET gets status ${seen.status}`, seen)
  },
  'fapi2-5.3.2.2-request-uri-lifetime': async (lab) =>
    judge(
      (await push(lab)).seen,
      status(201),
      member('expires_in', (value) => Number(value) < 600, 'below 600'),
    ),
  'rfc9449-5.1-metadata': async (lab) => {
    const algorithms = dpopOf(lab)
    const [seen] = [lab.server.oauth?.seen, lab.server.openid?.seen].filter((one) => one !== undefined)
    return {
      seen: seen === undefined ? [] : [seen],
      fault: algorithms.some((name) => /^(none|HS)/.test(name))
        ? `it has ${algorithms.join(', ')}`
        : undefined,
    }
  },
  'rfc9449-5-token-type': async (lab) => {
    dpopOf(lab)
    const { seen } = await lab.grant({}, {}, { key: lab.key })
    return judge(
      seen,
      status(200),
      member('token_type', (value) => /^dpop$/i.test(String(value)), 'it should be DPoP'),
    )
  },
  'rfc9449-7.2-no-downgrade': async (lab) => {
    dpopOf(lab)
    const { accessToken } = await lab.grant({}, {}, { key: lab.key })
    const seen = await lab.wire.send({
      url: lab.server.endpoint('userinfo_endpoint'),
      headers: { authorization: `Bearer ${accessToken}` },
    })
    return judge(seen, status(401, 400))
  },
  'rfc9449-5-refresh-bound-public': async (lab) => {
    dpopOf(lab)
    const client = await lab.client('none')
    const { refreshToken } = await lab.grant({}, { client }, { key: lab.key })
    if (refreshToken === undefined) throw new NotApplicable('the server issues no refresh token')
    return denies(
      await lab.refresh(client, refreshToken, {}, { key: createKey() }),
      'invalid_grant',
      'invalid_dpop_proof',
    )
  },
  'rfc9449-10-dpop-jkt': async (lab) => {
    dpopOf(lab)
    const code = await lab.code({ dpop_jkt: lab.key.thumbprint })
    return denies(await lab.redeem(code, {}, { key: createKey() }), 'invalid_grant', 'invalid_dpop_proof')
  },
  'rfc9449-4.3-single-header': async (lab) => {
    dpopOf(lab)
    const code = await lab.code()
    return denies(
      await lab.redeem(code, {}, { headers: { dpop: ['a.b.c', 'd.e.f'] } }),
      'invalid_dpop_proof',
      'invalid_request',
    )
  },
  'rfc9449-4.3-private-key': async (lab) => {
    dpopOf(lab)
    const change = { header: { jwk: lab.key.privateKey.export({ format: 'jwk' }) } }
    return denies(await lab.redeem(await lab.code(), {}, { key: lab.key, change }), 'invalid_dpop_proof')
  },
  'rfc9449-11.1-jti-replay': async (lab) => {
    dpopOf(lab)
    const change = { claims: { jti: random() } }
    const first = await lab.redeem(await lab.code(), {}, { key: lab.key, change })
    if (first.status !== 200) return judge(first, status(200))
    return judge(await lab.redeem(await lab.code(), {}, { key: lab.key, change }), noToken, status(400, 401))
  },
})

function dpopOf(lab: Lab): readonly string[] {
  const algorithms = lab.server.list('dpop_signing_alg_values_supported')
  if (algorithms === undefined)
    throw new NotApplicable('the metadata have no dpop_signing_alg_values_supported')
  return algorithms
}

async function push(lab: Lab, overrides: Params = {}) {
  const { client, params } = await lab.request(overrides)
  const seen = await lab.push(params, client)
  return { client, params, seen, uri: String(membersOf(seen)?.['request_uri']) }
}

function visit(lab: Lab, params: Params) {
  const url = `${lab.server.endpoint('authorization_endpoint')}?${encode(params)}`
  return lab.browser.visit({ url }, { redirectUri })
}
