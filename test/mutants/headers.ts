import type { Fault } from './fault.ts'

const pages = 'src/pages/pages.ts'

/** Faults of headers: caching, framing, content security policy, cross-origin calls. */
export const headerFaults = [
  {
    id: 'management-listener-answers-to-any-name',
    file: 'src/management/listener.ts',
    find: '    if (!isHostOf(request.headers.host, [host, ...hosts])) return sendText(reply, 403, unlisted)\n',
    replace: '',
    tests: ['test/process/metrics.test.ts'],
  },
  {
    id: 'no-store-forgotten',
    rule: 'rfc6749-5.1-no-store',
    file: 'src/http/headers.ts',
    find: "'cache-control': 'no-store', ",
    replace: '',
  },
  {
    id: 'pragma-forgotten',
    rule: 'rfc6749-5.1-no-store',
    file: 'src/http/headers.ts',
    find: ", pragma: 'no-cache'",
    replace: '',
  },
  {
    id: 'form-action-on-the-way-to-a-client',
    rule: 'rfc9700-4.16-csp',
    file: pages,
    find: '...(leadsToClient ? [] : ["form-action \'self\'"])',
    replace: '"form-action \'self\'"',
  },
  {
    id: 'form-action-anywhere',
    rule: 'rfc9700-4.16-csp',
    file: pages,
    find: 'leadsToClient ? [] : ["form-action \'self\'"]',
    replace: 'leadsToClient || !leadsToClient ? [] : ["form-action \'self\'"]',
  },
  {
    id: 'form-action-missing-where-a-page-of-ours-waits',
    rule: 'rfc9700-4.16-csp',
    file: 'src/pages/sign-in/pending.ts',
    find: "    const client = 'page' in wanted",
    replace: "    request.leadsToClient = true\n    const client = 'page' in wanted",
  },
  {
    id: 'form-action-missing-in-every-sign-out',
    rule: 'rfc9700-4.16-csp',
    file: 'src/oidc-logout/plugin.ts',
    find: 'request.leadsToClient = redirectUri !== undefined',
    replace: 'request.leadsToClient = true',
  },
  {
    id: 'form-action-missing-on-error-pages',
    rule: 'rfc9700-4.16-csp',
    file: 'src/pages/page-errors.ts',
    find: '  reply.request.leadsToClient = false\n',
    replace: '',
  },
  {
    id: 'pages-may-be-framed',
    rule: 'rfc6749-10.13-frame-protection',
    file: pages,
    find: '"frame-ancestors \'none\'"',
    replace: '"frame-ancestors *"',
  },
  {
    id: 'referrer-told',
    rule: 'rfc9700-4.2.4-referrer-policy',
    file: pages,
    find: "'referrer-policy': 'no-referrer'",
    replace: "'referrer-policy': 'unsafe-url'",
  },
  {
    id: 'client-name-not-escaped',
    rule: 'rfc6749-10.14-sanitise',
    file: 'src/pages/theme/views.ts',
    find: 'autoEscape: true',
    replace: 'autoEscape: false',
  },
  {
    id: 'authorization-open-to-other-origins',
    rule: 'rfc9700-2.6-no-cors-authorize',
    file: 'src/http/headers.ts',
    find: "pragma: 'no-cache'",
    replace: "pragma: 'no-cache', 'access-control-allow-origin': '*'",
  },
  {
    id: 'protocol-closed-to-other-origins',
    rule: 'oidc-disc-3-cors',
    file: 'src/http/headers.ts',
    find: "origin: '*'",
    replace: "origin: 'https://app.example'",
  },
  {
    id: 'cross-origin-calls-with-cookies',
    rule: 'oidc-disc-3-cors',
    file: 'src/http/headers.ts',
    find: "origin: '*'",
    replace: 'origin: true,\n      credentials: true',
  },
  {
    id: 'challenge-hidden-from-pages',
    rule: 'oidc-core-5.3-cors',
    file: 'src/http/headers.ts',
    find: "        'WWW-Authenticate',\n",
    replace: '',
  },
  {
    id: 'forwarded-headers-believed',
    rule: 'rfc9700-4.13-proxy-headers',
    file: 'src/http/server-options.ts',
    find: 'trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false',
    replace: 'trustProxy: true',
  },
] as const satisfies readonly Fault[]
