/** SECURITY.md lists every outbound connection: these tests find them in the source. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { purposes } from '../../src/outbound/budgets.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.[jt]s$/.test(path))
  .map((path) => path.replaceAll('\\', '/'))
  .toSorted()
  .map((path) => ({ path, text: read(`src/${path}`) }))
/** Purpose → the rest of its row. */
const rows = new Map(
  [...read('SECURITY.md').matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, purpose = '', row = '']) => [
    purpose,
    row,
  ]),
)

t.test(
  'the table has every purpose of the fetcher, the database, the mail server and the bucket',
  async (t) => {
    t.strictSame([...rows.keys()].toSorted(), [...purposes, 'backup', 'database', 'mail'].toSorted())
  },
)

t.test('nothing else in the server opens a connection', async (t) => {
  const opens =
    /import \{[^}]*\b(?:connect|request)\b[^}]*\} from 'node:(?:net|tls|https?|http2|dgram)'|(?:from |import\()'(?:pg|nodemailer|undici|ws)'|(?:await|return|=>?|:) fetch\(/
  const typesOnly = /^import type .*$/gm
  const found = sources
    .filter(({ path }) => !/^(?:cli|dev|prove)\//.test(path))
    .filter(({ text }) => opens.test(text.replaceAll(typesOnly, '')))
    .map(({ path }) => path.split('/').slice(-2).join('/'))
  t.strictSame(found.toSorted(), [
    // Runs in other APIs, which name the endpoint.
    'guard/introspected-by.ts',
    // Only commands load it.
    'outbound/bucket.ts',
    // The one fetcher.
    'outbound/exchange.ts',
    'outbound/mailer.ts',
    'postgres/copy-end.ts',
    // Only a command loads it.
    'postgres/distribution.ts',
    'postgres/examine-postgres.ts',
    'postgres/open-pool.ts',
    'postgres/partition-log.ts',
    'postgres/prepared.ts',
  ])
})

t.test('the table says what each caller of the fetcher connects to', async (t) => {
  const named: Readonly<Record<string, readonly [purpose: string, words: string]>> = {
    'cli/doctor/fetches.ts': ['operator', 'an operator wrote'],
    'client-id-metadata/fetching.ts': ['unknown', 'clientDocuments'],
    'documents.ts': ['operator', '`jwks_uri`'],
    'oidc-backchannel-logout/sender.ts': ['form', '`backchannel_logout_uri`'],
    'pages/client-logo.ts': ['operator', '`logo_uri`'],
    'oidc-client/upstreams.ts': ['upstream', 'token endpoint'],
    'rfc9101-request-objects/plugin.ts': ['requestObject', '`request_uri`'],
  }
  const callers = sources.filter(({ text }) => /(?<![\w.])fetchUrl\(/.test(text)).map(({ path }) => path)
  const entries = Object.entries(named)
  t.equal(callers.length, entries.length, `${callers}`)
  for (const path of callers) {
    const [, [purpose, words] = ['', path]] = entries.find(([end]) => path.endsWith(end)) ?? []
    t.ok(rows.get(purpose)?.includes(words), `${path}: ${words}`)
  }
})
