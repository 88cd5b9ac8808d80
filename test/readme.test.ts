import { readFileSync } from 'node:fs'
import t from 'tap'
import { mintSecret, secretBytes } from '../src/domain/secret.ts'
import { obtainCode, obtainTokens, register } from './helpers/flow.ts'
import { startServer } from './helpers/server.ts'

t.test('[rfc6749-2.2-document-sizes] what is issued is no longer than the README says', async (t) => {
  const server = await startServer(t)
  const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const { access_token: access, refresh_token: refresh } = await obtainTokens(server, client)
  const code = await obtainCode(server, client)
  const longest = documentedLengths()
  t.equal(longest.size, 8)
  const [link, sealing] = (['link', 'sealing'] as const).map((kind) =>
    mintSecret(kind, Buffer.alloc(secretBytes)),
  )
  for (const issued of [client.id, client.secret ?? '', code, access, refresh, link ?? '', sealing ?? '']) {
    const prefix = [...longest.keys()].find((start) => issued.startsWith(start)) ?? ''
    t.ok(issued.length <= (longest.get(prefix) ?? 0), `${prefix} has ${issued.length} characters`)
  }
})

/** Prefix → longest, from the table of the README. */
function documentedLengths(): ReadonlyMap<string, number> {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const rows = readme.matchAll(/^\| [^|]+ \| `(\w+_)` \| (\d+)/gm)
  return new Map([...rows].map(([, prefix = '', length]) => [prefix, Number(length)]))
}
