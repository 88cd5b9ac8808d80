import { type Check, checksBy } from '../check.ts'
import { redirectUri } from '../clients.ts'
import { denies, noToken, observe, rejected } from '../expect.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { noChallenge } from '../params.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §4.1.2 and §4.1.3: what a code is bound to, and that it works once. */
export const codeChecks: readonly Check[] = checksBy({
  'rfc6749-4.1.3-redirect-uri-required': async (lab) => {
    // OpenID Connect lets a client with one redirect URI leave it out: this one has two, unless it is the operator's.
    const registers = lab.server.metadata['registration_endpoint'] !== undefined && !lab.traits.pushes
    const uris = { redirect_uris: [redirectUri, `${redirectUri}/second`] }
    const client = await lab.confidential(registers ? uris : {})
    const { asked, ...ended } = await lab.authorize(noChallenge, { client })
    const code = ended.kind === 'callback' ? ended.params.get('code') : null
    const got = code === null ? await lab.code({}, { client }) : { ...asked, code, ended }
    const seen = await lab.redeem(got, { redirect_uri: undefined })
    // OAuth 2.1 §10.2 leaves it out where a challenge binds the code.
    const isOne = [client.metadata['redirect_uris']].flat().length === 1 && lab.server.openid !== undefined
    if (membersOf(seen)?.['access_token'] !== undefined && (code === null || isOne))
      throw new NotApplicable(
        'the server accepts a code without redirect_uri, as OAuth 2.1 and OpenID Connect allow',
      )
    return judge(seen, noToken, rejected('invalid_grant', 'invalid_request'))
  },
  'rfc6749-4.1.3-code-valid': async (lab) => {
    const code = await lab.code()
    const changed = [`${code.code}A`, code.code.slice(0, -1), [...code.code].reverse().join('')]
    const judged = []
    for (const value of changed) judged.push(denies(await lab.redeem(code, { code: value }), 'invalid_grant'))
    return judgeEach(...judged)
  },
  'rfc6749-4.1.2-code-single-use/race': async (lab) => {
    const code = await lab.code()
    const all = await Promise.all(Array.from({ length: 10 }, () => lab.redeem(code)))
    const won = all.filter((seen) => membersOf(seen)?.['access_token'] !== undefined)
    return observe(
      won.length <= 1,
      `${won.length} of 10 got tokens`,
      ...(won.length > 1 ? won.slice(0, 2) : all.slice(0, 1)),
    )
  },
})
