import t from 'tap'
import {
  claimNames,
  idTokenClaims,
  indexScopeClaims,
  narrowClaims,
  reservedClaims,
  scopeOfClaims,
  textClaims,
  textFault,
  userInfo,
} from '../../src/domain/claims.ts'
import { parseClaims } from '../../src/domain/claims-request.ts'
import type { User } from '../../src/domain/model.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'

const scopeClaims = indexScopeClaims(defaultScopeCatalogue)
const nothing = { userinfo: [], idToken: [] }
const user: User = {
  id: 'sub-1',
  username: 'alice',
  passwordHash: '$argon2id$',
  claims: {
    name: 'Alice',
    nickname: '',
    email: 'a@example.test',
    email_verified: false,
    updated_at: 0,
    secret: 'x',
  },
  seeded: false,
  createdAt: 1,
  updatedAt: 1,
}

t.test('UserInfo returns sub, and the claims of the scope that have a value', async (t) => {
  t.strictSame(userInfo(user, [], nothing, scopeClaims), { sub: 'sub-1' })
  t.strictSame(userInfo(user, ['openid', 'courses:read'], nothing, scopeClaims), { sub: 'sub-1' })
  t.strictSame(userInfo(user, ['openid', 'profile'], nothing, scopeClaims), {
    sub: 'sub-1',
    name: 'Alice',
    updated_at: 0,
  })
  t.strictSame(userInfo(user, ['email'], nothing, scopeClaims), {
    sub: 'sub-1',
    email: 'a@example.test',
    email_verified: false,
  })
})

t.test('the claims parameter opens single claims that the catalogue knows', async (t) => {
  const requested = {
    userinfo: ['name', 'secret', 'passwordHash', '__proto__', 'constructor'],
    idToken: ['email'],
  }
  t.strictSame(userInfo(user, ['openid'], requested, scopeClaims), { sub: 'sub-1', name: 'Alice' })
  t.strictSame(idTokenClaims(user, requested, scopeClaims), { email: 'a@example.test' })
  t.strictSame(idTokenClaims(undefined, requested, scopeClaims), {})
  t.strictSame(idTokenClaims(user, { userinfo: ['name'], idToken: ['iss', 'secret'] }, scopeClaims), {})
})

t.test('no claim of a user replaces sub', async (t) => {
  const impostor = { ...user, claims: { ...user.claims, sub: 'another' } }
  const open = new Map([['profile', ['sub', 'name']]])
  t.equal(
    userInfo({ ...impostor, id: 'sub-1' }, ['openid'], { userinfo: ['sub'], idToken: [] }, scopeClaims).sub,
    'sub-1',
  )
  t.strictSame(claimNames(open), ['sub', 'name'])
})

t.test('the claims the catalogue opens are listed once', async (t) => {
  const names = claimNames(scopeClaims)
  t.equal(new Set(names).size, names.length)
  t.ok(['name', 'email', 'email_verified'].every((name) => names.includes(name)))
})

t.test('the supported part of the claims parameter is parsed', async (t) => {
  t.strictSame(parseClaims(undefined), { claims: nothing, requestedAcrValues: [] })
  t.strictSame(parseClaims('{}'), { claims: nothing, requestedAcrValues: [] })
  t.strictSame(parseClaims('{"userinfo":{"name":null},"id_token":{"auth_time":{"essential":true},"x":{}}}'), {
    claims: { userinfo: ['name'], idToken: ['auth_time', 'x'] },
    requestedAcrValues: [],
  })
  t.strictSame(parseClaims('{"userinfo":null,"other":5}'), { claims: nothing, requestedAcrValues: [] })
  t.equal(parseClaims('{"id_token":{"sub":{"value":"a"}}}').sub, 'a')
  t.equal(parseClaims('{"userinfo":{"sub":{"value":"a"}}}').sub, 'a')
  const acr = (member: string) => {
    const { essentialAcr, requestedAcrValues } = parseClaims(`{"id_token":{"acr":${member}}}`)
    return [essentialAcr, requestedAcrValues]
  }
  t.strictSame(acr('{"essential":true,"value":"a","values":["b",1]}'), [['a', 'b'], []])
  for (const member of [
    '{"value":"a"}',
    '{"essential":1,"values":["a",1]}',
    '{"essential":false,"value":"a"}',
  ]) {
    t.strictSame(acr(member), [undefined, ['a']], member)
  }
  for (const member of ['{"essential":true}', 'null', '{}'])
    t.strictSame(acr(member), [undefined, []], member)
  for (const member of ['{"values":["a"]}', 'null', '{"value":5}', '{}']) {
    t.notHas(parseClaims(`{"id_token":{"sub":${member}}}`), { sub: String })
  }
})

const malformed = {
  code: 'invalid_request',
  message: 'claims must be a JSON object as OpenID Connect Core 5.5 has it',
  detail: { rule: 'oidc-core-5.5-claims-malformed' },
}

t.test('anything but an object of objects is rejected', async (t) => {
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '5',
    '{"userinfo":[]}',
    '{"userinfo":"x"}',
    '{"id_token":5}',
    '{"userinfo":{"name":true}}',
    '{"userinfo":{"name":["x"]}}',
  ]) {
    t.throws(() => parseClaims(text), malformed, text)
  }
})

t.test('up to 100 claims can be named in one place', async (t) => {
  for (const place of ['userinfo', 'id_token']) {
    const named = (count: number) =>
      JSON.stringify({
        [place]: Object.fromEntries(Array.from({ length: count }, (_, n) => [`c${n}`, null])),
      })
    const { userinfo, idToken } = parseClaims(named(100)).claims
    t.equal(userinfo.length + idToken.length, 100, place)
    t.throws(() => parseClaims(named(101)), malformed, place)
  }
})

t.test('a claim called __proto__ changes no object', async (t) => {
  const { claims } = parseClaims(
    '{"userinfo":{"__proto__":{"value":"x"}},"__proto__":{"id_token":{"a":null}}}',
  )
  t.strictSame(claims, { userinfo: ['__proto__'], idToken: [] })
  t.notHas({}, { value: 'x' })
})

t.test(
  'a claim asked for by itself needs the first scope that opens it, unless one is granted',
  async (t) => {
    const open = new Map([
      ['profile', ['name', 'picture']],
      ['card', ['picture', 'email']],
      ['email', ['email']],
    ])
    const both = { userinfo: ['picture'], idToken: ['email', 'picture', 'unknown'] }
    t.strictSame(scopeOfClaims(both, ['openid'], open), ['profile', 'card'])
    t.strictSame(scopeOfClaims(both, ['card'], open), [], 'one of several is enough')
    t.strictSame(scopeOfClaims(both, ['email'], open), ['profile'])
    t.strictSame(scopeOfClaims(nothing, [], open), [])
    t.strictSame(narrowClaims(both, ['openid', 'email'], open), { userinfo: [], idToken: ['email'] })
    const time = { userinfo: ['auth_time', 'name'], idToken: ['auth_time'] }
    t.strictSame(narrowClaims(time, ['openid'], open), { userinfo: ['auth_time'], idToken: ['auth_time'] })
  },
)

t.test('a line of text is short and visible', async (t) => {
  t.equal(textFault('é'.repeat(200)), undefined)
  t.equal(textFault('é'.repeat(201)), 'tooLong')
  t.strictSame([textFault('four', 4), textFault('fours', 4)], [undefined, 'tooLong'])
  for (const character of ['\0', '\u202e', '\u2028', '\u2029', '\u3164', '\u034f'])
    t.equal(textFault(`a${character}b`), 'invisible', String(character.codePointAt(0)))
  for (const name of ['می\u200cخواهم', 'क्\u200dष', '🏳️\u200d🌈']) t.equal(textFault(name), undefined, name)
  for (const name of ['a\u200db', 'م\u200dی', 'म\u200cष', '©\u200d®', 'می\u200c', '\u200d🌈'])
    t.equal(textFault(name), 'invisible', escape(name))
})

t.test(
  'users may edit the texts of OpenID Connect Core 5.1, and no rule sets what proves who they are',
  async (t) => {
    const texts = 'name given_name family_name middle_name nickname profile picture website gender birthdate'
    t.strictSame(textClaims, [...texts.split(' '), 'zoneinfo', 'locale'])
    const ofTokens = 'iss sub aud exp nbf iat jti azp nonce auth_time acr amr sid at_hash c_hash s_hash'
    const ofAccess = 'client_id scope cnf act may_act active token_type authorization_details'
    const ofEvents = 'events sub_id sub_jwk toe txn'
    const ofUsers =
      'email email_verified phone_number phone_number_verified preferred_username verified_claims'
    const all = [ofTokens, ofAccess, ofEvents, ofUsers].flatMap((line) => line.split(' '))
    t.strictSame([...reservedClaims].sort(), all.sort())
  },
)
