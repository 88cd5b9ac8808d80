import t from 'tap'
import { OAuthError, type OAuthErrorCode } from '../../src/domain/errors.ts'

const statusOf = (code: OAuthErrorCode, status?: number) =>
  new OAuthError(code, 'it is wrong', { rule: 'a-rule', ...(status !== undefined && { status }) }).status

t.test('the status of an error is that of the document which registers its code', async (t) => {
  t.strictSame([statusOf('invalid_client'), statusOf('invalid_token')], [401, 401])
  t.strictSame([statusOf('access_denied'), statusOf('insufficient_scope')], [403, 403])
  t.strictSame([statusOf('server_error'), statusOf('temporarily_unavailable')], [500, 503])
  const codes = [
    'invalid_request',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_grant_type',
    'unsupported_response_type',
    'invalid_scope',
    'invalid_redirect_uri',
    'invalid_client_metadata',
    'invalid_target',
    'login_required',
    'consent_required',
    'account_selection_required',
    'request_not_supported',
    'request_uri_not_supported',
    'registration_not_supported',
    'unmet_authentication_requirements',
  ] as const
  for (const code of codes) t.equal(statusOf(code), 400, code)
  t.equal(statusOf('use_dpop_nonce'), 400, 'the code of a feature, unless it says otherwise')
  t.equal(statusOf('invalid_client', 400), 400, 'an error may have another status')
  t.equal(statusOf('invalid_request', 413), 413)
})

t.test('an error has a code, a description, and the cause and headers that it was made with', async (t) => {
  const cause = new Error('why')
  const headers = { 'retry-after': '5' }
  const error = new OAuthError('temporarily_unavailable', 'try again', { rule: 'a-rule', cause, headers })
  t.equal(error.name, 'OAuthError')
  t.equal(error.code, 'temporarily_unavailable')
  t.equal(error.message, 'try again')
  t.equal(error.cause, cause)
  t.strictSame(error.headers, headers)
  const least = new OAuthError('invalid_request', 'it is wrong', { rule: 'a-rule' })
  t.strictSame([Object.hasOwn(least, 'cause'), least.headers], [false, {}])
})
