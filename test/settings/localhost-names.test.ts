import t from 'tap'
import { loadConfig } from '../../src/settings/load.ts'

const load = (issuer: string) => loadConfig({ mode: 'dev', environment: { LYCHGATE_ISSUER: issuer } })

t.test('http is accepted on a name below .localhost, and on no name that only looks like one', async (t) => {
  const issuer = 'http://lychgate.localhost:9400'
  t.equal(load(issuer).issuer, issuer)
  for (const host of ['notlocalhost', 'localhost.example.org', 'lychgate.localhost.example.org'])
    t.throws(() => load(`http://${host}:9400`), { message: /^issuer: http is accepted on localhost/ }, host)
})
