import type { Fault } from './fault.ts'

const plugin = 'src/oidc-logout/plugin.ts'
const rule = 'src/oidc-logout/rules.ts'

/** Faults of OpenID Connect RP-Initiated Logout. */
export const logoutFaults = [
  {
    id: 'logout-without-asking',
    rule: 'oidc-rpl-2-ask-user',
    file: plugin,
    find: '!isConfirmed(request, parameters, session)) {',
    replace: "request.method === 'HEAD' && !isConfirmed(request, parameters, session)) {",
  },
  {
    id: 'logout-confirmed-by-any-token',
    rule: 'oidc-rpl-6-csrf',
    file: plugin,
    find: "return isSameText(single(parameters, 'csrf'), app.browser.csrfToken(secret, 'logout', session.id))",
    replace: "return single(parameters, 'csrf') !== undefined && session.id !== secret",
  },
  {
    id: 'login-survives-logout',
    rule: 'oidc-rpl-2-logout-on-yes',
    file: plugin,
    find: '    if (session !== undefined) await end(session, wanted, { at: now, from: addressPrefix(request.ip) })\n',
    replace: '',
  },
  {
    id: 'logout-leads-anywhere',
    rule: 'oidc-rpl-3-registered-redirect',
    file: rule,
    find: '  if (redirectUri !== undefined) assertRegistered(redirectUri, hinted, client)\n',
    replace: '',
  },
  {
    id: 'logout-leads-away-without-hint',
    rule: 'oidc-rpl-3-no-hint-no-redirect',
    file: rule,
    find: 'hinted !== undefined && client !== undefined,',
    replace: 'client !== undefined,',
  },
  {
    id: 'logout-for-another-client',
    rule: 'oidc-rpl-2-client-id-match',
    file: rule,
    find: "hinted['aud'] === clientId,",
    replace: "hinted['aud'] !== undefined,",
  },
  {
    id: 'logout-without-state',
    rule: 'oidc-rpl-2-state-returned',
    file: rule,
    find: '    ...(state !== undefined && { state }),\n',
    replace: '',
  },
] as const satisfies readonly Fault[]
