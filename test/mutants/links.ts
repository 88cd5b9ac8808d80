import type { Fault } from './fault.ts'

/** Faults of one-time links, letters, and what operators do to people. */
export const linkFaults = [
  {
    id: 'link-outlives-its-end',
    file: 'src/domain/one-time-link.ts',
    find: 'now >= link.expiresAt',
    replace: 'now > link.expiresAt',
    tests: ['test/domain/profile.test.ts'],
  },
  {
    id: 'link-works-twice',
    file: 'src/one-time-links/confirm-email.ts',
    find: "return accept(undefined, { op: 'deleteLink', linkId: link.id })",
    replace: 'return accept(undefined)',
    tests: ['test/one-time-links/mail.test.ts'],
  },
  {
    id: 'link-form-of-any-browser',
    file: 'src/one-time-links/plugin.ts',
    find: "if (!isSameText(single(form, 'csrf'), opened.hidden['csrf'] ?? '')) {",
    replace: 'if (false) {',
    tests: ['test/one-time-links/links.test.ts'],
  },
  {
    id: 'link-of-locked-person-works',
    file: 'src/one-time-links/open-link.ts',
    find: 'if (account === undefined || account.lockedAt !== undefined) throw unusableLink()',
    replace: 'if (account === undefined) throw unusableLink()',
    tests: ['test/one-time-links/links.test.ts'],
  },
  {
    id: 'second-first-person',
    file: 'src/one-time-links/open-link.ts',
    find: 'if (!(await store.population()).isEmpty) throw unusableLink()',
    replace: '',
    tests: ['test/one-time-links/links.test.ts'],
  },
  {
    id: 'printed-link-proves-address',
    file: 'src/one-time-links/set-password.ts',
    find: 'link.email === undefined ? named : acceptedBy(verifyEmail(named, link.email, at))',
    replace: "acceptedBy(verifyEmail(named, named.email ?? '', at))",
    tests: ['test/one-time-links/links.test.ts'],
  },
  {
    id: 'old-link-proves-new-address',
    file: 'src/one-time-links/confirm-email.ts',
    find: 'if (current === undefined || current.email !== email) throw unusableLink()\n        return withWrites(\n          verifyEmail(current, email, occasion.at),',
    replace:
      "if (current === undefined) throw unusableLink()\n        return withWrites(\n          verifyEmail(current, current.email ?? '', occasion.at),",
    tests: ['test/one-time-links/mail.test.ts'],
  },
  {
    id: 'unknown-person-shows',
    file: 'src/one-time-links/forgot-password.ts',
    find: "    reply.raw.once('finish', () => {",
    replace:
      "    if ((await store.find('accountByLogin', single(form, 'username') ?? '')) === undefined) return reply.redirect(action, 303)\n    reply.raw.once('finish', () => {",
    tests: ['test/one-time-links/mail.test.ts'],
  },
  {
    id: 'letters-without-end',
    file: 'src/domain/letter-throttle.ts',
    find: 'if (failures >= most) return accept(false)',
    replace: '',
    tests: ['test/one-time-links/mail.test.ts'],
  },
  {
    id: 'lock-leaves-grants',
    file: 'src/domain/account.ts',
    find: "    { op: 'revokeGrantsOf', accountId, at: now, rule },\n",
    replace: '',
    tests: ['test/domain/profile.test.ts'],
  },
] as const satisfies readonly Fault[]
