import t from 'tap'
import { clauseOf } from '../../src/observability/clause-of-rule.ts'

const rfc = 'https://www.rfc-editor.org/rfc/rfc'

t.test('a rule id names its document and section', async (t) => {
  const rows: readonly [string, string, string?][] = [
    ['rfc6749-4.1.2-code-single-use', 'RFC 6749 §4.1.2', `${rfc}6749#section-4.1.2`],
    ['rfc6749-B-form-encoding', 'RFC 6749 appendix B', `${rfc}6749#appendix-B`],
    ['rfc8707-2-unknown-invalid-target', 'RFC 8707 §2', `${rfc}8707#section-2`],
    [
      'oidc-core-3.1.2.1-prompt-none',
      'OpenID Connect Core §3.1.2.1',
      'https://openid.net/specs/openid-connect-core-1_0.html',
    ],
    [
      'oauth21-7.5.2-replay-only-if-valid',
      'OAuth 2.1 §7.5.2',
      'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-v2-1#section-7.5.2',
    ],
    [
      'rfc7523bis-4-aud-sole-value',
      'RFC 7523bis §4',
      'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-rfc7523bis#section-4',
    ],
    ['service-5-registration-loopback-only', 'the service specification §5'],
    ['mcp-security-refresh-rotation', 'MCP authorization'],
    ['lychgate-rate-limit', 'a rule of this server'],
  ]
  for (const [rule, name, url] of rows) t.strictSame(clauseOf(rule), { name, ...(url && { url }) }, rule)
})
