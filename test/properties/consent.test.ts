import t from 'tap'
import { indexScopeClaims, narrowClaims, userInfo } from '../../src/domain/claims.ts'
import { parseClaims } from '../../src/domain/claims-request.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import {
  askedScope,
  narrowByUser,
  nextStep,
  noProgress,
  rememberConsent,
} from '../../src/domain/interaction.ts'
import type { AuthorizationRequest, Consent, User } from '../../src/domain/model.ts'
import { fc } from '../helpers/generated.ts'
import { authorizationRequest, operatorClient, session } from '../helpers/samples.ts'

const catalogue = [
  { name: 'profile', claims: ['name', 'locale'] },
  { name: 'email', claims: ['email', 'email_verified'] },
].map((each) => ({ ...each, group: 'Identity', access: 'identity' as const, description: 'x' }))
const scopeClaims = indexScopeClaims(catalogue)
const scopeNames = ['openid', 'profile', 'email', 'courses:read', 'courses:write']
const claimNames = [
  'name',
  'locale',
  'email',
  'email_verified',
  'auth_time',
  'sub',
  'unknown',
  '__proto__',
  'constructor',
]
const scope = fc.subarray(scopeNames)
const claims = fc.record({ userinfo: fc.subarray(claimNames), idToken: fc.subarray(claimNames) })
const user: User = {
  id: 'user',
  username: 'alice',
  passwordHash: '',
  claims: { name: 'Alice', locale: 'sv', email: 'a@example.test', email_verified: true, unknown: 'never' },
  seeded: false,
  createdAt: 1,
  updatedAt: 1,
}

/** Which scope opens a claim, written out. */
const openers: Readonly<Record<string, string>> = {
  name: 'profile',
  locale: 'profile',
  email: 'email',
  email_verified: 'email',
}

t.test(
  'a claims parameter is parsed as JSON or rejected, and its names are those of its members',
  async (t) => {
    const member = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constantFrom(null, {}, { essential: true }, { value: 'x' }, { values: ['x'] }),
      },
      { weight: 1, arbitrary: fc.jsonValue() as fc.Arbitrary<unknown> },
    )
    const section = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.dictionary(fc.constantFrom(...claimNames), member, {
          maxKeys: 4,
        }) as fc.Arbitrary<unknown>,
      },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 5, 'x', [], [{}]) },
    )
    const text = fc.oneof(
      fc
        .record({ userinfo: section, id_token: section, other: section }, { requiredKeys: [] })
        .map((each) => JSON.stringify(each)),
      fc.json(),
      fc.string({ unit: 'binary', maxLength: 12 }),
    )
    const isObject = (each: unknown) => typeof each === 'object' && each !== null && !Array.isArray(each)
    const isSection = (each: unknown) =>
      each === undefined ||
      each === null ||
      (isObject(each) && Object.values(each as object).every((one) => one === null || isObject(one)))
    let read = 0
    fc.assert(
      fc.property(text, (sent) => {
        let parsed: unknown
        try {
          parsed = JSON.parse(sent)
        } catch {}
        const { userinfo, id_token: idToken } = (isObject(parsed) ? parsed : {}) as Record<string, unknown>
        const isGood = isObject(parsed) && isSection(userinfo) && isSection(idToken)
        try {
          const result = parseClaims(sent)
          read += 1
          return (
            isGood &&
            result.claims.userinfo.join() === Object.keys(userinfo ?? {}).join() &&
            result.claims.idToken.join() === Object.keys(idToken ?? {}).join()
          )
        } catch (error) {
          return !isGood && error instanceof OAuthError && error.code === 'invalid_request'
        }
      }),
      { numRuns: 2000 },
    )
    t.ok(read > 200, `${read} were read`)
  },
)

t.test('UserInfo never returns a claim that neither its scope nor an allowed request opens', async (t) => {
  fc.assert(
    fc.property(scope, scope, claims, (asked, allowed, requested) => {
      const narrowed = narrowClaims(requested, allowed, scopeClaims)
      const said = Object.keys(userInfo(user, asked, narrowed, scopeClaims)).filter((name) => name !== 'sub')
      const isOpen = (name: string) => {
        const opener = openers[name]
        if (opener === undefined) return false
        return asked.includes(opener) || (allowed.includes(opener) && requested.userinfo.includes(name))
      }
      return (
        said.every(isOpen) &&
        Object.keys(openers)
          .filter(isOpen)
          .every((name) => said.includes(name))
      )
    }),
    { numRuns: 3000 },
  )
  t.pass()
})

const request: fc.Arbitrary<AuthorizationRequest> = fc
  .record({
    scope,
    claimScope: fc.option(fc.subarray(['profile', 'email'])),
    prompt: fc.subarray(['consent', 'login']),
    resource: fc.subarray(['one', 'two'], { minLength: 1 }),
  })
  .map(({ claimScope, ...rest }) => ({
    ...authorizationRequest,
    ...rest,
    ...(claimScope && { claimScope: claimScope.filter((name) => !rest.scope.includes(name)) }),
  }))
const remembered: fc.Arbitrary<Consent | undefined> = fc.option(
  fc.record({ one: scope, two: scope }).map(({ one, two }) => ({
    userId: session.userId,
    clientId: operatorClient.id,
    allowed: [
      { resource: 'one', scope: one },
      { resource: 'two', scope: two },
    ],
    grantedAt: 1,
  })),
  { nil: undefined },
)
const ticked = fc.subarray([...scopeNames, 'never:asked', ''])

t.test('what a user approves was requested and ticked, or allowed before; openid stays', async (t) => {
  const client = { ...operatorClient, consent: 'remember' as const }
  fc.assert(
    fc.property(request, remembered, ticked, (asks, before, ticks) => {
      const wanted = [...asks.scope, ...(asks.claimScope ?? [])]
      const asked = askedScope(asks, client, before)
      const left = narrowByUser(asks, asked, ticks)
      const isAllowedBefore = (name: string) =>
        asks.resource.every((each) =>
          before?.allowed.find(({ resource }) => resource === each)?.scope.includes(name),
        )
      return (
        asked.every((name) => wanted.includes(name)) &&
        left.every(
          (name) =>
            wanted.includes(name) && (name === 'openid' || ticks.includes(name) || isAllowedBefore(name)),
        ) &&
        wanted
          .filter((name) => name === 'openid' || ticks.includes(name))
          .every((name) => left.includes(name))
      )
    }),
    { numRuns: 5000 },
  )
  t.pass()
})

t.test(
  'a remembered consent skips the page for the same request, and for nothing that was unticked',
  async (t) => {
    const client = { ...operatorClient, origin: 'integration' as const, consent: 'remember' as const }
    fc.assert(
      fc.property(request, remembered, ticked, (asks, before, ticks) => {
        const allowed = narrowByUser(asks, askedScope(asks, client, before), ticks)
        const kept = rememberConsent(asks, session.userId, allowed, before, 5)
        const again = { ...asks, prompt: [], scope: allowed }
        const { claimScope: _claims, ...plain } = again
        if (nextStep(plain, noProgress, client, session, kept, session.authenticatedAt) !== 'respond')
          return false
        const wanted = [...asks.scope, ...(asks.claimScope ?? [])]
        const rejected = wanted.filter((name) => !allowed.includes(name))
        const here = kept.allowed.filter(({ resource }) => asks.resource.includes(resource))
        return rejected.every((name) => here.every(({ scope: each }) => !each.includes(name)))
      }),
      { numRuns: 5000 },
    )
    t.pass()
  },
)
