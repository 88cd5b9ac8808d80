import t from 'tap'
import { multiFactor } from '../../src/domain/authentication-context.ts'
import {
  askedScope,
  errorOf,
  narrowByUser,
  nextStep,
  noProgress,
  promptNoneError,
  rememberConsent,
} from '../../src/domain/interaction.ts'
import type { AuthorizationRequest, Client, Consent } from '../../src/domain/model.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { layOutScope } from '../../src/pages/scopes.ts'
import { approvedAt, authorizationRequest, integration, publicClient, session } from '../helpers/samples.ts'

const consent: Consent = {
  userId: 'alice',
  clientId: integration.id,
  allowed: authorizationRequest.resource.map((resource) => ({ resource, scope: authorizationRequest.scope })),
  grantedAt: 1,
}
const ask = (changes: Partial<AuthorizationRequest>): AuthorizationRequest => ({
  ...authorizationRequest,
  ...changes,
})
const here = { authenticatedSessionId: session.id, userChosen: true }
const chosen = { userChosen: true }
const [noone, someone] = [undefined, session]
const [none, login, select, again] = [['none'], ['login'], ['select_account'], ['consent']]

type Row = readonly [
  step: string,
  request: Partial<AuthorizationRequest>,
  progress: Parameters<typeof nextStep>[1],
  client: Client,
  session: typeof session | undefined,
  consent?: Consent,
]
const skip: Client = { ...integration, consent: 'skip' }
const always: Client = { ...integration, consent: 'always' }
const rows: readonly Row[] = [
  // No user is signed in.
  ['login', {}, noProgress, publicClient, noone],
  ['login', { prompt: none }, noProgress, skip, noone],
  ['login', { prompt: select }, noProgress, skip, noone],
  // A self-registered client asks every time, whatever consent is stored.
  ['consent', {}, noProgress, publicClient, someone],
  ['consent', {}, noProgress, publicClient, someone, consent],
  ['consent', {}, noProgress, { ...publicClient, consent: 'skip' }, someone, consent],
  // An integration, by its policy.
  ['respond', {}, noProgress, skip, someone],
  ['consent', {}, noProgress, always, someone, consent],
  ['consent', {}, noProgress, integration, someone],
  ['respond', {}, noProgress, integration, someone, consent],
  ['consent', { scope: ['openid', 'email'] }, noProgress, integration, someone, consent],
  ['respond', { scope: ['openid'] }, noProgress, integration, someone, consent],
  ['consent', { resource: ['https://api.example/v1'] }, noProgress, integration, someone, consent],
  ['consent', { prompt: again }, noProgress, integration, someone, consent],
  ['consent', { prompt: again }, here, skip, someone],
  // Re-authentication.
  ['login', { prompt: login }, noProgress, skip, someone],
  ['respond', { prompt: login }, here, skip, someone],
  ['login', { prompt: login }, { ...here, authenticatedSessionId: 'another' }, skip, someone],
  ['login', { maxAgeSeconds: 0 }, noProgress, skip, someone],
  ['respond', { maxAgeSeconds: 0 }, here, skip, someone],
  ['login', { maxAgeSeconds: 0 }, noProgress, skip, { ...session, authenticatedAt: approvedAt }],
  ['respond', { maxAgeSeconds: 1 }, noProgress, skip, { ...session, authenticatedAt: approvedAt }],
  ['login', { maxAgeSeconds: 4 }, noProgress, skip, someone],
  ['respond', { maxAgeSeconds: 5 }, noProgress, skip, someone],
  ['respond', { maxAgeSeconds: 4 }, here, skip, someone],
  // A certain user is requested.
  ['respond', { requiredSub: 'alice' }, noProgress, skip, someone],
  ['login', { requiredSub: 'bob' }, noProgress, skip, someone],
  ['reject', { requiredSub: 'bob' }, here, skip, someone],
  ['reject', { requiredSub: 'bob', prompt: login }, here, skip, someone],
  // Choosing a user.
  ['select_account', { prompt: select }, noProgress, skip, someone],
  ['respond', { prompt: select }, chosen, skip, someone],
  ['respond', { prompt: select }, { ...here, userChosen: false }, skip, someone],
  ['login', { prompt: ['login', 'select_account'] }, noProgress, skip, someone],
]

t.test(
  'the next step follows from the request, the session, the client and the stored consent',
  async (t) => {
    for (const [step, request, progress, client, who, kept] of rows) {
      const about = JSON.stringify([request, progress, client.consent, who?.userId, kept?.allowed])
      t.equal(nextStep(ask(request), progress, client, who, kept, approvedAt), step, about)
    }
  },
)

t.test('only what is not remembered needs consent, or everything where nothing is remembered', async (t) => {
  const more = ask({ scope: ['openid', 'email'] })
  t.strictSame(askedScope(ask({}), integration, undefined), ['openid', 'courses:read'])
  t.strictSame(askedScope(more, integration, consent), ['email'])
  t.strictSame(askedScope(more, always, consent), ['openid', 'email'])
  t.strictSame(askedScope({ ...more, prompt: ['consent'] }, integration, consent), ['openid', 'email'])
  t.strictSame(askedScope({ ...more, resource: ['https://new.example'] }, integration, consent), [
    'openid',
    'email',
  ])
})

t.test('consent for one resource does not cover another', async (t) => {
  const [one, two] = ['https://one.example', 'https://two.example']
  const at = (resource: readonly string[], scope: readonly string[]) => ask({ resource, scope })
  const first = rememberConsent(at([one], ['a']), 'alice', ['a'], undefined, 1)
  const both = rememberConsent(at([two], ['b']), 'alice', ['b'], first, 2)
  t.strictSame(both.allowed, [
    { resource: one, scope: ['a'] },
    { resource: two, scope: ['b'] },
  ])
  t.strictSame(askedScope(at([one], ['a', 'b']), integration, both), ['b'])
  t.strictSame(askedScope(at([one, two], ['a', 'b']), integration, both), ['a', 'b'])
  const untick = rememberConsent(at([one], ['a', 'c']), 'alice', ['c'], both, 3)
  t.strictSame(untick.allowed, [
    { resource: two, scope: ['b'] },
    { resource: one, scope: ['c'] },
  ])
})

t.test('a request that allows no page gets the error of the page it would need', async (t) => {
  const rows = {
    login: 'login_required',
    select_account: 'account_selection_required',
    consent: 'consent_required',
  } as const
  for (const step of ['login', 'select_account', 'consent'] as const) {
    t.equal(promptNoneError(step).code, rows[step])
  }
  t.equal(errorOf(ask({ requiredSub: 'bob' }), session).code, 'login_required')
  const acr = { values: ['phr'], essential: true }
  t.equal(errorOf(ask({ requiredSub: 'alice', acr }), session).code, 'unmet_authentication_requirements')
  t.equal(errorOf(ask({ acr }), session).code, 'unmet_authentication_requirements')
})

t.test(
  'a context class is requested once from users who can have it; a voluntary one is then dropped, an essential one rejected',
  async (t) => {
    const [must, wish] = [true, false].map((essential) => ({ values: ['phr', multiFactor], essential }))
    const able = [multiFactor]
    const more = { ...session, methods: ['pwd', 'otp', 'mfa'] }
    const rows: readonly [
      string,
      typeof must,
      Partial<AuthorizationRequest>,
      typeof here | typeof noProgress,
      typeof session,
      string[],
    ][] = [
      ['respond', undefined, {}, noProgress, session, []],
      ['respond', must, {}, noProgress, more, []],
      ['respond', wish, {}, noProgress, more, []],
      ['login', must, {}, noProgress, session, able],
      ['login', wish, {}, noProgress, session, able],
      ['reject', must, {}, noProgress, session, ['a class that was not requested']],
      ['respond', wish, {}, noProgress, session, ['a class that was not requested']],
      ['reject', must, {}, here, session, able],
      ['respond', wish, {}, here, session, able],
      // With prompt=none: a class the user could reach is login_required, any other is rejected.
      ['login', must, { prompt: none }, noProgress, session, able],
      ['reject', must, { prompt: none }, noProgress, session, []],
      ['respond', wish, { prompt: none }, noProgress, session, able],
      // Other requirements come first.
      ['login', must, { prompt: login }, noProgress, more, []],
      ['select_account', must, { prompt: select }, noProgress, session, able],
    ]
    for (const [step, acr, request, progress, who, availableAcrs] of rows) {
      const whole = ask({ ...request, ...(acr && { acr }) })
      const about = JSON.stringify([acr, request, progress, who.methods, availableAcrs])
      t.equal(nextStep(whole, progress, skip, who, undefined, approvedAt, availableAcrs), step, about)
    }
  },
)

t.test('the user narrows the request and never adds to it', async (t) => {
  const request = ask({ scope: ['openid', 'courses:read', 'courses:write'] })
  t.strictSame(narrowByUser(request, request.scope, ['courses:read']), ['openid', 'courses:read'])
  t.strictSame(narrowByUser(request, request.scope, []), ['openid'])
  t.strictSame(narrowByUser(request, request.scope, ['email', 'account:write', 'courses:write']), [
    'openid',
    'courses:write',
  ])
  t.strictSame(narrowByUser(ask({ scope: ['courses:read'] }), ['courses:read'], ['openid']), [])
})

t.test('the consent page has every requested scope once, with read next to write', async (t) => {
  const all = defaultScopeCatalogue.map(({ name }) => name)
  const { identity, areas } = layOutScope(all, defaultScopeCatalogue, ({ access }) => access !== 'write')
  const shown = [...identity, ...areas.flatMap(({ read, write }) => [read ?? [], write ?? []].flat())]
  t.strictSame(shown.map(({ name }) => name).sort(), [...all].sort())
  t.equal(new Set(areas.map(({ group }) => group)).size, areas.length)
  for (const { read, write } of areas) t.ok(read?.checked !== false && write?.checked !== true)
  const [openid] = identity
  t.match(openid, { name: 'openid', checked: true, required: true })
  t.strictSame(
    shown.filter(({ sensitive }) => sensitive).map(({ name }) => name),
    [
      'students:read',
      'students:write',
      'members:read',
      'members:write',
      'orders:read',
      'subscriptions:read',
      'subscriptions:write',
      'forms:read',
      'account:write',
    ],
    'what is known of other people, what they pay, what somebody may do',
  )
  t.strictSame(
    layOutScope(['nonsense'], defaultScopeCatalogue, () => true),
    { identity: [], areas: [] },
  )
})
