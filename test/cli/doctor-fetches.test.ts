import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { examineFetches } from '../../src/cli/doctor/fetches.ts'
import { resolveConfig } from '../../src/settings/load.ts'
import { newFolder } from '../helpers/command.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'

const site = await startStandInDocuments(t)

const findings = (mode: 'dev' | 'serve', environment: Readonly<Record<string, string>> = {}) => {
  const flags = { issuer: 'http://localhost:9400', secret: 'a secret for tests that is long enough' }
  return examineFetches({ ...resolveConfig({ mode, flags, environment }), environment, isContainer: false })
}
const allowed = (...urls: readonly string[]) => ({
  LYCHGATE_CLIENT_DOCUMENTS_ALLOWED: urls.join(','),
  LYCHGATE_FETCH_TIMEOUT_SECONDS: '1',
})

t.test('hosts of client metadata documents are tried if an operator named them', async (t) => {
  const { host } = new URL(site.origin)
  const { client, document } = site.publish()
  for (const status of [200, 302, 404, 500]) {
    document.status = status
    t.strictSame(await findings('dev', allowed(client.id)), [
      { check: 'fetches', level: 'ok', said: `${host} responds` },
    ])
  }
  document.silent = true
  const [late] = await findings('dev', allowed(client.id))
  t.match(late, { level: 'warning', found: 'no response in 1 s', change: [/uses no proxy/] })
  const [closed] = await findings('dev', allowed('http://127.0.0.1:9/client.json'))
  t.match(closed, { level: 'warning', found: 'the connection failed' })
  const [inside] = await findings('serve', allowed('10.0.0.1'))
  t.match(inside, { level: 'warning', said: /^10\.0\.0\.1 cannot be reached/, found: /no public address/ })
  t.match(inside?.change, [/LYCHGATE_FETCH_PRIVATE_NETWORKS/], 'and the option that allows it is named')
})

t.test('an upstream that a file names is tried, unless it is disabled', async (t) => {
  const folder = newFolder(t)
  const file = join(folder, 'lychgate.yaml')
  const tried = async (issuer: string, enabled: boolean) => {
    const upstream = { id: 'work', name: 'Work', issuer, clientId: 'lychgate', enabled }
    writeFileSync(file, JSON.stringify({ upstreams: [upstream] }))
    return findings('dev', { LYCHGATE_CONFIG: file, LYCHGATE_FETCH_TIMEOUT_SECONDS: '1' })
  }
  const [closed] = await tried('http://127.0.0.1:9', true)
  t.match(closed, {
    level: 'warning',
    expected: 'a response from http://127.0.0.1:9/.well-known/openid-configuration',
  })
  t.strictSame(await tried('http://127.0.0.1:9', false), [])
  t.match(await tried(site.origin, true), [{ level: 'ok', said: `${new URL(site.origin).host} responds` }])
})

t.test('defaults are not tried, and neither is what is off', async (t) => {
  t.strictSame(await findings('serve'), [])
  const off = { LYCHGATE_CLIENT_DOCUMENTS_MODE: 'off', ...allowed('10.0.0.1') }
  t.strictSame(await findings('serve', off), [])
})
