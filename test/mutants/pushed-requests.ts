import type { Fault } from './fault.ts'

const rules = 'src/specs/rfc9126-pushed-requests/rules.ts'
const plugin = 'src/specs/rfc9126-pushed-requests/plugin.ts'

/** Faults of pushed authorization requests, RFC 9126. */
export const pushedRequestFaults = [
  {
    id: 'reference-of-any-client',
    rule: 'rfc9126-2.2-unguessable-and-bound',
    file: rules,
    find: 'clientId === pushed.clientId,',
    replace: 'clientId !== undefined,',
  },
  {
    id: 'reference-never-expires',
    rule: 'rfc9126-4-one-time',
    file: rules,
    find: 'pushed !== undefined && now < pushed.expiresAt,',
    replace: 'pushed !== undefined,',
  },
  {
    id: 'reference-works-after-its-code',
    rule: 'rfc9126-4-one-time',
    file: rules,
    find: '    remove(pushedRequestKind, id),\n',
    replace: '',
  },
  {
    id: 'each-page-of-a-reference-is-answered',
    rule: 'rfc9126-4-one-time',
    file: rules,
    find: '    insert(endedRequestKind, { id, expiresAt: expiresAt + interactionSeconds }),\n',
    replace: '',
  },
  {
    id: 'reference-is-pushed',
    rule: 'rfc9126-2.1-reject-request-uri',
    file: rules,
    find: "parameters['request_uri'] === undefined,",
    replace: 'true,',
  },
  {
    id: 'secret-of-a-push-is-stored',
    file: rules,
    find: '!credentials.includes(name)',
    replace: 'name.length > 0',
    tests: ['test/conformance/rfc9126-pushed-requests.test.ts'],
  },
  {
    id: 'query-beside-a-reference-counts',
    rule: 'rfc9126-4-use',
    file: plugin,
    find: 'return { parameters: pushed.parameters, extra',
    replace: 'return { parameters: { ...pushed.parameters, ...parameters, request_uri: undefined }, extra',
  },
  {
    id: 'push-is-not-validated',
    rule: 'rfc9126-2.1-validate-as-authorize',
    file: plugin,
    find: 'await parse(loaded, client, redirect)',
    replace: 'void [parse, redirect]',
  },
  {
    id: 'push-asks-for-a-sign-in',
    rule: 'rfc9126-2.3-error-format',
    file: plugin,
    find: 'throw asPushError(error)',
    replace: 'throw error',
  },
  {
    id: 'direct-request-of-a-pushing-client',
    rule: 'rfc9126-5-require-par',
    file: rules,
    find: "const mustPush = isRequired || client.extra?.['require_pushed_authorization_requests'] === true",
    replace: 'const mustPush = isRequired && client.id.length > 0',
  },
  {
    id: 'direct-request-to-a-pushing-server',
    rule: 'rfc9126-5-require-par',
    file: rules,
    find: 'const mustPush = isRequired || client',
    replace: 'const mustPush = client',
  },
] as const satisfies readonly Fault[]
