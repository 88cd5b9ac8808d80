import type { Fault } from './fault.ts'

const rule = 'rfc7591-3-initial-access-token'
const tests = ['test/conformance/rfc7591-initial-access-token.test.ts']
const token = 'src/domain/initial-token.ts'
const rules = 'src/specs/rfc7591-registration/rules.ts'
const metadata = 'src/clients/metadata.ts'

/** Faults of initial access tokens, RFC 7591 §3. */
export const initialTokenFaults = [
  {
    id: 'initial-token-never-expires',
    rule,
    file: token,
    find: 'if (token === undefined || now >= token.expiresAt)',
    replace: 'if (token === undefined)',
  },
  {
    id: 'initial-token-used-any-number-of-times',
    rule,
    file: token,
    find: 'token.used < token.uses,',
    replace: 'token.uses > 0,',
  },
  {
    id: 'initial-token-use-not-counted',
    rule,
    file: 'src/specs/rfc7591-registration/plugin.ts',
    find: 'update(initialTokenKind, spent), ...writes',
    replace: '...writes',
  },
  {
    id: 'unknown-initial-token-is-no-token',
    rule,
    file: rules,
    find: "if (credentials.kind === 'malformed') throw wrongInitialToken",
    replace:
      "if (credentials.kind !== 'token') return undefined\n  if (credentials.token === '') throw wrongInitialToken",
  },
  {
    id: 'https-redirects-for-everyone',
    rule: 'service-5-registration-loopback-only',
    file: metadata,
    find: "(admission?.redirects === 'https' && isHttpsRedirect(uri))",
    replace: 'isHttpsRedirect(uri)',
  },
  {
    id: 'https-redirects-with-any-initial-token',
    tests,
    file: metadata,
    find: "(admission?.redirects === 'https' && isHttpsRedirect(uri))",
    replace: '(admission !== undefined && isHttpsRedirect(uri))',
  },
  {
    id: 'operator-members-with-an-initial-token',
    tests,
    file: 'src/clients/members.ts',
    find: '!operatorOnly || withToken',
    replace: '!operatorOnly || withToken !== null',
  },
  {
    id: 'keys-not-checked-with-an-initial-token',
    tests,
    file: metadata,
    find: "clientAuthentication[metadata.authenticationMethod ?? '']?.assertRegistered?.(metadata.extra ?? {})",
    replace: '',
  },
  {
    id: 'public-client-without-pkce',
    tests,
    file: rules,
    find: "token?.pkce === 'optional' && authenticationMethod !== 'none'",
    replace: "token?.pkce === 'optional'",
  },
  {
    id: 'consent-kept-for-other-redirects',
    tests,
    file: rules,
    find: 'admitted: { ...client.admitted, terms: termsOf(authenticationMethod, said) },',
    replace: 'admitted: client.admitted,',
  },
  {
    id: 'initial-token-ends-with-the-registration',
    tests,
    file: 'src/specs/rfc7591-registration/client-configuration.ts',
    find: 'registrationPolicy({ config, service, keys, declared }, client.admitted)',
    replace: 'registrationPolicy({ config, service, keys, declared })',
  },
  {
    id: 'metadata-of-a-token-lost-by-an-update',
    tests,
    file: rules,
    find: 'withExtra(sent, client.admitted?.extra)',
    replace: 'sent',
  },
  {
    id: 'metadata-of-a-token-replaced-by-a-client',
    tests,
    file: 'src/specs/rfc7523-client-assertions/feature.ts',
    find: 'operatorOnly: true,\n      byToken: true,',
    replace: 'withToken: true,\n      operatorOnly: true,\n      byToken: true,',
  },
  {
    id: 'logo-of-a-stranger-fetched',
    rule: 'rfc7591-5-display-uri-origin',
    file: 'src/pages/client-logo.ts',
    find: "origin === 'registered' && (admitted ?? published) === undefined ? undefined : logoUri",
    replace: "origin === 'registered' && (admitted ?? published) === null ? undefined : logoUri",
  },
  {
    id: 'logo-of-any-type',
    tests: ['test/pages/client-logo.test.ts'],
    file: 'src/pages/theme/theme.ts',
    find: 'return bitmaps.find(([, , matches]) => matches(body))?.[1]',
    replace: 'return kinds.find(([, , matches]) => matches(body))?.[1]',
  },
  {
    id: 'logo-fetched-each-time',
    rule: 'rfc7591-2-display-uris',
    file: 'src/pages/client-logo.ts',
    find: 'if (known !== undefined && clock() < known.expiresAt) return known',
    replace: '',
  },
] as const satisfies readonly Fault[]
