import { decodeProtectedHeader } from 'jose'
import type { Test } from 'tap'
import { endSession, insert } from '../../../src/domain/decision.ts'
import { catalogueOf } from '../../../src/feature/service.ts'
import { declared } from '../../../src/features.ts'
import { integrate } from '../../helpers/authorization.ts'
import { claimsOf, signInAndApprove } from '../../helpers/flow.ts'
import { alice } from '../../helpers/server.ts'
import { type Json, json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import {
  approveAt,
  askAt,
  errorOf,
  introspectAt,
  redeemAt,
  registerAt,
  requestUrl,
  type Subject,
  tokensOf,
  userInfoAt,
} from './subject.ts'

const scope: Exercise = async (t, subject, name) => {
  // offline_access needs a resource to access.
  const asked = name === 'offline_access' ? `openid ${name}` : name
  const landing = await subject.agent.open(requestUrl(subject, subject.client, { scope: asked }))
  if (landing.at !== 'page') return void t.fail('the user is asked')
  const entry = catalogueOf(subject.server.deps.config, declared.scopes).find((each) => each.name === name)
  t.match(landing.page.html, `name="scope" value="${name}"`, 'the consent page asks for it')
  t.match(
    landing.page.html,
    `<small>${entry?.description}</small>`.slice(entry?.access === 'identity' ? 7 : 0, -8),
  )
  const { searchParams } = await signInAndApprove(subject.agent, landing)
  const response = await redeemAt(subject, subject.client, searchParams.get('code') ?? '')
  const { access_token: token, scope: granted, id_token: idToken } = await json(response)
  t.equal(granted, asked, 'the response has it')
  t.equal((await introspectAt(subject, subject.client, String(token)))['scope'], asked)
  t.equal(idToken !== undefined, asked.startsWith('openid'), 'an ID Token is what openid is for')
}

async function unknownScope(t: Test, subject: Subject, listed: readonly string[]): Promise<void> {
  for (const name of ['phone', 'address', 'courses:delete', 'OPENID', 'x']) {
    t.notOk(listed.includes(name), name)
    for (const asked of [name, `openid ${name}`]) {
      t.equal(
        errorOf(await askAt(subject, subject.client, { scope: asked }))['error'],
        'invalid_scope',
        asked,
      )
    }
    const registered = await registerAt(subject, { scope: `openid ${name}` })
    t.match(await json(registered), { scope: /^openid$/ }, 'and no client is registered for it')
  }
}

/** Every claim about alice when one claim is requested by name in every place. */
async function askFor(subject: Subject, claim: string, fields: Record<string, string> = {}) {
  const claims = JSON.stringify({ userinfo: { [claim]: null }, id_token: { [claim]: null } })
  const { access_token: token, id_token: idToken } = await tokensOf(subject, subject.client, {
    claims,
    ...fields,
  })
  const atUserInfo = await json(await userInfoAt(subject, token))
  return { atUserInfo, inIdToken: claimsOf(idToken) as Json, token }
}

/** A claim about the ID Token itself. */
const aboutToken =
  (value: (subject: Subject) => unknown, fields: Record<string, string> = {}): Exercise =>
  async (t, subject, claim) => {
    const { inIdToken, atUserInfo } = await askFor(subject, claim, fields)
    const expected = value(subject)
    if (expected instanceof RegExp) t.match(inIdToken[claim], expected)
    else t.strictSame(inIdToken[claim], expected)
    t.strictSame(Object.keys(atUserInfo), ['sub'], 'UserInfo is about the user alone')
  }

/** A claim about the user: UserInfo and the ID Token have it if it is requested, and no other. */
const aboutUser: Exercise = async (t, subject, claim) => {
  const user = await subject.server.deps.store.find('userByLogin', alice.username)
  const value = user?.claims[claim]
  t.ok(value !== undefined && value !== '', 'alice has a value')
  const { inIdToken, atUserInfo } = await askFor(subject, claim)
  t.strictSame(atUserInfo, { sub: user?.id, [claim]: value })
  t.strictSame(inIdToken[claim], value)
}

/** The groups of alice, who is in none. */
const aboutGroups: Exercise = async (t, subject, claim) => {
  const { inIdToken, atUserInfo } = await askFor(subject, claim)
  t.strictSame(atUserInfo[claim], [])
  t.strictSame(inIdToken[claim], [])
}

const personalClaims = [
  'name',
  'family_name',
  'given_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
  'updated_at',
  'email',
  'email_verified',
]

/** Seconds since the epoch, in this century. */
const seconds = /^[1-9]\d{9}$/

/** Every claim returned about alice, with everything requested, is in the document. */
async function nothingElse(t: Test, subject: Subject, listed: readonly string[]): Promise<void> {
  const everything = (subject.document['scopes_supported'] as string[]).join(' ')
  const fields = { scope: everything, nonce: 'n', max_age: '10000' }
  for (const claim of ['phone_number', 'address', 's_hash', 'x']) {
    t.notOk(listed.includes(claim), claim)
    const { atUserInfo, inIdToken } = await askFor(subject, claim, fields)
    t.notOk(claim in atUserInfo || claim in inIdToken, `${claim} is not returned`)
    for (const told of [...Object.keys(atUserInfo), ...Object.keys(inIdToken)]) {
      t.ok(listed.includes(told), `${told} is listed`)
    }
  }
}

/** The claims parameter requests one claim, in one place, beyond what the scope opens. */
async function claimsParameter(t: Test, subject: Subject): Promise<void> {
  const at = async (claims: object) => {
    const tokens = await tokensOf(subject, subject.client, { claims: JSON.stringify(claims) })
    const atUserInfo = await json(await userInfoAt(subject, tokens.access_token))
    return [atUserInfo['nickname'], claimsOf(tokens.id_token)['nickname']]
  }
  t.strictSame(await at({ userinfo: { nickname: null } }), ['Ali', undefined])
  t.strictSame(await at({ id_token: { nickname: { essential: true } } }), [undefined, 'Ali'])
  t.strictSame(await at({}), [undefined, undefined])
  const malformed = await askAt(subject, subject.client, { claims: 'nickname' })
  t.equal(errorOf(malformed)['error'], 'invalid_request')
}

/** The response to a client that requires a class of sign-in, OpenID Connect Core §5.5.1.1. */
const essentially = (subject: Subject, value: string) =>
  approveAt(subject, subject.client, {
    claims: JSON.stringify({ id_token: { acr: { essential: true, values: [value] } } }),
  })

/** The factors of alice's sign-in for each class; other tests cover how each is used. */
const shownFor: Readonly<Record<string, readonly string[]>> = {
  phr: ['pop', 'user', 'mfa'],
  'https://refeds.org/profile/mfa': ['pwd', 'otp', 'mfa'],
  'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport': ['pwd'],
}

const contextClass: Exercise = async (t, subject, value) => {
  const { store } = subject.server.deps
  const alice = await store.find('userByLogin', 'alice')
  const sessions = await store.listOf('session', alice?.id ?? '')
  const showing = (methods: readonly string[]) =>
    sessions.flatMap((session) => [endSession(session.id, 0), insert('session', { ...session, methods })])
  await store.write(...showing(shownFor[value] ?? []))
  const { code } = await essentially(subject, value)
  const response = await redeemAt(subject, subject.client, String(code))
  t.equal(claimsOf(String((await json(response))['id_token']))['acr'], value)
  await store.write(...showing(['pwd']))
}

/** Every scope and claim in the documents. */
export const userPromises: Promises = {
  scopes_supported: { every: scope, unlisted: unknownScope },
  claims_parameter_supported: { flag: { true: claimsParameter } },
  acr_values_supported: {
    every: contextClass,
    unlisted: async (t, subject, listed) => {
      t.notOk(listed.includes('phrh'))
      t.not((await essentially(subject, 'phrh'))['error'], undefined)
    },
  },
  claim_types_supported: {
    each: {
      normal: async (t, subject) => {
        const { access_token: token } = await tokensOf(subject, subject.client, { scope: 'openid email' })
        t.match(await json(await userInfoAt(subject, token)), { email: 'alice@example.test' })
      },
    },
    unlisted: async (t, subject, listed) => {
      t.notOk(listed.includes('aggregated') || listed.includes('distributed'))
      const { access_token: token } = await tokensOf(subject, subject.client, {
        scope: 'openid profile email',
      })
      t.notMatch(Object.keys(await json(await userInfoAt(subject, token))).join(' '), /_claim_/)
    },
  },
  userinfo_signing_alg_values_supported: {
    every: async (t, subject, name) => {
      const client = await integrate(subject.server, {
        consent: 'skip',
        description: { userinfo_signed_response_alg: name },
      })
      const { access_token: token } = await tokensOf(subject, client)
      const response = await userInfoAt(subject, token)
      t.equal(response.headers.get('content-type'), 'application/jwt')
      t.equal(decodeProtectedHeader(await response.text()).alg, name)
    },
    unlisted: async (t, { server }, listed) => {
      t.notOk(listed.includes('none'))
      const registering = integrate(server, { description: { userinfo_signed_response_alg: 'none' } })
      await t.rejects(registering, { code: 'invalid_client_metadata' })
    },
  },
  claims_supported: {
    each: {
      ...Object.fromEntries(personalClaims.map((name) => [name, aboutUser])),
      sub: async (t, subject) => {
        const { inIdToken, atUserInfo } = await askFor(subject, 'x')
        t.type(inIdToken['sub'], 'string')
        t.strictSame(atUserInfo, { sub: inIdToken['sub'] })
      },
      iss: aboutToken(({ document }) => document['issuer']),
      aud: aboutToken(({ client }) => client.id),
      exp: aboutToken(() => seconds),
      iat: aboutToken(() => seconds),
      auth_time: aboutToken(() => seconds),
      nonce: aboutToken(() => 'a nonce', { nonce: 'a nonce' }),
      acr: async (t, subject) => {
        const { inIdToken } = await askFor(subject, 'acr')
        t.ok([subject.document['acr_values_supported']].flat().includes(inIdToken['acr']))
      },
      amr: aboutToken(() => ['pwd']),
      at_hash: aboutToken(() => /^[\w-]{22}$/),
      groups: aboutGroups,
      sid: aboutToken(() => /^[\w-]{22}$/),
    },
    unlisted: nothingElse,
  },
}
