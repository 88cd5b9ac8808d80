import t from 'tap'
import { ask, assertErrorRedirect, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorize, exchange, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected } from '../helpers/wire.ts'

const notes = 'https://notes.example/api'
const server = await startServer(t, {
  resources: [{ identifier: notes, name: 'Notes', scopes: ['courses:read'], tokenFormat: 'opaque' }],
})
const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
const user = await signedIn(server, client)

/** The audience of the access token of a request with these resources. */
async function audience(
  resource: string | readonly string[] | undefined,
  scope = 'courses:read',
): Promise<unknown> {
  const page = pageOf(await ask(server, client, { resource, scope }, user))
  const { code = '' } = sentAway(await user.submit(page, { decision: 'approve' }))
  const { access_token: token } = (await (await exchange(server, client, code)).json()) as {
    access_token: string
  }
  const response = (await (await postAs(server, client, '/api/oauth/introspect', { token })).json()) as {
    aud: unknown
  }
  return response.aud
}

t.test(
  '[rfc8707-2-absolute-no-fragment] a resource that is not an absolute URI without fragment is invalid_target, here and at the token endpoint',
  async (t) => {
    for (const resource of ['/api', 'notes', 'https://h/#f', `${notes}#`, '//notes.example/api', ' ']) {
      const response = await authorize(server, client, { resource }, user)
      const description = assertErrorRedirect(t, server, response, 'invalid_target', { message: resource })
      t.match(description, 'must be an absolute URI without a fragment', resource)
    }
    const page = pageOf(await ask(server, client, { resource: notes, scope: 'courses:read' }, user))
    const { code = '' } = sentAway(await user.submit(page, { decision: 'approve' }))
    for (const resource of ['/api', 'https://h/#f']) {
      const response = await exchange(server, client, code, { resource })
      await assertRejected(t, response, 'invalid_target', 400, resource)
    }
    const tokens = (await (await exchange(server, client, code)).json()) as Tokens
    t.type(tokens.access_token, 'string', 'the code is alive')
    const again = await refresh(server, client, tokens.refresh_token, { resource: 'https://h/#f' })
    await assertRejected(t, again, 'invalid_target', 400, 'at a refresh')
    t.equal((await refresh(server, client, tokens.refresh_token)).status, 200)
  },
)

t.test(
  '[rfc8707-2-unknown-invalid-target] a resource that is not an API of this server is invalid_target',
  async (t) => {
    for (const resource of [
      'https://other.example',
      'https://',
      `${notes}/`,
      notes.toUpperCase(),
      `${server.issuer}/api`,
      [notes, 'https://other.example'],
    ]) {
      const response = await authorize(server, client, { resource, scope: 'courses:read' }, user)
      assertErrorRedirect(t, server, response, 'invalid_target', { message: String(resource) })
    }
    const nothingLeft = await authorize(server, client, { resource: notes, scope: 'students:read' }, user)
    assertErrorRedirect(t, server, nothingLeft, 'invalid_target')
  },
)

t.test('[rfc8707-2-repeatable] a token is bound to all of several resources', async (t) => {
  t.same(await audience([notes, server.issuer]), [notes, server.issuer])
  t.same(await audience([notes, notes]), notes)
})

t.test(
  '[rfc8707-2.1-omitted-default] without resource the token is for the API of the service',
  async (t) => {
    t.same(await audience(undefined), server.issuer)
    t.same(await audience(''), server.issuer)
    t.same(await audience(notes), notes)
    t.same(await audience(`${server.issuer}/`), server.issuer, 'as URL parsers write it')
  },
)
