import type { Fault } from './fault.ts'

const folder = 'src/specs/oidc-client'
const requests = `${folder}/rules/requests.ts`
const idToken = `${folder}/rules/id-token.ts`
const first = `${folder}/rules/first-sign-in.ts`
const links = ['test/conformance/oidc-client.test.ts']

/** Faults of the sign-in with an upstream. */
export const upstreamFaults = [
  {
    id: 'upstream-metadata-of-another-issuer',
    rule: 'oidc-disc-4.3-rp-issuer-exact',
    file: requests,
    find: 'provider.issuer === issuer,',
    replace: 'true,',
  },
  {
    id: 'upstream-endpoint-over-http',
    rule: 'oidc-disc-3-rp-endpoints',
    file: requests,
    find: '(/^https:\\/\\/[^#]+$/.test(url) || isLoopbackUri(url))',
    replace: '/^https?:\\/\\/[^#]+$/.test(url)',
  },
  {
    id: 'upstream-response-in-another-browser',
    rule: 'rfc6749-10.12-client-state',
    file: requests,
    find: "isSameText(single(response, 'state'), bindingOf(attempt, browserSecret).state)",
    replace: 'true',
  },
  {
    id: 'upstream-response-twice',
    rule: 'rfc6749-10.12-client-state',
    file: `${folder}/plugin.ts`,
    find: 'accept(current, remove(attemptKind, found.id))',
    replace: 'accept(current)',
  },
  {
    id: 'upstream-response-of-another-upstream',
    rule: 'rfc9700-4.4.2.2-distinct-redirect',
    file: requests,
    find: 'attempt.upstream === upstream,',
    replace: 'true,',
  },
  {
    id: 'upstream-iss-is-not-compared',
    rule: 'rfc9207-2.4-client-compares-iss',
    file: requests,
    find: 'iss === undefined ? !provider.sendsIss : iss === provider.issuer,',
    replace: 'true,',
  },
  {
    id: 'upstream-audience-of-several',
    rule: 'oidc-core-3.1.3.7-rp-aud',
    file: idToken,
    find: 'audiences.every((one) => one === clientId)',
    replace: 'audiences.includes(clientId)',
  },
  {
    id: 'upstream-nonce-is-not-compared',
    rule: 'oidc-core-3.1.3.7-rp-nonce',
    file: idToken,
    find: 'nonce === expected.nonce,',
    replace: 'true,',
  },
  {
    id: 'upstream-userinfo-of-another-user',
    rule: 'oidc-core-5.3.2-rp-sub',
    file: idToken,
    find: "info['sub'] === claims.sub,",
    replace: 'true,',
  },
  {
    id: 'upstream-authentication-without-a-time',
    rule: 'oidc-core-3.1.3.7-rp-auth-time',
    file: idToken,
    find: 'maxAgeSeconds === undefined ? authTime === undefined || isKnown : isFresh',
    replace: 'authTime === undefined || isFresh',
  },
  {
    id: 'upstream-address-that-is-not-verified',
    rule: 'oidc-core-5.7-rp-user-key',
    file: first,
    find: 'domain !== undefined && emailVerified && domains',
    replace: 'domain !== undefined && domains',
  },
  {
    id: 'upstream-address-of-any-domain',
    rule: 'oidc-core-5.7-rp-user-key',
    file: first,
    find: 'emailVerified && domains.includes(domain.toLowerCase())',
    replace: 'emailVerified',
  },
  {
    id: 'upstream-link-of-its-last-user',
    rule: 'oidc-core-5.7-rp-user-key',
    file: 'src/users/rules/upstream-link.ts',
    find: 'JSON.stringify([issuer, sub])',
    replace: 'JSON.stringify([issuer])',
  },
  {
    id: 'upstream-link-removed-before-the-second-factor',
    file: 'src/users/rules/upstream-link.ts',
    find: 'return (yield* read.find(upstreamLinkKind, linkId))?.userId === userId',
    replace: 'return (yield* read.find(upstreamLinkKind, linkId))?.userId !== `no ${userId}`',
    tests: links,
  },
  {
    id: 'upstream-without-the-second-factor-of-here',
    file: `${folder}/plugin.ts`,
    find: '!isMulti && secondStepOf',
    replace: 'isMulti && secondStepOf',
    tests: links,
  },
  {
    id: 'upstream-that-is-disabled-refreshes',
    file: `${folder}/plugin.ts`,
    find: "extra?.['upstream'] === undefined || isEnabled(extra['upstream'])",
    replace: "extra?.['upstream'] !== null",
    tests: links,
  },
  {
    id: 'upstream-group-that-no-operator-named',
    file: first,
    find: 'there.includes(group) ? name : []',
    replace: 'there.includes(group) ? name : there',
    tests: links,
  },
  {
    id: 'upstream-takes-what-an-operator-gave',
    file: 'src/users/mapped-groups.ts',
    find: '({ upstream }) => upstream === issuer',
    replace: '() => true',
    tests: links,
  },
  {
    id: 'upstream-group-stays-what-an-operator-gives',
    file: 'src/domain/group.ts',
    find: '(membership.upstream === undefined || upstream !== undefined)',
    replace: 'true',
    tests: links,
  },
  {
    id: 'upstream-group-that-outlives-its-link',
    file: `${folder}/account.ts`,
    find: "if (outcome === 'removed')",
    replace: "if (outcome === 'gone')",
    tests: links,
  },
  {
    id: 'upstream-session-without-an-end',
    file: `${folder}/plugin.ts`,
    find: 'Math.min(upstream.maxAgeSeconds, config.lifetimes.sessionAbsoluteSeconds)',
    replace: 'config.lifetimes.sessionAbsoluteSeconds',
    tests: links,
  },
  {
    id: 'upstream-that-is-gone-gives-tokens',
    file: `${folder}/plugin.ts`,
    find: 'check(isEnabled(upstream), ended.rule',
    replace: 'check(isEnabled(upstream) || upstreams.size === 0, ended.rule',
    tests: links,
  },
  {
    id: 'upstream-that-no-doctor-tries',
    file: 'src/cli/doctor/fetches.ts',
    find: 'path === name || ',
    replace: '',
    tests: ['test/cli/doctor-fetches.test.ts'],
  },
  {
    id: 'upstream-link-that-was-the-last-way-in',
    file: 'src/users/rules/upstream-link.ts',
    find: 'if (user.passwordHash === undefined && passkeys.length === 0 && links.length === 1)',
    replace: 'if (false)',
    tests: links,
  },
] as const satisfies readonly Fault[]
