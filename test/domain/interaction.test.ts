import t from 'tap'
import { multiFactor } from '../../src/domain/authentication-context.ts'
import type { OAuthError } from '../../src/domain/errors.ts'
import {
  denialError,
  errorOf,
  interactionKind,
  isNeeded,
  narrowByUser,
  nextStep,
  noProgress,
  promptNoneError,
} from '../../src/domain/interaction.ts'
import type { AuthorizationRequest, Client, Consent } from '../../src/domain/model.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { layOutScope } from '../../src/pages/scopes.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  approvedAt,
  authorizationRequest,
  consent,
  interaction,
  operatorClient,
  publicClient,
  session,
} from '../helpers/samples.ts'

const ask = (changes: Partial<AuthorizationRequest>) => ({ ...authorizationRequest, ...changes })
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
const skip: Client = { ...operatorClient, consent: 'skip' }
const always: Client = { ...operatorClient, consent: 'always' }
const rows: readonly Row[] = [
  // No user is signed in.
  ['login', {}, noProgress, publicClient, noone],
  ['login', { prompt: none }, noProgress, skip, noone],
  ['login', { prompt: select }, noProgress, skip, noone],
  // A self-registered client asks every time, whatever consent is stored.
  ['consent', {}, noProgress, publicClient, someone],
  ['consent', {}, noProgress, publicClient, someone, consent],
  ['consent', {}, noProgress, { ...publicClient, consent: 'skip' }, someone, consent],
  // Added by an operator, by its policy.
  ['respond', {}, noProgress, skip, someone],
  ['consent', {}, noProgress, always, someone, consent],
  ['consent', {}, noProgress, operatorClient, someone],
  ['respond', {}, noProgress, operatorClient, someone, consent],
  ['consent', { scope: ['openid', 'email'] }, noProgress, operatorClient, someone, consent],
  ['respond', { scope: ['openid'] }, noProgress, operatorClient, someone, consent],
  ['consent', { resource: ['https://api.example/v1'] }, noProgress, operatorClient, someone, consent],
  ['consent', { prompt: again }, noProgress, operatorClient, someone, consent],
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

t.test('each step is a check, with the rule that makes it the next one', async (t) => {
  const signedIn = 'rfc6749-3.1-owner-authenticated-first'
  for (const [request, progress, client, who, rule, found] of [
    [{}, noProgress, skip, noone, signedIn, 'the user must sign in first'],
    [{}, noProgress, skip, someone, signedIn, 'the user is signed in and need not be asked'],
    [{}, noProgress, always, someone, 'service-5-approval-required', 'the user must approve the request'],
    [
      { prompt: select },
      noProgress,
      skip,
      someone,
      'oidc-core-3.1.2.1-prompt-select-account',
      'the user must choose an account first',
    ],
    [
      { requiredSub: 'bob' },
      here,
      skip,
      someone,
      'oidc-core-3.1.2.2-specific-sub',
      'the signed-in user does not satisfy the request',
    ],
  ] as const) {
    const passed = passedDuring(() => nextStep(ask(request), progress, client, who, undefined, approvedAt))
    t.strictSame(passed, [{ rule, found, stored: undefined, received: undefined }], found)
  }
})

const contentsOf = ({ code, message, detail }: OAuthError) => ({ code, message, ...detail })

t.test('a request that allows no page gets the error of the page it would need', async (t) => {
  const message = 'the request allows no page to be shown, and one is needed'
  const rule = 'oidc-core-3.1.2.1-prompt-none'
  const remedy = ' (lychgate client add --consent remember)'
  for (const [stored, code, more] of [
    ['login', 'login_required', ''],
    ['select_account', 'account_selection_required', ''],
    ['consent', 'consent_required', remedy],
  ] as const)
    t.strictSame(contentsOf(promptNoneError(stored)), { code, message: message + more, rule, stored })
})

t.test('the error of a sign-in that is not enough names the user or the context class', async (t) => {
  const otherUser = {
    code: 'login_required',
    message: 'another user signed in than the requested one',
    rule: 'oidc-core-3.1.2.2-specific-sub',
    received: 'bob',
  }
  const acr = { values: ['phr'], essential: true }
  t.strictSame(contentsOf(errorOf(ask({ requiredSub: 'bob' }), session)), { ...otherUser, stored: 'alice' })
  t.strictSame(contentsOf(errorOf(ask({ requiredSub: 'bob', acr }), noone)), {
    ...otherUser,
    stored: undefined,
  })
  const otherClass = {
    code: 'unmet_authentication_requirements',
    message: 'claims requests an acr that this user cannot sign in with',
    rule: 'oidc-core-5.5.1.1-acr-essential',
    stored: ['pwd'],
    received: ['phr'],
  }
  t.strictSame(contentsOf(errorOf(ask({ requiredSub: 'alice', acr }), session)), otherClass)
  t.strictSame(contentsOf(errorOf(ask({ acr }), session)), otherClass)
})

t.test('a user who may not use the client gets a page that says so, and the client the reason', async (t) => {
  const denial = { rule: 'lychgate-client-groups', why: 'the user is in no group of this client' }
  t.strictSame(contentsOf(denialError({ ...denial, contact: 'help@example.org' })), {
    code: 'access_denied',
    message: denial.why,
    rule: denial.rule,
    page: { title: { key: 'denied.title' }, advice: { key: 'denied.about' } },
  })
})

t.test('a pending request is stored by its id until it expires', async (t) => {
  t.strictSame(interactionKind.rowOf(interaction), {
    kind: 'interaction',
    id: 'interaction-1',
    userId: undefined,
    clientId: undefined,
    madeAt: approvedAt,
    expiresAt: approvedAt + 600,
    body: JSON.stringify(interaction),
  })
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

t.test('what the user allowed before stays, and offline_access only with another scope', async (t) => {
  const request = ask({ scope: ['openid', 'email', 'offline_access'], claimScope: ['phone'] })
  t.strictSame(narrowByUser(request, ['email', 'phone'], ['phone']), ['openid', 'offline_access', 'phone'])
  t.strictSame(narrowByUser(request, ['phone'], []), ['openid', 'email', 'offline_access'])
  const alone = ask({ scope: ['offline_access', 'email'] })
  t.strictSame(narrowByUser(alone, alone.scope, ['email']), ['offline_access', 'email'])
  t.strictSame(narrowByUser(alone, alone.scope, []), [], 'a refresh token for no scope is of no use')
  t.strictSame(['openid', 'offline_access', 'email'].map(isNeeded), [true, true, false])
})

t.test('the granted scope is a check, with the requested one next to it', async (t) => {
  const request = ask({ scope: ['openid', 'email'] })
  t.strictSame(
    passedDuring(() => narrowByUser(request, ['email'], [])),
    [
      {
        rule: 'rfc6749-3.3-scope-in-response-when-different',
        found: 'the scope that the user granted',
        stored: ['openid', 'email'],
        received: ['openid'],
      },
    ],
  )
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
