import { type Check, checksBy } from '../check.ts'
import { denies, endsWithout, noToken, observe } from '../expect.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { noChallenge } from '../params.ts'
import { random, sha256 } from '../tokens.ts'

const verifierErrors = ['invalid_grant', 'invalid_request']

/** RFC 7636, and what RFC 9700 says about leaving it out on the way. */
export const pkceChecks: readonly Check[] = checksBy({
  'rfc7636-4.6-mismatch-invalid-grant': async (lab) => {
    const code = await lab.code()
    const [last = ''] = code.verifier.slice(-1)
    const wrong = code.verifier.slice(0, -1) + (last === 'A' ? 'B' : 'A')
    return denies(await lab.redeem(code, { code_verifier: wrong }), 'invalid_grant')
  },
  'rfc7636-4.6-verify-s256': async (lab) => {
    const code = await lab.code()
    const seen = await lab.redeem(code, { code_verifier: sha256(code.verifier) })
    return denies(seen, 'invalid_grant')
  },
  'rfc7636-4.1-verifier-syntax': async (lab) => {
    const verifiers = ['a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(42)}+`]
    const judged = []
    for (const verifier of verifiers) {
      const { asked, ...ended } = await lab.authorize({ code_challenge: sha256(verifier) })
      const code = ended.kind === 'callback' ? ended.params.get('code') : null
      if (code === null) return endsWithout(ended)
      const seen = await lab.redeem({ ...asked, code, ended, verifier })
      judged.push(denies(seen, ...verifierErrors))
    }
    return judgeEach(...judged)
  },
  'rfc7636-4.3-method-default-plain': async (lab) => {
    const { asked, ...ended } = await lab.authorize({ code_challenge_method: undefined })
    const code = ended.kind === 'callback' ? ended.params.get('code') : null
    if (code === null) return endsWithout(ended, 'invalid_request')
    return judge(await lab.redeem({ ...asked, code, ended }), noToken)
  },
  'rfc7636-4.4.1-method-unsupported/plain': async (lab) => {
    if (lab.server.supports('code_challenge_methods_supported', 'plain'))
      throw new NotApplicable('the metadata have plain')
    const verifier = random(32)
    const ended = await lab.authorize({ code_challenge: verifier, code_challenge_method: 'plain' })
    return endsWithout(ended, 'invalid_request')
  },
  'rfc7636-4.4-bound-to-code': async (lab) => {
    const [one, other] = [await lab.code(), await lab.code()]
    return denies(await lab.redeem(one, { code_verifier: other.verifier }), 'invalid_grant')
  },
  'rfc7636-4.4-challenge-not-exposed': async (lab) => {
    const { code, params, ended } = await lab.code()
    const challenge = String(params['code_challenge'])
    const texts = [
      String(ended.seen.headers.location ?? ended.seen.body),
      Buffer.from(code, 'base64url').toString('latin1'),
    ]
    return observe(!texts.some((text) => text.includes(challenge)), 'the response shows it', ended.seen)
  },
  'rfc9700-2.1.1-downgrade': async (lab) => {
    const client = await lab.confidential()
    const { asked, ...ended } = await lab.authorize(noChallenge, { client })
    const code = ended.kind === 'callback' ? ended.params.get('code') : null
    // Where every request needs a challenge, none can be removed.
    if (code === null) return endsWithout(ended)
    return denies(
      await lab.redeem({ ...asked, code, ended }, { code_verifier: asked.verifier }),
      ...verifierErrors,
    )
  },
})
