import type { Fault } from './fault.ts'

const trust = 'src/specs/rfc7523-client-assertions/rules/trust.ts'
const plugin = 'src/specs/rfc7523-client-assertions/plugin.ts'
const keySets = 'src/outbound/key-sets.ts'
const tests = ['test/conformance/rfc7523-trusted-issuers.test.ts']

/** Faults of tokens of another issuer that a client uses in place of a key. */
export const trustedIssuerFaults = [
  {
    id: 'trust-of-any-subject',
    tests,
    file: trust,
    find: 'issuer === iss && subject === sub',
    replace: 'issuer === iss',
  },
  {
    id: 'trust-of-a-subject-that-begins-alike',
    tests,
    file: trust,
    find: 'issuer === iss && subject === sub',
    replace: 'issuer === iss && String(sub).startsWith(subject)',
  },
  {
    id: 'trust-of-any-issuer',
    tests,
    file: trust,
    find: 'issuer === iss && subject === sub',
    replace: 'subject === sub',
  },
  {
    id: 'trusted-token-for-another-audience',
    tests,
    file: trust,
    find: 'audience === soleAudience(aud))',
    replace: '[aud].flat().includes(audience) || true)',
  },
  {
    id: 'trusted-token-for-several-audiences',
    tests,
    file: trust,
    find: 'Array.isArray(aud) && aud.length === 1 ? aud[0] : aud',
    replace: 'Array.isArray(aud) ? aud[0] : aud',
  },
  {
    id: 'trusted-token-for-weeks',
    tests,
    file: trust,
    find: 'const mostSeconds = { once: 3600, reusable: 86_400 }',
    replace: 'const mostSeconds = { once: 3600, reusable: 8_640_000 }',
  },
  {
    id: 'trusted-token-for-a-day-though-not-reusable',
    tests,
    file: trust,
    find: 'trust.reusable ? mostSeconds.reusable : mostSeconds.once',
    replace: 'mostSeconds.reusable',
  },
  {
    id: 'trusted-token-without-jti',
    tests,
    file: trust,
    find: 'if (!trust.reusable) assertIdentifier(claims)',
    replace: '',
  },
  {
    id: 'trusted-token-used-twice',
    tests,
    file: plugin,
    find: 'if (!reusable) await use(assertion, client.id)',
    replace: '',
  },
  {
    id: 'trusted-token-used-once-though-reusable',
    tests,
    file: plugin,
    find: 'if (!reusable) await use(assertion, client.id)',
    replace: 'await use(assertion, client.id)',
  },
  {
    id: 'trusted-header-not-checked',
    tests,
    file: trust,
    find: '  assertHeader(header)\n',
    replace: '',
  },
  {
    id: 'metadata-of-another-issuer-used',
    tests,
    file: keySets,
    find: 'if (document.issuer !== issuer)',
    replace: 'if (document.issuer === undefined)',
  },
  {
    id: 'client-key-signs-for-the-issuer',
    tests,
    file: plugin,
    find: "const found = await fetched('of the trusted issuer', issuer, keys)",
    replace:
      "const found = [...(await fetched('of the trusted issuer', issuer, keys)), ...(await app.clientKeys.keysOf(client, undefined))]",
  },
  {
    id: 'trust-registered-by-anyone',
    tests,
    file: 'src/specs/rfc7523-client-assertions/feature.ts',
    find: 'trusted_issuers: {\n      operatorOnly: true,',
    replace: 'trusted_issuers: {',
  },
  {
    id: 'trust-of-a-pattern',
    tests,
    file: trust,
    find: "if (subject.includes('*'))",
    replace: "if (subject === '*')",
  },
  {
    id: 'trust-that-was-removed-names-the-client',
    tests,
    file: 'src/clients/members.ts',
    find: '.filter((row) => !isIn(rowsAfter, row))',
    replace: '.filter((row) => row.id === undefined && !isIn(rowsAfter, row))',
  },
  {
    id: 'fetched-document-used-forever',
    tests: ['test/outbound/key-sets.test.ts'],
    file: 'src/outbound/documents.ts',
    find: 'if (entry.document !== undefined && now < entry.fetchedAt + ceiling)',
    replace: 'if (entry.document !== undefined)',
  },
  {
    id: 'key-set-fetched-for-every-kid',
    tests: ['test/outbound/key-sets.test.ts'],
    file: 'src/outbound/documents.ts',
    find: 'cached === undefined || now >= cached.triedAt + Math.min(retrySeconds, ceiling)',
    replace: 'cached === undefined || now >= cached.triedAt',
  },
  {
    id: 'two-clients-of-one-subject',
    tests: ['test/cli/client-trust.test.ts'],
    file: 'src/clients/members.ts',
    find: ".map((record): Write => ({ op: 'insert', kind: 'record', record }))",
    replace: ".map((record): Write => ({ op: 'put', kind: 'record', record }))",
  },
  {
    id: 'client-id-ignored-for-a-trusted-token',
    tests,
    file: 'src/http/client-authentication.ts',
    find: "claimed.clientId ?? (await claimed.method.findClientId?.(claimed.proof ?? ''))",
    replace: "(await claimed.method.findClientId?.(claimed.proof ?? '')) ?? claimed.clientId",
  },
] as const satisfies readonly Fault[]
