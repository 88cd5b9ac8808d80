/** Three libraries against every misbehaving issuer, compared with the documentation. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startServer } from '../../helpers/server.ts'
import { clients } from './clients.ts'
import { generated } from './page.ts'
import { runAll } from './results.ts'

const server = await startServer(t, { mode: 'dev' })
const results = await runAll(server, clients)
const page = readFileSync(new URL('../../../docs/misbehaving-issuers.md', import.meta.url), 'utf8')

t.test('every client completes the flow at a correct issuer', async (t) => {
  const passes = results.filter(({ id }) => id === 'reference')
  t.equal(passes.length, clients.length)
  for (const { client, verdict, step, error } of passes) {
    t.strictSame({ verdict, step, error }, { verdict: 'passed', step: 'end', error: undefined }, client)
  }
})

t.test('a deceived client completes the flow without an error', async (t) => {
  for (const { id, client, verdict, step, error } of results) {
    if (verdict === 'fooled')
      t.strictSame({ step, error }, { step: 'end', error: undefined }, `${client} at ${id}`)
  }
})

t.test('the documentation describes each client in the same words', async (t) => {
  t.strictSame(
    page.split('\n'),
    generated(page, results).split('\n'),
    'else: npm run generate -- misbehaving-issuers',
  )
})
