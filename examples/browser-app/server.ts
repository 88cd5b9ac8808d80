/** Serves the files of the app and its configuration. README.md describes how to start it. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'

const { ISSUER: issuer = 'http://localhost:9400', ORIGIN: origin = 'http://127.0.0.1:9510' } = process.env

const file = (name: string) => readFileSync(new URL(name, import.meta.url))
const files = new Map([
  ['/', { type: 'text/html', content: file('index.html') }],
  ['/app.js', { type: 'text/javascript', content: file('app.js') }],
  [
    '/oauth4webapi.js',
    { type: 'text/javascript', content: readFileSync(fileURLToPath(import.meta.resolve('oauth4webapi'))) },
  ],
  ['/issuer', { type: 'application/json', content: Buffer.from(JSON.stringify({ issuer })) }],
])

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', origin)
  const found = files.get(pathname)
  if (!found) return response.writeHead(404).end()
  // An injected script can call the issuer and this origin, and can send data nowhere else.
  const policy = `default-src 'none'; script-src 'self'; connect-src 'self' ${new URL(issuer).origin}; base-uri 'none'; frame-ancestors 'none'`
  const headers = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }
  return response
    .writeHead(200, { 'content-type': `${found.type}; charset=utf-8`, ...headers })
    .end(found.content)
})
const { hostname, port } = new URL(origin)
process.once('SIGTERM', () => server.close())
server.listen(Number(port), hostname, () => process.stdout.write(`Course reader is ready at ${origin}\n`))
