/** Writes the results of the clients into docs/misbehaving-issuers.md: `npm run generate -- misbehaving-issuers`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { startServer } from '../../helpers/server.ts'
import { clients } from './clients.ts'
import { generated } from './page.ts'
import { runAll } from './results.ts'

const page = new URL('../../../docs/misbehaving-issuers.md', import.meta.url)
const ends: (() => unknown)[] = []
const server = await startServer({ teardown: (end) => ends.push(end) }, { mode: 'dev' })
const results = await runAll(server, clients)
writeFileSync(page, generated(readFileSync(page, 'utf8'), results))
for (const end of ends.toReversed()) await end()
