import type { Fault } from './fault.ts'

const plugin = 'src/specs/oidc-logout/plugin.ts'
const rule = 'src/specs/oidc-logout/rules.ts'

/** Faults of OpenID Connect RP-Initiated Logout. */
export const logoutFaults = [
  {
    id: 'logout-without-asking',
    rule: 'oidc-rpl-2-ask-user',
    file: plugin,
    find: 'if (isOpen && !confirmed)',
    replace: "if (isOpen && !confirmed && request.method === 'HEAD')",
  },
  {
    id: 'logout-confirmed-by-any-token',
    rule: 'oidc-rpl-6-csrf',
    file: plugin,
    find: "return isSameText(single(parameters, 'csrf'), csrfOf(secret, session))",
    replace: "return single(parameters, 'csrf') !== undefined && session?.id !== secret",
  },
  {
    id: 'login-survives-logout',
    rule: 'oidc-rpl-2-logout-on-yes',
    file: plugin,
    find: '    if (session !== undefined) await end(session, logout, { at: now, from: addressPrefix(request.ip) })\n',
    replace: '',
  },
  {
    id: 'logout-leads-anywhere',
    rule: 'oidc-rpl-3-registered-redirect',
    file: rule,
    find: 'redirectUri === undefined ? undefined : faultOf(() => assertRegistered(redirectUri, named))',
    replace: 'undefined',
  },
  {
    id: 'logout-leads-away-without-hint',
    rule: 'oidc-rpl-3-no-hint-no-redirect',
    file: 'src/specs/oidc-logout/plugin.ts',
    find: 'logout.redirectUri !== undefined && !logout.isHinted',
    replace: 'false',
  },
  {
    id: 'logout-on-the-word-of-an-unusable-hint',
    rule: 'oidc-rpl-2-hint-validated',
    file: plugin,
    find: "await keys.verify(hint, 'JWT')",
    replace: "JSON.parse(Buffer.from(hint.split('.')[1] ?? '', 'base64url').toString() || '{}')",
  },
  {
    id: 'logout-form-without-cookie-clears-cookies',
    rule: 'oidc-rpl-6-csrf',
    file: plugin,
    find: "request.method === 'POST' && !confirmed && ",
    replace: "request.method === 'POST' && single(parameters, 'csrf') === undefined && ",
  },
  {
    id: 'logout-for-another-client',
    rule: 'oidc-rpl-2-client-id-match',
    file: rule,
    find: "claims['aud'] === clientId,",
    replace: "claims['aud'] !== undefined,",
  },
  {
    id: 'logout-without-state',
    rule: 'oidc-rpl-2-state-returned',
    file: rule,
    find: '    ...(state !== undefined && { state }),\n',
    replace: '',
  },
  {
    id: 'held-request-twice',
    rule: 'oidc-rpl-2-get-and-post',
    file: 'src/http/held-requests.ts',
    find: '...(held ? [remove(heldRequestKind, id)] : [])',
    replace: '...(held && id === heldRequestKind.name ? [remove(heldRequestKind, id)] : [])',
  },
  {
    id: 'hint-of-a-form-in-the-url-of-sign-out',
    rule: 'oidc-rpl-2-get-and-post',
    file: plugin,
    find: '...withoutHint(parameters), ...instead',
    replace: '...parameters, ...(hint === undefined && withoutHint({})), ...instead',
  },
] as const satisfies readonly Fault[]
