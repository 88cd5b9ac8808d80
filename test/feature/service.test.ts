import t from 'tap'
import { describeService } from '../../src/feature/service.ts'
import { loadConfig } from '../../src/settings/load.ts'

const secret = 'a secret for tests that is long enough'
const partyAt = (issuer: string) =>
  describeService(loadConfig({ mode: 'serve', flags: { issuer, secret } })).relyingParty

t.test('passkeys are bound to the host name of the issuer, never to an IP address', async (t) => {
  const rows = {
    'https://id.example.org': { id: 'id.example.org', origin: 'https://id.example.org' },
    'https://id.example.org:8443/t': { id: 'id.example.org', origin: 'https://id.example.org:8443' },
    'http://localhost:9400': { id: 'localhost', origin: 'http://localhost:9400' },
    'http://127.0.0.1:9400': undefined,
    'http://[::1]:9400': undefined,
    'https://192.0.2.7': undefined,
  }
  for (const [issuer, party] of Object.entries(rows)) t.strictSame(partyAt(issuer), party, issuer)
})
