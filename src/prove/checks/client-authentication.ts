import { type Check, checksBy } from '../check.ts'
import { assertionFields, basic, basicMetadata, type Client } from '../clients.ts'
import { noToken, observe, rejected, tokens } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, type Rule } from '../observation.ts'
import { membersOf } from '../server.ts'
import { type Change, clientAssertion } from '../tokens.ts'

/** A malformed request may be named so, too. */
const noClient: readonly Rule[] = [noToken, rejected('invalid_client', 'invalid_request')]

/** RFC 6749 §2.3 and §5.2, RFC 7523 §3: how a client shows which one it is. */
export const clientAuthenticationChecks: readonly Check[] = checksBy({
  'rfc6749-2.2-client-id-not-credential': async (lab) => {
    const client = await lab.client('client_secret_basic')
    const code = await lab.code({}, { client })
    return judgeEach(
      judge(
        await lab.redeem(code, {}, { client: undefined, headers: { authorization: basic(client.id, '') } }),
        ...noClient,
      ),
      judge(
        await lab.redeem(code, { client_id: client.id, client_secret: '' }, { client: undefined }),
        ...noClient,
      ),
    )
  },
  'rfc6749-2.3.1-secret-not-in-uri': async (lab) => {
    const client = await lab.client('client_secret_post')
    const { code, verifier } = await lab.code({}, { client })
    const credentials = new URLSearchParams({ client_id: client.id, client_secret: client.secret ?? '' })
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: client.redirectUri,
      code_verifier: verifier,
    })
    const seen = await lab.wire.send({
      url: `${lab.server.endpoint('token_endpoint')}?${credentials}`,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    })
    return judge(seen, noToken)
  },
  'rfc6749-2.3.1-basic-form-decoding': async (lab) => {
    const client = await lab.client('client_secret_basic')
    const encoded = [client.id, client.secret ?? '']
      .map((text) => [...text].map((one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`).join(''))
      .join(':')
    const code = await lab.code({}, { client })
    const authorization = `Basic ${Buffer.from(encoded).toString('base64')}`
    return judge(await lab.redeem(code, {}, { client: undefined, headers: { authorization } }), tokens)
  },
  'rfc6749-4.4-client-credentials-confidential': async (lab) => {
    const client = await lab.client('none')
    const more = { grant_types: ['authorization_code', 'client_credentials'] }
    const own = await lab.clients.post({ ...basicMetadata('none'), ...more })
    const { client_id: id } = membersOf(own) ?? {}
    const judged = []
    for (const by of typeof id === 'string' ? [client, { ...client, id }] : [client])
      judged.push(
        judge(
          await lab.post('token_endpoint', { grant_type: 'client_credentials' }, { client: by }),
          noToken,
        ),
      )
    return judgeEach(...judged)
  },
  'fapi2-5.3.2.1-client-authentication': async (lab) => {
    const methods = lab.server.list('token_endpoint_auth_methods_supported') ?? []
    const client = await lab.client('private_key_jwt')
    const seen = await byAssertion(lab, client, {})
    return judgeEach(
      judge(seen, (one) => (one.status === 401 ? 'a correct assertion is rejected' : undefined)),
      observe(
        methods.includes('private_key_jwt') || methods.includes('tls_client_auth'),
        `methods are ${methods.join(', ')}`,
        seen,
      ),
    )
  },
})

async function byAssertion(lab: Lab, client: Client, change: Change) {
  const assertion = clientAssertion(client.key ?? lab.key, client.id, lab.server.issuer, change)
  const code = await lab.code({}, { client })
  return lab.redeem(
    code,
    { client_id: client.id, ...assertionFields(assertion) },
    { client: undefined, key: lab.key },
  )
}
