import type { Fault } from './fault.ts'

const checks = 'src/settings/checks.ts'
const load = ['test/settings/load.test.ts'] as const

/** Faults of the checks of the command line and the configuration. */
export const configurationFaults = [
  {
    id: 'http-issuer-off-loopback',
    rule: 'rfc6749-10.9-tls',
    file: checks,
    find: "if (url.protocol === 'http:' && !isLocal) {",
    replace: "if (url.protocol === 'http:' && issuer === '') {",
  },
  {
    id: 'production-without-a-secret',
    file: checks,
    find: "config.mode === 'serve' && config.secret === undefined",
    replace: "config.mode === 'dev' && config.secret === ''",
    tests: load,
  },
  {
    id: 'unlimited-in-public',
    file: checks,
    find: "config.rateLimits === 'off' && !isLoopbackIssuer(config.issuer)",
    replace: "config.rateLimits === 'off' && config.issuer === ''",
    tests: load,
  },
  {
    id: 'example-secret-accepted',
    file: checks,
    find: 'config.secret === exampleSecret',
    replace: "config.secret === ''",
    tests: ['test/deploy/examples.test.ts'],
  },
  {
    id: 'database-password-printed',
    file: 'src/domain/server-url.ts',
    find: "password && ':***'",
    replace: 'password && `:${password}`',
    tests: ['test/cli/config.test.ts'],
  },
  {
    id: 'public-integration-approved-silently',
    file: 'src/clients/operator-client.ts',
    find: "request.consent === 'always' || isAssured(request),",
    replace: "request.consent === 'always' || request.name !== '',",
    tests: ['test/domain/operator-client.test.ts'],
  },
  {
    id: 'public-integration-without-pkce',
    file: 'src/clients/operator-client.ts',
    find: "(request.pkce ?? 'required') === 'required' || isConfidential,",
    replace: "request.pkce !== 'optional' || request.name !== '',",
    tests: ['test/domain/operator-client.test.ts'],
  },
  {
    id: 'unknown-variable-ignored',
    file: 'src/settings/load.ts',
    find: '...unknownVariables(own)',
    replace: '...[...unknownVariables(own)].slice(99)',
    tests: ['test/settings/faults.test.ts', 'test/settings/load.test.ts'],
  },
  {
    id: 'secret-shown-in-a-refusal',
    file: 'src/settings/shape.ts',
    find: 'isShort && !confidentialPaths.includes(option)',
    replace: "isShort && option !== ''",
    tests: ['test/settings/faults.test.ts', 'test/settings/load.test.ts'],
  },
  {
    id: 'host-of-an-ambiguous-url-shown',
    file: 'src/domain/server-url.ts',
    find: 'if (isUnambiguousUrl(url) && ',
    replace: 'if (url && ',
    tests: ['test/domain/server-url.test.ts'],
  },
  {
    id: 'password-up-to-the-first-at',
    file: 'src/domain/server-url.ts',
    find: '(\\/[^@?#]*)?(\\?[^@#]*)?$/i',
    replace: '(\\/[^?#]*)?(\\?[^#]*)?$/i',
    tests: ['test/domain/server-url.test.ts'],
  },
  {
    id: 'miscut-store-accepted',
    file: 'src/settings/checks.ts',
    find: '} else if (isMiscut(config.store)) yield',
    replace: "} else if (config.store === '') yield",
    tests: ['test/settings/load.test.ts'],
  },
] as const satisfies readonly Fault[]
