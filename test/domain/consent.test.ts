import t from 'tap'
import {
  askedScope,
  consentRule,
  rememberConsent,
  remembersConsent,
  wantedScope,
} from '../../src/domain/interaction.ts'
import type { AuthorizationRequest, Client } from '../../src/domain/model.ts'
import { authorizationRequest, consent, operatorClient, publicClient } from '../helpers/samples.ts'

const ask = (changes: Partial<AuthorizationRequest>) => ({ ...authorizationRequest, ...changes })
const always: Client = { ...operatorClient, consent: 'always' }

t.test('only what is not remembered needs consent, or everything where nothing is remembered', async (t) => {
  const more = ask({ scope: ['openid', 'email'] })
  t.strictSame(askedScope(ask({}), operatorClient, undefined), ['openid', 'courses:read'])
  t.strictSame(askedScope(more, operatorClient, consent), ['email'])
  t.strictSame(askedScope(more, always, consent), ['openid', 'email'])
  t.strictSame(askedScope({ ...more, prompt: ['consent'] }, operatorClient, consent), ['openid', 'email'])
  t.strictSame(askedScope({ ...more, resource: ['https://new.example'] }, operatorClient, consent), [
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
  t.strictSame(askedScope(at([one], ['a', 'b']), operatorClient, both), ['b'])
  t.strictSame(askedScope(at([one, two], ['a', 'b']), operatorClient, both), ['a', 'b'])
  const untick = rememberConsent(at([one], ['a', 'c']), 'alice', ['c'], both, 3)
  t.strictSame(untick.allowed, [
    { resource: two, scope: ['b'] },
    { resource: one, scope: ['c'] },
  ])
})

const [one, two] = ['https://one.example', 'https://two.example']
const [web, loopback] = ['https://app.example/cb', 'http://127.0.0.1:51004/callback']
const itself: Client = { ...publicClient, consent: 'remember' }
const publishedClient: Client = { ...itself, published: { host: 'app.example', terms: 'terms-1' } }
const admittedClient: Client = { ...itself, admitted: { by: 'ci', redirects: 'https', terms: 'terms-2' } }

t.test('consent is remembered where the client and where its response goes are known', async (t) => {
  const other = { ...admittedClient, consent: 'always' } as const
  for (const [client, redirectUri, isRemembered] of [
    [operatorClient, web, true],
    [operatorClient, loopback, true],
    [always, web, false],
    [publishedClient, web, true],
    [publishedClient, loopback, false],
    [admittedClient, web, true],
    [admittedClient, loopback, false],
    [itself, web, false],
    [itself, loopback, false],
    [other, web, false],
  ] as const)
    t.equal(remembersConsent({ redirectUri }, client), isRemembered, JSON.stringify([client, redirectUri]))
})

t.test('a request needs no consent, remembered consent or consent that is asked for now', async (t) => {
  const skip: Client = { ...operatorClient, consent: 'skip' }
  for (const [request, client, rule] of [
    [{}, skip, 'none'],
    [{}, { ...itself, consent: 'skip' }, 'asked'],
    [{}, operatorClient, 'remembered'],
    [{}, always, 'asked'],
    [{ prompt: ['consent'] }, skip, 'asked'],
    [{ prompt: ['consent'] }, operatorClient, 'asked'],
  ] as const)
    t.equal(consentRule(ask(request), client), rule, JSON.stringify([request, client.consent]))
})

t.test('consent is also for the scope of claims that are requested one by one', async (t) => {
  t.strictSame(wantedScope(ask({ scope: ['openid', 'email'] })), ['openid', 'email'])
  const request = ask({ scope: ['openid', 'email'], claimScope: ['phone'] })
  t.strictSame(wantedScope(request), ['openid', 'email', 'phone'])
})

t.test('a scope is new unless it was allowed at every requested resource', async (t) => {
  const allowed = [
    { resource: one, scope: ['a', 'b'] },
    { resource: two, scope: ['b'] },
  ]
  const request = ask({ resource: [one, two], scope: ['a', 'b'] })
  t.strictSame(askedScope(request, operatorClient, { ...consent, allowed }), ['a'])
})

t.test('what was remembered and is not requested now stays remembered', async (t) => {
  const allowed = [{ resource: one, scope: ['a', 'b'] }]
  const request = ask({ resource: [one], scope: ['b', 'c'] })
  t.strictSame(rememberConsent(request, 'alice', ['c'], { ...consent, allowed }, 7), {
    userId: 'alice',
    clientId: request.clientId,
    allowed: [{ resource: one, scope: ['a', 'c'] }],
    grantedAt: 7,
  })
})

t.test('consent is for the terms of a client, and void under others', async (t) => {
  const request = ask({ redirectUri: web, resource: [one], scope: ['a', 'b'] })
  for (const [client, terms] of [
    [publishedClient, 'terms-1'],
    [admittedClient, 'terms-2'],
  ] as const) {
    const given = rememberConsent(request, 'alice', ['a'], undefined, 7, client)
    t.strictSame(given, {
      userId: 'alice',
      clientId: request.clientId,
      allowed: [{ resource: one, scope: ['a'] }],
      grantedAt: 7,
      terms,
    })
    t.strictSame(askedScope(request, client, given), ['b'])
    const former = { ...given, terms: 'others' }
    t.strictSame(askedScope(request, client, former), ['a', 'b'])
    const next = ask({ redirectUri: web, resource: [two], scope: ['b'] })
    t.strictSame(rememberConsent(next, 'alice', ['b'], former, 8, client), {
      ...given,
      allowed: [{ resource: two, scope: ['b'] }],
      grantedAt: 8,
    })
  }
})
