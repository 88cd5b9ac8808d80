import { type Check, checksBy } from '../check.ts'
import { header, withoutHeader } from '../expect.ts'
import { judge, judgeEach } from '../observation.ts'
import { encode } from '../params.ts'

/** Which endpoints scripts of other origins may use. */
export const crossOriginChecks: readonly Check[] = checksBy({
  'rfc9700-2.6-no-cors-authorize': async (lab) => {
    const { asked } = await lab.authorize()
    const url = `${lab.server.endpoint('authorization_endpoint')}?${encode(asked.params)}`
    const seen = await lab.wire.send({ url, headers: { origin: 'https://evil.example' } })
    return judge(seen, withoutHeader('access-control-allow-origin'))
  },
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
})
