import t from 'tap'
import { loadConfig } from '../../src/settings/load.ts'

const secret = 'a secret of at least thirty-two characters'
const load = (issuer: string, mode: 'dev' | 'serve' = 'dev') =>
  loadConfig({ mode, environment: { LYCHGATE_ISSUER: issuer, LYCHGATE_SECRET: secret } })

t.test(
  'a development server takes http on a name below .localhost, and on no name that only looks like one',
  async (t) => {
    const issuer = 'http://lychgate.localhost:9400'
    t.equal(load(issuer).issuer, issuer)
    t.throws(
      () => load(issuer, 'serve'),
      { message: /^issuer: http is accepted on localhost, 127/ },
      'in production',
    )
    t.equal(load('http://localhost:9400', 'serve').issuer, 'http://localhost:9400')
    for (const host of ['notlocalhost', 'localhost.example.org', 'lychgate.localhost.example.org'])
      t.throws(() => load(`http://${host}:9400`), { message: /^issuer: http is accepted on localhost/ }, host)
  },
)
