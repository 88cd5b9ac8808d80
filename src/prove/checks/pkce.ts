import { type Check, checksBy } from '../check.ts'
import { endsWithError, endsWithout, noToken, observe, rejected, tokens } from '../expect.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { noChallenge } from '../params.ts'
import { random, sha256 } from '../tokens.ts'
import { confidential } from './refresh.ts'

const verifierErrors = ['invalid_grant', 'invalid_request']

/** RFC 7636, and what RFC 9700 says about leaving it out on the way. */
export const pkceChecks: readonly Check[] = checksBy({
  'rfc7636-4.2-s256-mandatory': async (lab) => {
    const code = await lab.code({ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' })
    return judge(
      await lab.redeem(code, { code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' }),
      tokens,
    )
  },
  'rfc7636-4.6-mismatch-invalid-grant': async (lab) => {
    const code = await lab.code()
    const [last = ''] = code.verifier.slice(-1)
    const wrong = code.verifier.slice(0, -1) + (last === 'A' ? 'B' : 'A')
    return judge(await lab.redeem(code, { code_verifier: wrong }), noToken, rejected('invalid_grant'))
  },
  'rfc7636-4.6-verify-s256': async (lab) => {
    const code = await lab.code()
    const seen = await lab.redeem(code, { code_verifier: sha256(code.verifier) })
    return judge(seen, noToken, rejected('invalid_grant'))
  },
  'rfc7636-4.5-verifier-required': async (lab) =>
    judge(
      await lab.redeem(await lab.code(), { code_verifier: undefined }),
      noToken,
      rejected(...verifierErrors),
    ),
  'rfc7636-4.5-verifier-required/empty': async (lab) =>
    judge(await lab.redeem(await lab.code(), { code_verifier: '' }), noToken, rejected(...verifierErrors)),
  'rfc7636-4.1-verifier-syntax': async (lab) => {
    const verifiers = ['a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(42)}+`]
    const judged = []
    for (const verifier of verifiers) {
      const { asked, ...ended } = await lab.authorize({ code_challenge: sha256(verifier) })
      const code = ended.kind === 'callback' ? ended.params.get('code') : null
      if (code === null) return endsWithout(ended)
      const seen = await lab.redeem({ ...asked, code, ended, verifier })
      judged.push(judge(seen, noToken, rejected(...verifierErrors)))
    }
    return judgeEach(...judged)
  },
  'rfc7636-4.2-challenge-syntax': async (lab) => {
    const judged = []
    for (const challenge of ['a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(42)}=`])
      judged.push(endsWithout(await lab.authorize({ code_challenge: challenge }), 'invalid_request'))
    return judgeEach(...judged)
  },
  'rfc7636-4.4.1-challenge-required': async (lab) => {
    const client = await lab.client(lab.traits.methods[0] === 'none' ? 'none' : 'main')
    const ended = await lab.authorize(noChallenge, { client })
    return endsWithout(ended, 'invalid_request')
  },
  'rfc7636-4.3-method-default-plain': async (lab) => {
    const { asked, ...ended } = await lab.authorize({ code_challenge_method: undefined })
    const code = ended.kind === 'callback' ? ended.params.get('code') : null
    if (code === null) return endsWithout(ended, 'invalid_request')
    return judge(await lab.redeem({ ...asked, code, ended }), noToken)
  },
  'rfc7636-4.4.1-method-unsupported': async (lab) =>
    endsWithout(await lab.authorize({ code_challenge_method: 'S512' }), 'invalid_request'),
  'rfc7636-4.4.1-method-unsupported/plain': async (lab) => {
    if (lab.server.supports('code_challenge_methods_supported', 'plain'))
      throw new NotApplicable('the metadata have plain')
    const verifier = random(32)
    const ended = await lab.authorize({ code_challenge: verifier, code_challenge_method: 'plain' })
    return endsWithout(ended, 'invalid_request')
  },
  'rfc7636-4.4-bound-to-code': async (lab) => {
    const [one, other] = [await lab.code(), await lab.code()]
    return judge(await lab.redeem(one, { code_verifier: other.verifier }), noToken, rejected('invalid_grant'))
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
  'rfc9700-2.1.1-pkce-supported': async (lab) => {
    const client = await confidential(lab)
    const code = await lab.code({}, { client })
    return judge(await lab.redeem(code, { code_verifier: random(32) }), noToken, rejected(...verifierErrors))
  },
  'rfc9700-2.1.1-downgrade': async (lab) => {
    const client = await confidential(lab)
    const { asked, ...ended } = await lab.authorize(noChallenge, { client })
    const code = ended.kind === 'callback' ? ended.params.get('code') : null
    // Where every request needs a challenge, none can be removed.
    if (code === null) return endsWithout(ended)
    return judge(
      await lab.redeem({ ...asked, code, ended }, { code_verifier: asked.verifier }),
      noToken,
      rejected(...verifierErrors),
    )
  },
  'rfc8252-8.1-native-pkce-required': async (lab) =>
    endsWithError(await lab.authorize(noChallenge, { client: await lab.client('none') }), 'invalid_request'),
})
