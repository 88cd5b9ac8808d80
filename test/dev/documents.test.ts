import t from 'tap'
import { authorize, obtainTokens } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev', nodes: 1 })
const redirectUri = 'http://127.0.0.1:51004/callback'

function send(method: string, name: string, body?: unknown): Promise<Response> {
  return fetch(`${server.issuer}/_dev/documents/${name}`, {
    method,
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
}

t.test('a development server publishes the document of a client, which signs in with its URL', async (t) => {
  const id = `${server.issuer}/_dev/documents/agent.json`
  const client = { id, method: 'none', redirectUri }
  t.equal((await authorize(server, client)).status, 400, 'it is unknown')
  const published = await send('PUT', 'agent.json', { client_name: 'Agent', redirect_uris: [redirectUri] })
  t.equal(published.status, 200)
  const document = await json(published)
  t.strictSame(document, { client_id: id, client_name: 'Agent', redirect_uris: [redirectUri] })
  const got = await fetch(id)
  t.match(got.headers.get('content-type'), /^application\/json/)
  t.strictSame(await json(got), document)
  t.ok((await obtainTokens(server, client)).access_token)
  await send('PUT', 'agent.json', { redirect_uris: ['https://other.example/callback'] })
  t.equal((await authorize(server, client)).status, 400, 'a changed document counts at once')
  await send('PUT', 'agent.json', { client_id: 'https://other.example/c', redirect_uris: [redirectUri] })
  const wrong = await authorize(server, client)
  t.match(await wrong.text(), /not the URL of the document/, 'and says what is wrong with it')
  t.equal((await send('DELETE', 'agent.json')).status, 204)
  t.equal((await authorize(server, client)).status, 400)
  t.equal((await send('GET', 'agent.json')).status, 404)
})

t.test('only a page of this server or a program on this computer publishes', async (t) => {
  t.equal((await send('PUT', 'a%2Fb', {})).status, 400)
  t.equal((await send('PUT', 'list.json', [])).status, 400)
  const foreign = await fetch(`${server.issuer}/_dev/documents/agent.json`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', origin: 'https://evil.example' },
    body: '{}',
  })
  t.equal(foreign.status, 403)
})
