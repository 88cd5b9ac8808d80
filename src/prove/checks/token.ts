import { type Check, must, should } from '../check.ts'
import {
  error,
  errorCharset,
  json,
  member,
  noStore,
  noToken,
  observe,
  rejected,
  status,
  tokens,
} from '../expect.ts'
import { judge, judgeEach } from '../observation.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §3.2, §4.1.3 and §5: the exchange of a code. */
export const tokenChecks: readonly Check[] = [
  must(
    'rfc6749-5.1-success-shape',
    'success is 200, and JSON with access_token and token_type as strings',
    async (lab) => {
      const { seen } = await lab.grant()
      const isText = (value: unknown) => typeof value === 'string' && value !== ''
      return judge(
        seen,
        status(200),
        json,
        member('access_token', isText, 'a string'),
        member('token_type', isText, 'a string'),
      )
    },
  ),
  should('rfc6749-5.1-expires-in-number', 'expires_in is a number of seconds', async (lab) =>
    judge(
      (await lab.grant()).seen,
      member('expires_in', (value) => Number.isFinite(value) && Number(value) > 0, 'a number'),
    ),
  ),
  must(
    'rfc6749-5.1-no-store',
    'a response with tokens is not stored: Cache-Control has no-store',
    async (lab) => judge((await lab.grant()).seen, noStore),
  ),
  must('rfc6749-5.2-status-400', 'an error is status 400, and JSON with error as a string', async (lab) => {
    const seen = await lab.redeem(await lab.code(), { code: 'lychgate-prove' })
    return judge(seen, status(400), json, error())
  }),
  must(
    'rfc6749-5.2-error-charset',
    'error and error_description have printable ASCII alone, whatever the request has',
    async (lab) => {
      const client = await lab.client()
      const grantType = 'größe "\\\u0007'
      return judge(
        await lab.post('token_endpoint', { grant_type: grantType }, { client }),
        status(400),
        errorCharset,
      )
    },
  ),
  must('rfc6749-3.2-post-only', 'tokens are not issued by GET', async (lab) => {
    const { code, verifier, client } = await lab.code()
    const fields = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: client.redirectUri,
      client_id: client.id,
      code_verifier: verifier,
    })
    const seen = await lab.wire.send({ url: `${lab.server.endpoint('token_endpoint')}?${fields}` })
    return observe(
      seen.status >= 400 && membersOf(seen)?.['access_token'] === undefined,
      `GET gets status ${seen.status}`,
      seen,
    )
  }),
  must('rfc6749-3.2-no-duplicates', 'a parameter that is sent twice is invalid_request', async (lab) => {
    const code = await lab.code()
    return judge(
      await lab.redeem(code, { code: [code.code, code.code] }),
      noToken,
      rejected('invalid_request'),
    )
  }),
  must(
    'rfc6749-3.2-no-duplicates/grant_type',
    'grant_type that is sent twice is invalid_request',
    async (lab) =>
      judge(
        await lab.redeem(await lab.code(), { grant_type: ['authorization_code', 'authorization_code'] }),
        noToken,
        rejected('invalid_request'),
      ),
  ),
  must('rfc6749-3.2-ignore-unknown', 'an unknown parameter is ignored', async (lab) =>
    judge(await lab.redeem(await lab.code(), { lychgate_prove: 'unknown' }), tokens),
  ),
  must('rfc6749-3.2-empty-as-omitted', 'a parameter without a value counts as left out', async (lab) =>
    judge(await lab.redeem(await lab.code(), { code: '' }), noToken, rejected('invalid_request')),
  ),
  must('rfc6749-4.1.3-grant-type-required', 'a request without grant_type is invalid_request', async (lab) =>
    judge(
      await lab.redeem(await lab.code(), { grant_type: undefined }),
      noToken,
      rejected('invalid_request'),
    ),
  ),
  must('rfc6749-4.1.3-code-required', 'a request without code is invalid_request', async (lab) =>
    judge(await lab.redeem(await lab.code(), { code: undefined }), noToken, rejected('invalid_request')),
  ),
  must('rfc9700-2.4-no-password-grant', 'the password grant is not offered', async (lab) => {
    const client = await lab.client()
    const seen = await lab.post(
      'token_endpoint',
      { grant_type: 'password', username: 'lychgate-prove', password: 'none' },
      { client },
    )
    const isListed = lab.server.supports('grant_types_supported', 'password')
    return judgeEach(
      judge(seen, noToken, error('unsupported_grant_type', 'unauthorized_client', 'invalid_client')),
      observe(!isListed, 'grant_types_supported has password', seen),
    )
  }),
  must('fapi2-5.3.2.1-no-password-grant', 'the password grant is rejected', async (lab) => {
    const client = await lab.client()
    const seen = await lab.post(
      'token_endpoint',
      { grant_type: 'password', username: 'lychgate-prove', password: 'none' },
      { client, key: lab.key },
    )
    return judge(seen, noToken, error('unsupported_grant_type', 'unauthorized_client'))
  }),
  must('fapi2-5.3.2.2-code-once', 'a code that was used is rejected', async (lab) =>
    judge(await lab.redeem(await lab.grant()), noToken, rejected('invalid_grant')),
  ),
  must(
    'rfc6749-4.1.3-form-utf8',
    'the parameters are read from the form, and neither from JSON nor from the query',
    async (lab) => {
      const { code, verifier, client } = await lab.code()
      const fields = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: client.redirectUri,
        client_id: client.id,
        code_verifier: verifier,
      }
      const url = lab.server.endpoint('token_endpoint')
      const inQuery = await lab.wire.send({
        url: `${url}?${new URLSearchParams(fields)}`,
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
  ),
  should('oauth21-3.2.3-scope-always', 'the response has scope', async (lab) =>
    judge(
      (await lab.grant()).seen,
      member('scope', (value) => typeof value === 'string', 'a string'),
    ),
  ),
  must(
    'rfc6749-10.10-entropy',
    'codes and tokens are long enough not to be guessed, and never the same',
    async (lab) => {
      const [one, other] = [await lab.grant(), await lab.grant()]
      const values = [one.code, other.code, one.accessToken, other.accessToken]
      const short = values.filter((value) => value.length < 22)
      return judgeEach(
        observe(new Set(values).size === 4, 'two grants have the same code or token', one.seen, other.seen),
        observe(
          short.length === 0,
          `a code or token has ${short[0]?.length} characters: fewer than 128 bits`,
          one.seen,
        ),
      )
    },
  ),
  must(
    'rfc6749-10.10-entropy/prefix',
    'two codes differ in most of their characters: they are not counted up',
    async (lab) => {
      const [one, other] = [await lab.code(), await lab.code()]
      const same = [...one.code].filter((character, at) => character === other.code[at]).length
      return observe(
        one.code.length - same >= 16,
        `${same} of ${one.code.length} characters are the same`,
        one.ended.seen,
        other.ended.seen,
      )
    },
  ),
  should('rfc6750-5.3-short-lived', 'access tokens live an hour or less', async (lab) =>
    judge(
      (await lab.grant()).seen,
      member('expires_in', (value) => Number(value) <= 3600, 'at most 3600'),
    ),
  ),
]
