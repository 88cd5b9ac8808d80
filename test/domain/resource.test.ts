import t from 'tap'
import {
  accessTokenTerms,
  indexResources,
  parseResource,
  requireScopeAt,
  scopeAt,
} from '../../src/domain/resource.ts'
import { passedDuring } from '../helpers/checks.ts'
import { approved, otherApi, ownApi, resources, signedApi } from '../helpers/samples.ts'

const wide = { ...approved, resource: [ownApi.identifier, otherApi.identifier] }
const signed = { ...approved, resource: [ownApi.identifier, signedApi.identifier] }

t.test("an omitted resource is the server's own API", async (t) => {
  t.strictSame(parseResource([], resources), [ownApi.identifier])
  t.strictSame(
    passedDuring(() => parseResource([], resources)),
    [
      {
        rule: 'rfc8707-2.1-omitted-default',
        found: 'no resource: the API of this server',
        stored: ownApi.identifier,
        received: undefined,
      },
    ],
  )
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

t.test('the slash of an empty path belongs to no identifier that has a path, or no host', async (t) => {
  // The path of a URN may look like an origin.
  for (const identifier of ['https://api.example/v1', 'https://api.example?v', 'urn:a:https://b']) {
    const only = indexResources(ownApi, [{ ...otherApi, identifier }])
    t.equal(only.find(identifier)?.name, 'Other', identifier)
    t.equal(only.find(`${identifier}/`), undefined, identifier)
  }
  const { own, identifiers } = indexResources(ownApi, [otherApi])
  t.strictSame({ own, identifiers }, { own: ownApi, identifiers: [ownApi.identifier, otherApi.identifier] })
})

const listed = [ownApi.identifier, otherApi.identifier, signedApi.identifier]

t.test('a resource must be an absolute URI without a fragment', async (t) => {
  for (const received of [
    'auth.example',
    '/v1',
    '1a:x',
    ' https://auth.example',
    'https://auth.example /',
    'https://auth.example#x',
    'https://auth.example/#',
    'constructor',
    '__proto__:x',
  ]) {
    t.throws(
      () => parseResource([ownApi.identifier, received], resources),
      {
        code: 'invalid_target',
        message: 'resource must be an absolute URI without a fragment',
        detail: { rule: 'rfc8707-2-absolute-no-fragment', received },
      },
      received,
    )
  }
})

t.test('a resource must be one of this server, in the same spelling, and the error lists them', async (t) => {
  for (const received of [
    'https://AUTH.example',
    'HTTPS://auth.example',
    'https://api.example/v1/',
    'https://api.example/v1?x',
    'https://nowhere.example',
    'constructor:x',
  ]) {
    t.throws(
      () => parseResource([ownApi.identifier, received], resources),
      {
        code: 'invalid_target',
        message: 'resource is not an API of this server (the option resources)',
        detail: { rule: 'rfc8707-2-unknown-invalid-target', stored: listed, received },
      },
      received,
    )
  }
})

t.test('a requested resource passes both checks', async (t) => {
  const received = otherApi.identifier
  t.strictSame(
    passedDuring(() => parseResource([received], resources)),
    [
      {
        rule: 'rfc8707-2-absolute-no-fragment',
        found: 'resource is an absolute URI',
        stored: undefined,
        received,
      },
      {
        rule: 'rfc8707-2-unknown-invalid-target',
        found: 'resource is an API of this server',
        stored: listed,
        received,
      },
    ],
  )
})

t.test('a scope is cut to what the resources support', async (t) => {
  t.strictSame(scopeAt(approved.scope, [otherApi.identifier], resources), ['courses:read'])
  t.strictSame(scopeAt(approved.scope, ['https://gone.example'], resources), [])
  const whole = [otherApi.identifier, ownApi.identifier]
  t.strictSame(scopeAt(approved.scope, whole, resources), approved.scope, 'one of them is enough')
  const understood = requireScopeAt(['openid', 'courses:read'], [otherApi.identifier], resources)
  t.strictSame(understood, ['courses:read'])
  t.throws(() => requireScopeAt(['openid'], [otherApi.identifier], resources), {
    code: 'invalid_target',
    message:
      'no requested scope is understood by the requested resource (its scopes in the option resources)',
    detail: {
      rule: 'rfc8707-2.2-invalid-combination',
      stored: [otherApi.identifier],
      received: ['openid'],
    },
  })
})

t.test('an access token covers a part of the grant, for the shortest of its lifetimes', async (t) => {
  const narrow = (requested: readonly string[], scope = wide.scope) =>
    accessTokenTerms(wide, scope, requested, resources)
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
  t.throws(() => narrow([signedApi.identifier]), {
    code: 'invalid_target',
    message: 'resource is not part of the grant',
    detail: { rule: 'rfc8707-2.2-not-granted', stored: wide.resource, received: signedApi.identifier },
  })
  t.throws(() => narrow(['https://nowhere.example']), {
    code: 'invalid_target',
    detail: { rule: 'rfc8707-2-unknown-invalid-target', stored: listed },
  })
  t.throws(() => narrow([otherApi.identifier], ['openid']), {
    code: 'invalid_target',
    detail: { rule: 'rfc8707-2.2-invalid-combination' },
  })
  t.strictSame(
    passedDuring(() => narrow([])).map(({ rule }) => rule),
    [
      'rfc8707-2.2-not-granted',
      'rfc8707-2.2-not-granted',
      'rfc8707-2.2-subset-at-token',
      'rfc8707-2.2-invalid-combination',
    ],
  )
})

t.test('a resource with its own token format must be the only one', async (t) => {
  t.throws(() => accessTokenTerms(signed, signed.scope, [], resources), {
    code: 'invalid_target',
    message: 'name one resource at a time: these take tokens of their own',
    detail: { rule: 'rfc8707-2.2-subset-at-token', stored: signed.resource },
  })
  t.match(accessTokenTerms(signed, signed.scope, [signedApi.identifier], resources), {
    tokenFormat: 'jwt',
    seconds: 50,
  })
  t.match(accessTokenTerms(signed, signed.scope, [ownApi.identifier], resources), { tokenFormat: 'opaque' })
})
