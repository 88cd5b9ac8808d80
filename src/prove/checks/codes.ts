import { type Check, checksBy } from '../check.ts'
import { denies, observe, rejected } from '../expect.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §4.1.2 and §4.1.3: what a code is bound to, and that it works once. */
export const codeChecks: readonly Check[] = checksBy({
  'rfc6749-4.1.3-redirect-uri-required': async (lab) => {
    const seen = await lab.redeem(await lab.code(), { redirect_uri: undefined })
    // OAuth 2.1 §10.2 leaves it out: the challenge binds the code.
    if (membersOf(seen)?.['access_token'] !== undefined)
      throw new NotApplicable('the server takes a code without redirect_uri, as OAuth 2.1 allows')
    return judge(seen, rejected('invalid_grant', 'invalid_request'))
  },
  'rfc6749-4.1.3-code-valid': async (lab) => {
    const code = await lab.code()
    const changed = [`${code.code}A`, code.code.slice(0, -1), [...code.code].reverse().join('')]
    const judged = []
    for (const value of changed) judged.push(denies(await lab.redeem(code, { code: value }), 'invalid_grant'))
    return judgeEach(...judged)
  },
  'rfc6749-4.1.2-code-single-use': async (lab) => {
    const grant = await lab.grant()
    return denies(await lab.redeem(grant), 'invalid_grant')
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
  'rfc6749-4.1.2-code-replay-revokes': async (lab) => {
    const grant = await lab.grant()
    const before = await lab.isActive(grant.accessToken, grant.client)
    const again = await lab.redeem(grant)
    const after = await lab.isActive(grant.accessToken, grant.client)
    return observe(
      before.active && !after.active,
      before.active ? 'the access token still works' : 'the access token did not work before',
      before.seen,
      again,
      after.seen,
    )
  },
  'oauth21-7.5.2-replay-only-if-valid': async (lab) => {
    const grant = await lab.grant()
    const again = await lab.redeem(grant, { code_verifier: 'a'.repeat(43) })
    const after = await lab.isActive(grant.accessToken, grant.client)
    return observe(after.active, 'the access token no longer works', again, after.seen)
  },
})
