/** Documents and client_ids of any form: each is accepted by the rules, or rejected with an error of RFC 6749. */
import t from 'tap'
import { OAuthError } from '../../src/domain/errors.ts'
import { declared } from '../../src/features.ts'
import {
  assertClientIdUrl,
  type DocumentPolicy,
  isDocumentUrl,
  longestDocument,
  readDocument,
} from '../../src/specs/client-id-metadata/rules.ts'
import { fc } from '../helpers/generated.ts'

const policy: DocumentPolicy = {
  mode: 'any',
  allowed: [],
  formerHosts: [],
  metadataBytes: 8192,
  isDevelopment: false,
  scopes: ['openid', 'courses:read'],
  algorithms: ['RS256', 'ES256'],
  declared,
}
const id = 'https://agents.example/client.json'

/** Whether it passes. A rejection is an error that a page can show, with a description within its charset. */
function passes(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    if (error.code !== 'invalid_client' || error.status !== 400) throw error
    if (!/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(error.message)) throw error
    return false
  }
}

const part = fc.constantFrom(
  ...[
    'a',
    'A',
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '%2f',
    '/',
    '//',
    '\\',
    '@',
    ':',
    ':443',
    '?',
    '#',
    ' ',
    '\t',
    'é',
  ],
  ...['client.json', 'agents.example', '127.0.0.1', '[::1]', '%', '%zz', '\0', '。', '://', 'x:y@'],
)

t.test('[cimd-3-client-id-url] what is accepted means the same to a URL parser', async (t) => {
  let accepted = 0
  const begin = fc.constantFrom(
    'https://agents.example/',
    'https://agents.example',
    'https://',
    'HTTPS://a/',
    'http://a/',
  )
  fc.assert(
    fc.property(begin, fc.array(part, { maxLength: 6 }), (start, parts) => {
      const text = start + parts.join('')
      if (!isDocumentUrl(text) || !passes(() => assertClientIdUrl(text, policy))) return
      accepted += 1
      const url = new URL(text)
      const [, host, rest] = /^https:\/\/([^/]*)(\/.*)$/.exec(text) ?? []
      t.equal(url.protocol, 'https:')
      t.strictSame([url.username, url.password, url.hash], ['', '', ''], text)
      t.equal(url.pathname + url.search, rest?.replace(/\?$/, ''), `nothing is removed from ${text}`)
      t.equal(url.host, host?.toLowerCase().replace(/:443$/, ''), text)
    }),
    { numRuns: 3000 },
  )
  t.ok(accepted > 100, `${accepted} were accepted`)
})

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    '',
    'none',
    'private_key_jwt',
    'client_secret_post',
    'openid',
    'openid unknown',
    'RS256',
    'none ',
  ),
)
const uri = fc.constantFrom(
  ...[
    'https://a.example/cb',
    'http://127.0.0.1/cb',
    'http://localhost:1/',
    'http://[::1]/',
    'app:/cb',
    'https://a.example/#x',
  ],
  ...[
    'http://a.example/',
    'javascript:alert(1)',
    'https://u@a.example/',
    'https://a.example/?code=1',
    '//a.example',
  ],
)
const anything = fc.oneof(text, uri, fc.jsonValue({ maxDepth: 2 }), fc.array(uri, { maxLength: 4 }))
const name = fc.constantFrom(
  ...[
    'client_id',
    'client_name',
    'redirect_uris',
    'token_endpoint_auth_method',
    'jwks',
    'jwks_uri',
    'grant_types',
  ],
  ...[
    'scope',
    'client_uri',
    'logo_uri',
    'contacts',
    'client_secret',
    'client_secret_expires_at',
    '__proto__',
  ],
  ...[
    'id_token_signed_response_alg',
    'post_logout_redirect_uris',
    'client_name#fr',
    'trusted_issuers',
    'legacy_audience',
  ],
  ...[
    'require_pushed_authorization_requests',
    'application_type',
    'software_id',
    'default_max_age',
    'unknown',
  ],
)
const document = fc
  .array(fc.tuple(name, anything), { maxLength: 8 })
  .map((members) =>
    Object.fromEntries([['client_id', id], ['redirect_uris', ['https://a.example/cb']], ...members]),
  )

t.test(
  '[cimd-4.1-no-shared-secrets] [cimd-4.5-redirect-from-document] a document that is accepted keeps the rules',
  async (t) => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof({ weight: 9, arbitrary: document }, { weight: 1, arbitrary: fc.jsonValue() }),
        (json) => {
          if (!passes(() => readDocument(json, id, policy))) return
          accepted += 1
          const client = readDocument(json, id, policy)
          const members = json as Record<string, unknown>
          t.equal(members['client_id'], id)
          t.notOk(Object.keys(members).some((member) => /^client_secret/i.test(member)))
          t.ok(['none', 'private_key_jwt'].includes(client.authenticationMethod))
          t.ok(client.redirectUris.length > 0)
          for (const redirect of [...client.redirectUris, ...client.postLogoutRedirectUris])
            t.match(redirect, /^https:\/\/a\.example\/cb$|^http:\/\/(127\.0\.0\.1|localhost:1|\[::1\])\//)
          for (const member of ['trusted_issuers', 'legacy_audience']) t.notOk(member in (client.extra ?? {}))
          t.equal(client.consent, 'remember')
          t.equal(client.pkceOptional, false)
          t.equal(client.published?.host, 'agents.example')
          t.ok(JSON.stringify(client).length < 4 * longestDocument)
        },
      ),
      { numRuns: 3000 },
    )
    t.ok(accepted > 100, `${accepted} were accepted`)
  },
)
