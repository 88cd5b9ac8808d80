import { readFileSync } from 'node:fs'
import t from 'tap'
import { assertAllowed, isListed } from '../../src/specs/client-id-metadata/acceptance.ts'
import { knownDocuments } from '../../src/specs/client-id-metadata/known.ts'
import {
  assertClientIdUrl,
  type DocumentPolicy,
  isDocumentUrl,
  longestDocument,
  readDocument,
} from '../../src/specs/client-id-metadata/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { rejectionOf } from '../helpers/rejection.ts'

const id = 'https://client.example/client.json'
const policy: DocumentPolicy = {
  mode: 'any',
  allowed: [],
  formerHosts: [],
  metadataBytes: 8192,
  isDevelopment: false,
  scopes: [],
  algorithms: [],
  declared: { clientMetadata: {}, grantTypes: {}, clientAuthentication: {} },
}
const invalid = (rule: string, description: string, detail: object) => ({
  code: 'invalid_client',
  description,
  rule,
  status: 400,
  ...detail,
})
/** A text without repetition in any 100 characters, to see where it was cut. */
const long = Array.from({ length: 100 }, (_, n) => `${n}.`).join('')

t.test('a client_id with the scheme of a web page names a document', async (t) => {
  for (const url of [id, 'HTTP://client.example', 'https:']) t.equal(isDocumentUrl(url), true, url)
  for (const other of ['client-1', 'see https://client.example', 'httpx:'])
    t.equal(isDocumentUrl(other), false)
  t.equal(longestDocument, 5120, 'of 5 kB, as the draft recommends')
})

const checkUrl = (url: string, isDevelopment = false) => assertClientIdUrl(url, { ...policy, isDevelopment })
const malformed = (received: string) =>
  invalid(
    'cimd-3-client-id-url',
    'client_id must be an https URL with a path, without fragment, credentials and dot segments',
    { received },
  )

t.test('a client_id that is a URL is https, has a path, and means one document', async (t) => {
  for (const url of [id, `${id}?at=/../x`, 'https://client.example/a.b/..c', id.padEnd(2048, 'x')])
    t.strictSame(
      passedDuring(() => checkUrl(url)).map(({ rule, received }) => [rule, received]),
      [['cimd-3-client-id-url', url.slice(0, 100)]],
    )
  for (const url of [
    'https://client.example',
    'https://client.example/a/../client.json',
    'https://client.example/a/%2E%2e?x=y',
    'https://client.example/a/..?x=y',
    'https://999.0.0.1/client.json',
    'http://127.0.0.1/client.json',
    'ftp://client.example/',
  ])
    t.strictSame(
      rejectionOf(() => checkUrl(url)),
      malformed(url),
    )
  const longest = `${id}?${long}`
  for (const url of [`${longest}#`, id.padEnd(2049, 'x')])
    t.strictSame(
      rejectionOf(() => checkUrl(url)),
      malformed(url.slice(0, 100)),
    )
})

t.test(
  'a development server accepts documents of loopback, too, and of no other host without https',
  async (t) => {
    for (const url of ['http://127.0.0.1:9500/client.json', 'http://[::1]/', 'http://localhost/a?b', id])
      t.doesNotThrow(() => checkUrl(url, true), url)
    for (const url of ['http://client.example/client.json', 'http://127.0.0.1/a/../b'])
      t.strictSame(
        rejectionOf(() => checkUrl(url, true)),
        malformed(url),
      )
  },
)

t.test('a list of hosts and URLs allows documents, and the modes allow all or none', async (t) => {
  const allowed = [id, 'other.example:8443']
  for (const url of [id, 'https://other.example:8443/a', 'https://other.example:8443/b?c'])
    t.equal(isListed(url, { mode: 'allow-list', allowed }), true, url)
  for (const url of [`${id}?a`, 'https://other.example/a', 'https://a.other.example:8443/', 'no URL'])
    t.equal(isListed(url, { mode: 'allow-list', allowed }), false, url)
  t.equal(isListed(id, { mode: 'any', allowed: [] }), true)
  t.equal(isListed(id, { mode: 'off', allowed: [id] }), false)
})

t.test('docs/agents.md lists the documents of a new server, and where each is known from', async (t) => {
  const page = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| ([\w ]+) \| `(https:[^`]+)` \| \[.*\]\((.*)\) \|$/gm)]
  t.strictSame(
    rows.map(([, app, url, source]) => ({ url, app, source })),
    knownDocuments,
  )
})

t.test('a document that the settings or an operator exclude is rejected', async (t) => {
  const url = `${id}?${long}`
  const notAllowed = (description: string, stored: unknown) =>
    invalid('lychgate-client-document-allowed', description, { stored, received: url.slice(0, 100) })
  t.strictSame(
    rejectionOf(() => assertAllowed(url, false, { ...policy, mode: 'off', allowed: ['client.example'] })),
    notAllowed('this server accepts no client metadata documents (clientDocuments.mode)', 'off'),
  )
  const listing: DocumentPolicy = { ...policy, mode: 'allow-list', allowed: ['other.example'] }
  t.strictSame(
    rejectionOf(() => assertAllowed(url, false, listing)),
    notAllowed(
      'this server does not accept this client metadata document; its operator can add the URL or its host (clientDocuments.allowed)',
      ['other.example'],
    ),
  )
  t.strictSame(
    rejectionOf(() => assertAllowed(url, true, policy)),
    invalid(
      'lychgate-client-document-denied',
      'an operator denied this client (lychgate client document deny)',
      {},
    ),
  )
  const passed = passedDuring(() => assertAllowed(url, false, { ...listing, allowed: ['client.example'] }))
  t.strictSame(
    passed.map(({ rule, stored }) => [rule, stored]),
    [
      ['lychgate-client-document-allowed', ['client.example']],
      ['lychgate-client-document-denied', undefined],
    ],
  )
})

t.test('of the schemes of apps a document has the reverse of its own host, and no other', async (t) => {
  const read = (clientId: string, ...uris: string[]) =>
    readDocument({ client_id: clientId, redirect_uris: uris }, clientId, policy).redirectUris
  const own = 'example.client:/callback'
  t.strictSame(
    read(id, own, 'app.example:/cb', 'example.client.app:/cb', 'example:/cb', 'client.example:/cb'),
    [own],
  )
  t.strictSame(read('https://a.client.example:8443/c', 'example.client.a://cb', own), [
    'example.client.a://cb',
  ])
  for (const [clientId, uri] of [
    [id, 'example.client:/cb#x'],
    [id, 'example.client:/cb?code=x'],
    ['https://localhost/c', 'localhost:/cb'],
    ['https://file/c', 'file:/cb'],
  ] as const)
    t.throws(() => read(clientId, uri), /no https URI and no loopback URI/, uri)
})
