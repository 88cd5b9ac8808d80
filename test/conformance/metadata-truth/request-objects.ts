import { type AssertionAlgorithm, makeClientKey } from '../../helpers/assertions.ts'
import { integrate } from '../../helpers/authorization.ts'
import { type Fields, responseOf, type TestClient } from '../../helpers/flow.ts'
import { signRequest } from '../../helpers/request-objects.ts'
import type { Exercise, Promises } from './promise.ts'
import { addressOf, askAt, type Subject } from './subject.ts'

const key = makeClientKey('ES256')
const uri = 'https://127.0.0.1:1/request.jwt'

const clientWith = ({ server }: Subject, by = key): Promise<TestClient> =>
  integrate(server, {
    consent: 'skip',
    description: { jwks: { keys: [by.jwk] }, request_uris: [uri] },
  })

/** The response to `client_id` and these parameters alone. */
const send = (subject: Subject, client: TestClient, fields: Fields) =>
  subject.agent.send(
    `${addressOf(subject, 'authorization_endpoint')}?${new URLSearchParams({ client_id: client.id, ...fields })}`,
  )

const byValue: Exercise<boolean> = async (t, subject) => {
  const client = await clientWith(subject)
  const request = signRequest(key, client, subject.server)
  t.match(responseOf(await send(subject, client, { request })), { code: String, state: 'a-state' })
}

const byReference: Exercise<boolean> = async (t, subject) => {
  const client = await clientWith(subject)
  const outside = { redirect_uri: client.redirectUri }
  const { error, error_description: why } = responseOf(
    await send(subject, client, { request_uri: uri, ...outside }),
  )
  t.equal(error, 'invalid_request_uri')
  t.match(why, /cannot be fetched/)
  const other = await send(subject, client, { request_uri: `${uri}?`, ...outside })
  t.match(responseOf(other)['error_description'], /not registered/)
}

const algorithm: Exercise = async (t, subject, name) => {
  // `as`: the entry that is exercised is one that a client may use.
  const by = makeClientKey(name as AssertionAlgorithm)
  const own = { ...by, jwk: name === 'PS256' ? { ...by.jwk, alg: name } : by.jwk }
  const client = await clientWith(subject, own)
  t.match(responseOf(await send(subject, client, { request: signRequest(own, client, subject.server) })), {
    code: String,
  })
}

const maySendPlain: Exercise<boolean> = async (t, subject) => {
  t.match(responseOf(await askAt(subject, subject.firstParty)), { code: String })
}

/** What RFC 9101 adds to the metadata. */
export const requestObjectPromises: Promises = {
  request_parameter_supported: { flag: { true: byValue } },
  request_uri_parameter_supported: { flag: { true: byReference } },
  require_request_uri_registration: { flag: { true: byReference } },
  require_signed_request_object: { flag: { false: maySendPlain } },
  request_object_signing_alg_values_supported: {
    every: algorithm,
    unlisted: async (t, subject, listed) => {
      for (const name of ['none', 'HS256']) {
        t.notOk(listed.includes(name), name)
        const registering = integrate(subject.server, { description: { request_object_signing_alg: name } })
        await t.rejects(registering, { code: 'invalid_client_metadata' }, name)
      }
    },
  },
}
