import type { Fault } from './fault.ts'

const file = 'src/guard/step-up.ts'
const tests = ['test/conformance/rfc9470-step-up.test.ts']

/** Faults of an API that demands a recent sign-in, or one of a class. */
export const stepUpFaults = [
  {
    id: 'step-up-with-an-old-sign-in',
    tests,
    rule: 'rfc9470-3-challenge',
    file,
    find: 'now - authTime <= maxAgeSeconds',
    replace: 'now - authTime >= 0',
  },
  {
    id: 'step-up-without-a-user',
    tests,
    file,
    find: '(authTime !== undefined && now - authTime <= maxAgeSeconds)',
    replace: 'authTime === undefined || now - authTime <= maxAgeSeconds',
  },
  {
    id: 'step-up-of-any-class',
    tests,
    file,
    find: '(acr !== undefined && acrValues.includes(acr))',
    replace: 'acr !== undefined',
  },
  {
    id: 'step-up-without-acr-values',
    tests,
    file,
    find: "...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),",
    replace: '',
  },
  {
    id: 'step-up-without-max-age',
    tests,
    file,
    find: '...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),',
    replace: '',
  },
  {
    id: 'step-up-of-an-anonymous-caller',
    tests,
    file: 'src/guard/guard.ts',
    find: 'if (access === undefined) throw noToken(checks)',
    replace: 'if (access === undefined) return',
  },
] as const satisfies readonly Fault[]
