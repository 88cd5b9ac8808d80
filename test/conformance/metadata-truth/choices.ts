import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import type { Test } from 'tap'
import { grantType as deviceGrantType } from '../../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { integrate } from '../../helpers/authorization.ts'
import { redirectUri, responseOf } from '../../helpers/flow.ts'
import { type Landing, UserAgent } from '../../helpers/user-agent.ts'
import { assertRejected, json } from '../../helpers/wire.ts'
import { redeemDevice } from './devices.ts'
import type { Exercise, Promises } from './promise.ts'
import {
  addressOf,
  approveAt,
  askAt,
  codeOf,
  errorOf,
  newClient,
  redeemAt,
  registerAt,
  requestUrl,
  type Subject,
  send,
  tokensOf,
  userInfoAt,
} from './subject.ts'

const issuer: Exercise<unknown> = async (t, subject, value) => {
  t.equal(value, subject.server.deps.config.issuer)
  const { origin, pathname } = new URL(String(value))
  const path = pathname === '/' ? '' : pathname
  for (const place of [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${value}/.well-known/openid-configuration`,
  ]) {
    t.equal((await json(await fetch(place)))['issuer'], value, place)
  }
  t.equal((await approveAt(subject, subject.client))['iss'], value)
}

/** The response to a signed-in user's consent, in a browser. */
async function responded(subject: Subject, mode: string): Promise<Landing> {
  return subject.agent.open(
    requestUrl(subject, subject.firstParty, { response_mode: mode, state: 'a-state' }),
  )
}

const modes: Promises[string] = {
  each: {
    query: async (t, subject) => {
      const landing = await responded(subject, 'query')
      if (landing.at !== 'redirect') return void t.fail('the user is redirected')
      t.match(Object.fromEntries(landing.location.searchParams), { code: String, state: 'a-state' })
      t.equal(landing.location.hash, '')
    },
    form_post: async (t, subject) => {
      const landing = await responded(subject, 'form_post')
      if (landing.at !== 'page') return void t.fail('a page posts the response')
      const [form] = landing.page.forms
      t.match(form, { method: 'post', action: subject.firstParty.redirectUri })
      const fields = Object.fromEntries(form?.fields.map(({ name, value }) => [name, value]) ?? [])
      t.match(fields, { code: String, state: 'a-state', iss: subject.server.issuer })
    },
    ...Object.fromEntries(['query.jwt', 'jwt'].map((mode) => [mode, signedQuery(mode)])),
    'form_post.jwt': async (t, subject) => {
      const landing = await responded(subject, 'form_post.jwt')
      if (landing.at !== 'page') return void t.fail('a page posts the response')
      const fields = landing.page.forms[0]?.fields ?? []
      t.strictSame(
        fields.map(({ name }) => name),
        ['response'],
      )
      t.match(decodeJwt(fields[0]?.value ?? ''), { code: String, iss: subject.server.issuer })
    },
  },
  unlisted: async (t, subject, listed) => {
    for (const mode of ['fragment', 'fragment.jwt', 'web_message', 'x']) {
      t.notOk(listed.includes(mode), mode)
      const response = await askAt(subject, subject.firstParty, { response_mode: mode })
      t.equal(response.status, 400, mode)
      t.equal(response.headers.get('location'), null, mode)
    }
  },
}

function signedQuery(mode: string) {
  return async (t: Test, subject: Subject): Promise<void> => {
    const landing = await responded(subject, mode)
    if (landing.at !== 'redirect') return void t.fail('the user is redirected')
    const { response = '', ...others } = Object.fromEntries(landing.location.searchParams)
    t.strictSame(others, {})
    t.match(decodeJwt(response), { code: String, state: 'a-state', aud: subject.firstParty.id })
  }
}

const responseTypes: Promises[string] = {
  each: {
    code: async (t, subject) => {
      const response = await approveAt(subject, subject.client, { response_type: 'code' })
      t.strictSame(Object.keys(response).sort(), ['code', 'iss', 'state'])
    },
  },
  unlisted: async (t, subject, listed) => {
    for (const type of ['token', 'id_token', 'code id_token', 'code token', 'none', 'x']) {
      t.notOk(listed.includes(type), type)
      const response = await askAt(subject, subject.client, { response_type: type, nonce: 'n' })
      t.equal(errorOf(response)['error'], 'unsupported_response_type', type)
      const registered = await registerAt(subject, { response_types: [type] })
      await assertRejected(t, registered, 'invalid_client_metadata', 400, type)
    }
  },
}

const exchangeType = 'urn:ietf:params:oauth:grant-type:token-exchange'

const grantTypes: Promises[string] = {
  each: {
    authorization_code: async (t, subject) => {
      const own = await newClient(subject, { grant_types: ['authorization_code'] })
      const response = await redeemAt(subject, own, await codeOf(subject, own))
      t.equal(response.status, 200)
      t.match(await json(response), { access_token: String })
    },
    refresh_token: async (t, subject) => {
      const { refresh_token: token } = await tokensOf(subject, subject.client)
      const fields = { grant_type: 'refresh_token', refresh_token: token }
      const response = await send(subject, 'token_endpoint', subject.client, fields)
      t.equal(response.status, 200)
      const { access_token: access } = await json(response)
      t.equal((await userInfoAt(subject, String(access))).status, 200)
    },
    client_credentials: async (t, subject) => {
      const machine = await integrate(subject.server, {
        redirectUris: [],
        grantTypes: ['client_credentials'],
        scope: ['courses:read'],
      })
      const response = await send(subject, 'token_endpoint', machine, { grant_type: 'client_credentials' })
      t.equal(response.status, 200)
      t.match(await json(response), { access_token: String, scope: 'courses:read' })
    },
    [deviceGrantType]: redeemDevice,
    [exchangeType]: async (t, subject) => {
      const own = await integrate(subject.server, { grantTypes: ['authorization_code', exchangeType] })
      const { access_token: token } = await tokensOf(subject, own)
      const type = 'urn:ietf:params:oauth:token-type:access_token'
      const fields = { grant_type: exchangeType, subject_token: token, subject_token_type: type }
      const response = await send(subject, 'token_endpoint', own, fields)
      t.equal(response.status, 200)
      t.match(await json(response), { access_token: String, issued_token_type: type })
    },
  },
  unlisted: async (t, subject, listed) => {
    const others = [
      'password',
      'implicit',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
      'urn:ietf:params:oauth:grant-type:saml2-bearer',
    ]
    for (const type of others) {
      t.notOk(listed.includes(type), type)
      const fields = { grant_type: type, username: 'alice', password: 'x', assertion: 'x', device_code: 'x' }
      const response = await send(subject, 'token_endpoint', subject.client, fields)
      await assertRejected(t, response, 'unsupported_grant_type', 400, type)
      const registered = await registerAt(subject, { grant_types: ['authorization_code', type] })
      await assertRejected(t, registered, 'invalid_client_metadata', 400, type)
    }
  },
}

const challengeMethods: Promises[string] = {
  each: {
    S256: async (t, subject) => {
      const code = await codeOf(subject, subject.client, { code_challenge_method: 'S256' })
      const wrong = await redeemAt(subject, subject.client, code, { code_verifier: 'w'.repeat(43) })
      await assertRejected(t, wrong, 'invalid_grant')
      t.equal((await redeemAt(subject, subject.client, code)).status, 200)
    },
  },
  unlisted: async (t, subject, listed) => {
    for (const method of ['plain', 's256', 'S512', undefined]) {
      const about = method ?? 'plain, which is what none means'
      t.notOk(method !== undefined && listed.includes(method), about)
      const response = await askAt(subject, subject.client, { code_challenge_method: method })
      t.equal(errorOf(response)['error'], 'invalid_request', about)
    }
  },
}

/** The response to alice's browser for a client that needs no consent, if no page is needed. */
const prompted = (subject: Subject, prompt: string) =>
  subject.agent.open(requestUrl(subject, subject.firstParty, { prompt }))

/** A prompt that ends at its page. */
const showing =
  (prompt: string, page: RegExp): Exercise =>
  async (t, subject) => {
    t.match(await prompted(subject, prompt), { at: 'page', page: { status: 200, html: page } })
  }

const prompts: Promises[string] = {
  each: {
    none: async (t, subject) => {
      const nobody = new UserAgent(subject.server.origin)
      const silent = await askAt(subject, subject.client, { prompt: 'none' }, nobody)
      t.equal(errorOf(silent)['error'], 'login_required')
      const unasked = await askAt(subject, subject.client, { prompt: 'none' })
      t.equal(errorOf(unasked)['error'], 'consent_required')
      t.type(responseOf(await askAt(subject, subject.firstParty, { prompt: 'none' }))['code'], 'string')
    },
    login: showing('login', /name="password"/),
    consent: showing('consent', /name="decision" value="approve"/),
    select_account: showing('select_account', /name="decision" value="switch"/),
  },
  unlisted: async (t, subject, listed) => {
    for (const prompt of ['create', 'x']) {
      t.notOk(listed.includes(prompt), prompt)
      const landing = await prompted(subject, prompt)
      if (landing.at !== 'redirect') return void t.fail(`${prompt} is ignored, and has no page`)
      t.ok(landing.location.searchParams.has('code'), `${prompt} is ignored`)
    }
  },
}

/** The `lang` of the page for a request in this language. */
async function languageOfPage(subject: Subject, uiLocales: string): Promise<string | undefined> {
  const landing = await subject.agent.open(
    requestUrl(subject, subject.firstParty, { prompt: 'login', ui_locales: uiLocales }),
  )
  if (landing.at !== 'page') return undefined
  const [, language] = /<html lang="([^"]*)"/.exec(landing.page.html) ?? []
  return landing.page.headers.get('content-language') === language ? language : undefined
}

const languages: Promises[string] = {
  every: async (t, subject, language) => {
    t.equal(await languageOfPage(subject, language), language)
  },
  unlisted: async (t, subject, listed) => {
    for (const language of ['se', 'tlh']) {
      t.notOk(listed.includes(language), language)
      t.equal(await languageOfPage(subject, language), subject.server.deps.config.service.language)
    }
  },
}

const algorithm: Exercise = async (t, subject, name) => {
  const own = await newClient(subject, { id_token_signed_response_alg: name })
  const { id_token: idToken } = await tokensOf(subject, own)
  t.equal(decodeProtectedHeader(idToken).alg, name)
  const keys = createRemoteJWKSet(new URL(addressOf(subject, 'jwks_uri')))
  const { payload } = await jwtVerify(idToken, keys, { algorithms: [name], audience: own.id })
  t.equal(payload.iss, subject.document['issuer'])
}

const subjects: Promises[string] = {
  each: {
    public: async (t, subject) => {
      const own = await newClient(subject, { subject_type: 'public' })
      const subs = [own, subject.client].map(async (client) => {
        const { access_token: token } = await tokensOf(subject, client)
        return (await json(await userInfoAt(subject, token)))['sub']
      })
      const [one, two] = [await subs[0], await subs[1]]
      t.type(one, 'string')
      t.equal(one, two, 'a user is the same to every client')
    },
  },
  unlisted: async (t, subject, listed) => {
    t.notOk(listed.includes('pairwise'))
    await assertRejected(
      t,
      await registerAt(subject, { subject_type: 'pairwise' }),
      'invalid_client_metadata',
    )
  },
}

/** A link for users, as the operator configured it. */
const link =
  (name: 'documentation' | 'policy' | 'terms'): Exercise<unknown> =>
  async (t, { server }, value) => {
    t.equal(value, server.deps.config.service[name])
    t.match(new URL(String(value)).protocol, /^https?:$/)
  }

/** Everything the documents let a client choose, and other facts about the server. */
export const choicePromises: Promises = {
  issuer: { value: issuer },
  response_types_supported: responseTypes,
  response_modes_supported: modes,
  grant_types_supported: grantTypes,
  code_challenge_methods_supported: challengeMethods,
  prompt_values_supported: prompts,
  ui_locales_supported: languages,
  id_token_signing_alg_values_supported: {
    every: algorithm,
    unlisted: async (t, subject, listed) => {
      for (const name of ['none', 'HS256', 'PS256', 'RS512', 'ES384']) {
        t.notOk(listed.includes(name), name)
        const response = await registerAt(subject, { id_token_signed_response_alg: name })
        await assertRejected(t, response, 'invalid_client_metadata', 400, name)
      }
    },
  },
  authorization_signing_alg_values_supported: {
    every: async (t, subject, name) => {
      const description = { authorization_signed_response_alg: name }
      const client = await integrate(subject.server, { description })
      const response = await askAt(subject, client, { response_mode: 'jwt', prompt: 'none' })
      const { searchParams } = new URL(response.headers.get('location') ?? '')
      t.equal(decodeProtectedHeader(searchParams.get('response') ?? '').alg, name)
    },
    unlisted: async (t, { server }, listed) => {
      t.notOk(listed.includes('none'))
      const registering = integrate(server, { description: { authorization_signed_response_alg: 'none' } })
      await t.rejects(registering, { code: 'invalid_client_metadata' })
    },
  },
  subject_types_supported: subjects,
  authorization_response_iss_parameter_supported: { flag: { true: issAlways } },
  service_documentation: { value: link('documentation') },
  op_policy_uri: { value: link('policy') },
  op_tos_uri: { value: link('terms') },
}

async function issAlways(t: Test, subject: Subject): Promise<void> {
  const { issuer: own } = subject.document
  t.equal((await approveAt(subject, subject.client))['iss'], own)
  const rejected = errorOf(await askAt(subject, subject.client, { prompt: 'none' }))
  t.strictSame([rejected['error'], rejected['iss']], ['consent_required', own])
  const page = await askAt(subject, { ...subject.client, redirectUri: `${redirectUri}/other` })
  t.equal(page.headers.get('location'), null, 'and nothing is sent to an unknown client')
}
