import type { Fault } from './fault.ts'

const responses = 'src/specs/jarm/rules.ts'
const profile = 'src/specs/fapi2-security-profile/rules.ts'
const over = ['test/conformance/jarm.test.ts']

/** Faults of signed authorization responses and of FAPI 2.0 Message Signing. */
export const signedMessageFaults = [
  {
    id: 'signed-response-for-anyone',
    rule: 'jarm-2.1-claims',
    file: responses,
    find: 'aud: id, exp: now',
    replace: 'exp: now',
  },
  {
    id: 'signed-response-for-a-day',
    rule: 'jarm-2.1-lifetime',
    file: responses,
    find: 'const lifetimeSeconds: Seconds = 600',
    replace: 'const lifetimeSeconds: Seconds = 86400',
  },
  {
    id: 'signed-response-overwrites-its-issuer',
    rule: 'jarm-2.1-claims',
    file: responses,
    find: '{ ...members, iss: issuer, aud: id,',
    replace: '{ iss: issuer, ...members, aud: members.state ?? id,',
  },
  {
    id: 'members-beside-the-signed-response',
    tests: over,
    file: 'src/specs/jarm/plugin.ts',
    find: 'return { response: ',
    replace: 'return { ...members, response: ',
  },
  {
    id: 'registered-algorithm-of-responses-ignored',
    rule: 'jarm-3-signed-response-alg',
    file: responses,
    find: 'name === extra?.[algorithmMember]',
    replace: "name === extra?.[''] || name === 'RS256'",
  },
  {
    id: 'signed-responses-given-up',
    rule: 'fapi2-ms-5.4-response-modes',
    file: responses,
    find: 'registered.some((each) => unshortened(each) === unshortened(mode)),',
    replace: "registered.some((each) => unshortened(each) === unshortened(mode)) || mode === 'query',",
  },
  {
    id: 'parameters-of-a-signing-client-unsigned',
    rule: 'fapi2-ms-5.3.1-signed-request',
    file: profile,
    find: 'if (mustSign) assertSignedFor(jws)',
    replace: 'if (mustSign && jws !== undefined) assertSignedFor(jws)',
  },
  {
    id: 'request-object-signed-for-ever',
    rule: 'fapi2-ms-5.3.1-exp-nbf',
    file: profile,
    find: 'isInstant(nbf) && isInstant(exp) && exp - nbf <= mostRequestSeconds,',
    replace: 'isInstant(nbf) || isInstant(exp),',
  },
] as const satisfies readonly Fault[]
