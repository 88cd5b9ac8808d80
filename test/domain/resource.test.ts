import t from 'tap'
import {
  indexResources,
  narrowAccess,
  parseResource,
  requireScopeAt,
  scopeAt,
} from '../../src/domain/resource.ts'
import { approved, otherApi, ownApi, resources, signedApi } from '../helpers/samples.ts'

const wide = { ...approved, resource: [ownApi.identifier, otherApi.identifier] }
const signed = { ...approved, resource: [ownApi.identifier, signedApi.identifier] }

t.test("an omitted resource is the server's own API", async (t) => {
  t.strictSame(parseResource([], resources), [ownApi.identifier])
})

t.test('a resource is found by its identifier, also with the slash of an empty path', async (t) => {
  t.strictSame(parseResource(['https://auth.example/'], resources), ['https://auth.example'])
  t.strictSame(parseResource(['https://api.example/v1', 'https://auth.example'], resources), [
    otherApi.identifier,
    ownApi.identifier,
  ])
  t.strictSame(parseResource(['https://auth.example', 'https://auth.example/'], resources), [
    ownApi.identifier,
  ])
  const urn = { ...otherApi, identifier: 'urn:example:api' }
  t.strictSame(parseResource(['urn:example:api'], indexResources(ownApi, [urn])), ['urn:example:api'])
})

t.test('anything else is invalid_target', async (t) => {
  for (const text of [
    'auth.example',
    '/v1',
    'https://auth.example#x',
    'https://auth.example/#',
    'https://auth.example /',
    'https://AUTH.example',
    'https://api.example/v1/',
    'https://api.example/v1?x',
    'https://nowhere.example',
    '__proto__:x',
    'constructor',
  ]) {
    t.throws(() => parseResource([ownApi.identifier, text], resources), { code: 'invalid_target' }, text)
  }
})

t.test('in development an unknown resource is rejected with the list of known ones', async (t) => {
  try {
    parseResource(['https://nowhere.example'], resources)
    t.fail('it was accepted')
  } catch (error) {
    const stored = [ownApi.identifier, otherApi.identifier, signedApi.identifier]
    t.match(error, { detail: { stored, received: 'https://nowhere.example' } })
  }
})

t.test('a scope is cut to what the resources support', async (t) => {
  t.strictSame(scopeAt(approved.scope, [otherApi.identifier], resources), ['courses:read'])
  t.strictSame(scopeAt(approved.scope, ['https://gone.example'], resources), [])
  t.throws(() => requireScopeAt(['openid'], [otherApi.identifier], resources), { code: 'invalid_target' })
})

t.test('an access token covers a part of the grant, for the shortest of its lifetimes', async (t) => {
  const narrow = (requested: readonly string[], scope = wide.scope) =>
    narrowAccess(wide, scope, requested, resources)
  t.strictSame(narrow([]), {
    scope: wide.scope,
    resource: [ownApi.identifier, otherApi.identifier],
    tokenFormat: 'opaque',
    seconds: 40,
  })
  t.match(narrow([ownApi.identifier]), { resource: [ownApi.identifier], seconds: 100 })
  t.match(narrow([otherApi.identifier]), {
    resource: [otherApi.identifier],
    scope: ['courses:read'],
    seconds: 40,
  })
  t.throws(() => narrow([signedApi.identifier]), { code: 'invalid_target', message: /not part of the grant/ })
  t.throws(() => narrow(['https://nowhere.example']), { code: 'invalid_target' })
  t.throws(() => narrow([otherApi.identifier], ['openid']), { code: 'invalid_target' })
})

t.test('a resource with its own token format must be the only one', async (t) => {
  t.throws(() => narrowAccess(signed, signed.scope, [], resources), { code: 'invalid_target' })
  t.match(narrowAccess(signed, signed.scope, [signedApi.identifier], resources), {
    tokenFormat: 'jwt',
    seconds: 50,
  })
  t.match(narrowAccess(signed, signed.scope, [ownApi.identifier], resources), { tokenFormat: 'opaque' })
})

t.test('a grant whose resource was removed from the configuration issues no token', async (t) => {
  const gone = { ...approved, resource: ['https://gone.example'] }
  t.throws(() => narrowAccess(gone, gone.scope, [], resources), { code: 'invalid_target' })
})
