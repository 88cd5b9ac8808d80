import { systemClock } from '../../system/system.ts'
import { type Check, checksBy } from '../check.ts'
import { errorCharset, observe, status } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable } from '../observation.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §3.2, §4.1.3 and §5: the exchange of a code. */
export const tokenChecks: readonly Check[] = checksBy({
  'rfc6749-5.1-expires-in-number/introspection': async (lab) => {
    const client = await lab.confidential()
    const { accessToken, seen, members } = await lab.grant({}, { client })
    const inspected = await lab.post('introspection_endpoint', { token: accessToken }, { client })
    const { exp } = membersOf(inspected) ?? {}
    if (typeof exp !== 'number') throw new NotApplicable('introspection shows no exp')
    const differs = Math.abs(exp - systemClock() - Number(members['expires_in']))
    return observe(differs <= 10, `expires_in and exp differ by ${differs} s`, seen, inspected)
  },
  'rfc6749-5.2-error-charset': async (lab) => {
    const client = await lab.client()
    const grantType = 'größe "\\\u0007'
    return judge(
      await lab.post('token_endpoint', { grant_type: grantType }, { client }),
      status(400),
      errorCharset,
    )
  },
  'rfc6749-3.2-post-only': async (lab) => {
    const seen = await lab.wire.send({ url: await exchangeInQuery(lab) })
    return observe(
      seen.status >= 400 && membersOf(seen)?.['access_token'] === undefined,
      `GET gets status ${seen.status}`,
      seen,
    )
  },
  'rfc6749-4.1.3-form-utf8': async (lab) => {
    const inQuery = await lab.wire.send({
      url: await exchangeInQuery(lab),
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: '',
    })
    return observe(
      membersOf(inQuery)?.['access_token'] === undefined,
      'the parameters of the query are read',
      inQuery,
    )
  },
  'rfc6749-10.10-entropy': async (lab) => {
    const [first, other] = [await lab.grant(), await lab.grant()]
    const values = [first.code, other.code, first.accessToken, other.accessToken]
    const short = values.filter((value) => value.length < 22)
    return judgeEach(
      observe(new Set(values).size === 4, 'two grants have the same code or token', first.seen, other.seen),
      observe(
        short.length === 0,
        `a code or token has ${short[0]?.length} characters: fewer than 128 bits`,
        first.seen,
      ),
    )
  },
  'rfc6749-10.10-entropy/prefix': async (lab) => {
    const [first, other] = [await lab.code(), await lab.code()]
    const same = [...first.code].filter((character, at) => character === other.code[at]).length
    return observe(
      first.code.length - same >= 16,
      `${same} of ${first.code.length} characters are the same`,
      first.ended.seen,
      other.ended.seen,
    )
  },
})

/** Returns the URL of a token request with its parameters in the query, which a server must not read. */
async function exchangeInQuery(lab: Lab): Promise<string> {
  const { code, verifier, client } = await lab.code()
  const fields = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    client_id: client.id,
    code_verifier: verifier,
  })
  return `${lab.server.endpoint('token_endpoint')}?${fields}`
}
