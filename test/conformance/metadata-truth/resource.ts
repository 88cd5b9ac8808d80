import type { Test } from 'tap'
import type { Fields } from '../../helpers/flow.ts'
import { challengeOf, json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import { askAt, errorOf, introspectAt, type Subject, tokensOf } from './subject.ts'

/** Calls the API that the metadata describes. */
function call({ server }: Subject, area: string, method: string, token?: string, query = '') {
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  return fetch(`${server.issuer}/api/${area}${query}`, { method, headers })
}

const courses = { scope: 'openid courses:read' }
const accessToken = async (subject: Subject, fields: Fields = courses) =>
  (await tokensOf(subject, subject.client, fields)).access_token

/** A scope opens its operation of the API, and a token without it gets an error that names it. */
const scopeOpens: Exercise = async (t, subject, name) => {
  const [, area = '', operation] = /^([a-z_]+):(read|write)$/.exec(name) ?? []
  if (operation === undefined) return void t.ok(identity.includes(name), `${name} is about identity`)
  const method = operation === 'read' ? 'GET' : 'POST'
  const response = await call(subject, area, method, await accessToken(subject, { scope: name }))
  t.equal(response.status, 200)
  t.match(await json(response), { area, operation, caller: 'user', scope: name })
  const other = area === 'courses' ? 'openid pages:read' : courses.scope
  const rejected = await call(subject, area, method, await accessToken(subject, { scope: other }))
  t.equal(rejected.status, 403)
  t.match(challengeOf(rejected).params, { error: 'insufficient_scope', scope: name })
}
const identity = ['openid', 'profile', 'email', 'groups']

const bearerMethods: Promises[string] = {
  each: {
    header: async (t, subject) => {
      const response = await call(subject, 'courses', 'GET', await accessToken(subject))
      t.match(await json(response), { caller: 'user' })
    },
  },
  unlisted: async (t, subject, listed) => {
    t.notOk(listed.includes('body') || listed.includes('query'))
    const token = await accessToken(subject, { scope: 'courses:read courses:write' })
    const query = await call(subject, 'courses', 'GET', undefined, `?access_token=${token}`)
    t.equal(query.status, 200)
    t.match(await json(query), { caller: 'anonymous' })
    const url = `${subject.server.issuer}/api/courses`
    const form = await fetch(url, { method: 'POST', body: new URLSearchParams({ access_token: token }) })
    t.equal(form.status, 415, 'a form is not even read')
    const body = JSON.stringify({ access_token: token })
    const headers = { 'content-type': 'application/json' }
    t.match(await json(await fetch(url, { method: 'POST', body, headers })), { caller: 'anonymous' })
  },
}

/** The metadata URL of an identifier, RFC 9728 §3.1. */
function placeOf(identifier: string, name = 'oauth-protected-resource'): string {
  const { origin, pathname, search } = new URL(identifier)
  return `${origin}/.well-known/${name}${pathname === '/' ? '' : pathname}${search}`
}

/** Metadata of the service's own API, RFC 9728. */
export const resourcePromises: Promises = {
  resource: {
    value: async (t, subject, value) => {
      const token = await accessToken(subject, { ...courses, resource: String(value) })
      const response = await fetch(`${value}/api/courses`, { headers: { authorization: `Bearer ${token}` } })
      t.match(await json(response), { caller: 'user' })
      t.equal((await introspectAt(subject, subject.client, token))['aud'], value)
      t.equal((await json(await fetch(placeOf(String(value)))))['resource'], value)
    },
  },
  authorization_servers: {
    every: async (t, _subject, server) => {
      const response = await fetch(placeOf(server, 'oauth-authorization-server'))
      t.equal(response.status, 200)
      t.equal((await json(response))['issuer'], server)
    },
    unlisted: async (t, { server }, listed) => {
      t.strictSame(listed, [server.issuer])
    },
  },
  scopes_supported: {
    every: scopeOpens,
    unlisted: async (t, subject, listed) => {
      t.strictSame(
        listed,
        [subject.document['scopes_supported']].flat().filter((name) => name !== 'offline_access'),
        'what may be asked for is what opens something',
      )
      t.equal((await call(subject, 'nothing', 'GET', await accessToken(subject))).status, 404)
    },
  },
  bearer_methods_supported: bearerMethods,
  resource_name: { value: named((subject) => subject.server.deps.config.service.name) },
  resource_documentation: { value: named((subject) => subject.document['service_documentation']) },
  resource_policy_uri: { value: named((subject) => subject.document['op_policy_uri']) },
  resource_tos_uri: { value: named((subject) => subject.document['op_tos_uri']) },
}

function named(expected: (subject: Subject) => unknown): Exercise<unknown> {
  return async (t, subject, value) => {
    t.type(value, 'string')
    t.equal(value, expected(subject))
  }
}

/** RFC 9728 §4: each resource has its own tokens, and the one served here has the same metadata. */
export const protectedResources: Promises[string] = {
  every: async (t, subject, identifier) => {
    const token = await accessToken(subject, { scope: 'courses:read', resource: identifier })
    t.equal((await introspectAt(subject, subject.client, token))['aud'], identifier)
    if (new URL(identifier).origin !== subject.server.origin) return
    const { resource, authorization_servers: servers } = await json(await fetch(placeOf(identifier)))
    t.strictSame([resource, servers], [identifier, [subject.server.issuer]])
  },
  unlisted: async (t: Test, subject, listed) => {
    for (const resource of [`${subject.server.origin}/elsewhere`, 'https://elsewhere.example', 'urn:x']) {
      t.notOk(listed.includes(resource))
      const response = await askAt(subject, subject.client, { resource })
      t.equal(errorOf(response)['error'], 'invalid_target', resource)
    }
    t.equal((await fetch(placeOf(`${subject.server.origin}/elsewhere`))).status, 404)
  },
}
