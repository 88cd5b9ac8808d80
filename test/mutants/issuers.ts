import type { Fault } from './fault.ts'

const test = (name: string) => [`test/dev/issuers/${name}.test.ts`]

/** Faults of the misbehaving issuers, and of the verdicts on their clients. */
export const issuerFaults = [
  {
    id: 'client-at-a-misbehaving-issuer-after-its-removal',
    file: 'src/dev/issuers/open.ts',
    find: "if (here !== undefined && here.origin !== 'registered')",
    replace: "if (here !== undefined && here.origin === 'registered')",
    tests: test('issuers'),
  },
  {
    id: 'hmac-of-a-client-not-noticed',
    file: 'src/dev/issuers/criteria.ts',
    find: '/^(HS\\d|none$)/i',
    replace: '/^none$/i',
    tests: test('conduct'),
  },
  {
    id: 'obedience-to-another-audience-not-noticed',
    file: 'src/dev/issuers/criteria.ts',
    find: 'sent.assertionAudience?.includes(demandedAudience) === true',
    replace: 'sent.assertionAudience?.[0] === demandedAudience',
    tests: test('conduct'),
  },
  {
    id: 'access-token-without-refresh-counts-as-fooled',
    file: 'src/dev/issuers/criteria.ts',
    find: 'sent.refreshToken !== undefined && sent.refreshToken === gave.refreshToken,\n}',
    replace: 'sent.refreshToken === gave.refreshToken || sent.accessToken === gave.accessToken,\n}',
    tests: test('conduct'),
  },
  {
    id: 'development-server-answers-to-any-name',
    file: 'src/dev/plugin.ts',
    find: "    app.addHook('onRequest', onlyKnownHosts(deps.config))\n",
    replace: '',
    tests: ['test/dev/access.test.ts'],
  },
  {
    id: 'development-routes-for-other-computers',
    file: 'src/dev/only-local.ts',
    find: 'if (!isTrusted(remoteAddress)) {',
    replace: "if (!isTrusted(remoteAddress) && remoteAddress === '') {",
    tests: ['test/dev/access.test.ts'],
  },
  {
    id: 'issuers-opened-by-the-page-of-another-site',
    file: 'src/dev/mount.ts',
    find: '        await assertOwnPage(request)\n',
    replace: '',
    tests: ['test/dev/access.test.ts'],
  },
  {
    id: 'cookies-of-a-mounted-issuer-at-the-root',
    file: 'src/dev/mount.ts',
    find: 'cookie.replace(/; Path=\\/(?=;|$)/, `; Path=${path}`)',
    replace: 'cookie',
    tests: test('issuers'),
  },
  {
    id: 'refusals-of-a-mounted-issuer-lost',
    file: 'src/dev/mount.ts',
    find: 'host.rejection = request.rejection',
    replace: 'host.rejection = undefined',
    tests: test('issuers'),
  },
  {
    id: 'a-posted-form-is-not-lied-to',
    file: 'src/dev/issuers/changes.ts',
    find: "if (typeof location !== 'string') return withFields(body, pairs)",
    replace: "if (typeof location !== 'string') return undefined",
    tests: test('issuers'),
  },
  {
    id: 'false-document-confirmed-by-the-true-tag',
    file: 'src/dev/issuers/changes.ts',
    find: "    reply.removeHeader('etag')\n",
    replace: '',
    tests: test('issuers'),
  },
  {
    id: 'word-of-the-client-before-what-was-seen',
    file: 'src/dev/issuers/conduct.ts',
    find: "    if (evidence !== undefined || outcome?.outcome === 'fooled') return 'fooled'\n",
    replace:
      "    if (outcome !== undefined) return outcome.outcome\n    if (evidence !== undefined) return 'fooled'\n",
    tests: test('issuers'),
  },
  {
    id: 'code-of-another-response-counts',
    file: 'src/dev/issuers/criteria.ts',
    find: 'sent.code !== undefined && gave.codes.includes(sent.code)',
    replace: 'sent.code !== undefined && gave.codes.length > 0',
    tests: test('conduct'),
  },
  {
    id: 'judged-before-the-lie-matters',
    file: 'src/dev/issuers/conduct.ts',
    find: "return isUsed && !isMoment ? 'not reached' : 'rejected'",
    replace: "return 'rejected'",
    tests: test('conduct'),
  },
] as const satisfies readonly Fault[]
