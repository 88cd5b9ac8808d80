import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import type { Dice } from './dice.ts'
import { markup } from './values.ts'

/** Client metadata that registration accepts, RFC 7591 §2. */
export function metadata(dice: Dice): Record<string, unknown> {
  const port = dice.oneIn(2) ? '' : `:${1 + dice.below(65_535)}`
  const optional: Record<string, unknown> = {
    client_name: dice.pick(['A tool', 'Verktyg \u00e5', 'x'.repeat(200), ...markup]),
    'client_name#sv': 'Ett verktyg',
    client_uri: 'https://tool.example/',
    grant_types: dice.pick([
      ['authorization_code'],
      ['authorization_code', 'refresh_token'],
      ['authorization_code', 'refresh_token', grantType],
    ]),
    response_types: ['code'],
    application_type: 'native',
    scope: 'openid email courses:read',
    contacts: ['ops@tool.example'],
    token_endpoint_auth_method: dice.pick(['none', 'client_secret_post', 'client_secret_basic']),
    default_max_age: dice.below(1000),
    require_auth_time: dice.oneIn(2),
    dpop_bound_access_tokens: dice.oneIn(2),
    id_token_signed_response_alg: dice.pick(['RS256', 'ES256', 'EdDSA']),
    post_logout_redirect_uris: ['http://127.0.0.1/bye'],
    software_id: 'tool',
  }
  const host = dice.pick(['127.0.0.1', '127.0.0.1', '[::1]'])
  const path = dice.pick(['/callback', '/cb?tenant=a%20b', '/'])
  return {
    redirect_uris: [`http://${host}${port}${path}`],
    ...Object.fromEntries(dice.some(Object.entries(optional))),
  }
}
