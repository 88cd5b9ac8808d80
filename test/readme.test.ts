import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { order } from '../scripts/layers.ts'
import { mintSecret, secretBytes } from '../src/domain/secret.ts'
import { obtainCode, obtainTokens, register } from './helpers/flow.ts'
import { startServer } from './helpers/server.ts'

t.test('[rfc6749-2.2-document-sizes] issued values are no longer than docs/security.md states', async (t) => {
  const server = await startServer(t)
  const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const { access_token: access, refresh_token: refresh } = await obtainTokens(server, client)
  const code = await obtainCode(server, client)
  const longest = documentedLengths()
  t.equal(longest.size, 12)
  const minted = (['link', 'held', 'sealing', 'initialToken', 'personalToken'] as const).map((kind) =>
    mintSecret(kind, Buffer.alloc(secretBytes)),
  )
  for (const issued of [client.id, client.secret ?? '', code, access, refresh, ...minted]) {
    const prefix = [...longest.keys()].find((start) => issued.startsWith(start)) ?? ''
    t.ok(issued.length <= (longest.get(prefix) ?? 0), `${prefix} has ${issued.length} characters`)
  }
})

t.test('the README states the number of ledger clauses, and fits a terminal', async (t) => {
  const readme = read('../README.md')
  const counts = clausesPerDocument()
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  t.match(readme, `${total} clauses of ${counts.size} documents`)
  const rows = [...readme.matchAll(/^\| ((?:RFC|OIDC) [^|]+) \| [^|]+ \| (\d+) \|/gm)]
  t.ok(rows.length > 15)
  for (const [, document = '', count] of rows) t.equal(Number(count), counts.get(document), document)
  t.strictSame(
    readme.split('\n').filter((line) => line.length > 120),
    [],
  )
})

t.test('the table of the README links every specification', async (t) => {
  const table = read('../README.md')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .join('\n')
  const folders = readdirSync(new URL('../src/specs', import.meta.url))
  t.ok(folders.length > 15)
  t.strictSame(
    folders.filter((folder) => !table.includes(`[${folder}]`)),
    [],
  )
})

t.test('the rooms of docs/reading.md are those of src, in the order of their layers', async (t) => {
  const rooms = [...read('../docs/reading.md').matchAll(/^- `([^`]+)`: /gm)].map(([, room]) => room)
  t.strictSame(rooms, order.toReversed())
})

t.test('README runs and tests it by one command each, and these are the steps of CI', async (t) => {
  const blocks = [...read('../README.md').matchAll(/^```(?:sh server|bash)\n(.*)\n```$/gm)]
  const commands = blocks.map(([, line = '']) => line.replace(/ +#.*/, ''))
  t.strictSame(commands, ['npm ci && npm start', 'npm ci && npm test'])
  const run = read('../.ci/run')
  const steps = ['install', 'tests'].map((name) => new RegExp(`step '${name}' ([^;\n]*)`).exec(run)?.[1])
  t.equal(steps.join(' && '), commands[1])
})

t.test('the tour opens eight files and names only what they contain', async (t) => {
  const stops = read('../docs/reading.md')
    .split(/^## (?=\d)/m)
    .slice(1)
  t.equal(stops.length, 8)
  const lines = stops.flatMap((stop) => {
    const file = /^\d+\. \[([^\]]+)\]/.exec(stop)?.[1] ?? ''
    return read(`../${file}`).split('\n').slice(1)
  }).length
  const stated = Number(/some ([\d,]+) lines/.exec(read('../docs/reading.md'))?.[1]?.replace(',', ''))
  t.ok(Math.abs(lines - stated) <= 50, `${lines} lines`)
  for (const stop of stops) {
    const [text = ''] = stop.split(/^## /m)
    const file = /^\d+\. \[([^\]]+)\]/.exec(text)?.[1] ?? ''
    const source = read(`../${file}`)
    const named = [...text.matchAll(/`([a-z]+[A-Z]\w+)`/g)].map(([, name = '']) => name)
    t.strictSame(
      named.filter((name) => !source.includes(name)),
      [],
      file,
    )
  }
})

t.test('what docs/README.md lists as not there is not there', async (t) => {
  const section = read('../docs/README.md').split('## Not there yet\n')[1]?.split(/^## /m)[0] ?? ''
  const cells = [...section.matchAll(/^\| [^|]+ \| ([^|]+) \| [^|]+ \|$/gm)].map(([, cell = '']) => cell)
  const names = new Set(cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name)))
  t.ok(names.size > 15, 'the names on the wire')
  const server = await startServer(t)
  const response = await fetch(`${server.issuer}/.well-known/openid-configuration`)
  // `as`: an object of names and lists.
  const metadata = (await response.json()) as Readonly<Record<string, string | readonly string[]>>
  const offered = Object.entries(metadata).flatMap(([name, value]) => [name, value].flat())
  t.ok(offered.includes('client_credentials'))
  t.strictSame(
    offered.filter((name) => names.has(name)),
    [],
  )
})

/** Document → clauses that are tied to tests: neither planned nor declined. */
function clausesPerDocument(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const file of readdirSync(new URL('requirements/', import.meta.url)).filter((name) =>
    name.endsWith('.jsonl'),
  ))
    for (const line of read(`requirements/${file}`).split('\n').filter(Boolean)) {
      const { spec, planned, declined } = JSON.parse(line)
      if (planned === undefined && declined === undefined) counts.set(spec, (counts.get(spec) ?? 0) + 1)
    }
  return counts
}

function read(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

/** Prefix → longest, from the table of the page. */
function documentedLengths(): ReadonlyMap<string, number> {
  const page = read('../docs/security.md')
  const rows = page.matchAll(/^\| [^|]+ \| `(\w+_)` \| (\d+)/gm)
  return new Map([...rows].map(([, prefix = '', length]) => [prefix, Number(length)]))
}
