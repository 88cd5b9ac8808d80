import { redirectUri } from '../../helpers/flow.ts'
import { assertRejected, json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import { addressOf, askAt, errorOf, send } from './subject.ts'

const request = {
  response_type: 'code',
  redirect_uri: redirectUri,
  scope: 'openid',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
}

const push: Exercise<unknown> = async (t, subject, url) => {
  const { client, document } = subject
  const response = await send(subject, 'pushed_authorization_request_endpoint', client, request)
  t.equal(response.status, 201)
  const { request_uri: requestUri } = await json(response)
  const query = new URLSearchParams({ client_id: client.id, request_uri: String(requestUri) })
  const opened = await fetch(`${addressOf({ document }, 'authorization_endpoint')}?${query}`, {
    redirect: 'manual',
  })
  t.match(opened.headers.get('location'), /\/login\?interaction=/)
  const bare = await send(subject, 'pushed_authorization_request_endpoint', client, {})
  await assertRejected(t, bare, 'invalid_request')
  const get = await fetch(String(url))
  t.equal(get.status, 405)
  t.match(get.headers.get('allow'), 'POST')
}

const mayAskDirectly: Exercise<boolean> = async (t, subject) => {
  const response = await askAt(subject, subject.client)
  t.equal(errorOf(response)['error'], undefined)
  t.equal(response.status, 303)
}

/** What RFC 9126 adds to the metadata. */
export const pushedRequestPromises: Promises = {
  pushed_authorization_request_endpoint: { value: push },
  require_pushed_authorization_requests: { flag: { false: mayAskDirectly } },
}
