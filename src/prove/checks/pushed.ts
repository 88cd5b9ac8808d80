import { type Check, checksBy } from '../check.ts'
import type { Client } from '../clients.ts'
import { denies, endsWithCode, endsWithout, noToken, observe, status } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import type { Params } from '../params.ts'
import { membersOf } from '../server.ts'
import { createKey, random } from '../tokens.ts'

/** RFC 9126 and RFC 9449: pushed requests, and tokens that are bound to a key. */
export const pushedChecks: readonly Check[] = checksBy({
  'rfc9126-4-use': async (lab) => {
    const { client, uri, params } = await push(lab)
    const ended = await visit(lab, client, { request_uri: uri, state: 'lychgate-prove' })
    const state = ended.kind === 'callback' ? ended.params.get('state') : undefined
    return judgeEach(
      endsWithCode(ended),
      observe(state === params['state'], `state is ${String(state)}, which was not pushed`, ended.seen),
    )
  },
  'rfc9126-4-one-time': async (lab) => {
    const { client, uri } = await push(lab)
    const first = await visit(lab, client, { request_uri: uri })
    return judgeEach(endsWithCode(first), endsWithout(await visit(lab, client, { request_uri: uri })))
  },
  'rfc9126-2.1-reject-request-uri/pushed': async (lab) =>
    denies((await push(lab, { request_uri: (await push(lab)).uri })).seen),
  'rfc9126-2.2-unguessable-and-bound': async (lab) => {
    const [{ uri }, other] = [await push(lab), await lab.client('other')]
    return endsWithout(await visit(lab, other, { request_uri: uri }))
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
  const seen = await lab.push(params, client, client)
  return { client, params, seen, uri: String(membersOf(seen)?.['request_uri']) }
}

/** Sends parameters by the browser. */
function visit(lab: Lab, client: Client, more: Params) {
  return lab.begin({ client_id: client.id, ...more }, client, { plain: true })
}
