/** `lychgate dev report` with a running development server: what it prints, writes, and ends with. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { profiles } from '../../src/dev/issuers/catalogue.ts'
import { newFolder, run } from '../helpers/command.ts'
import { callApi, obtainTokens, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { mode: 'dev' })
const folder = newFolder(t)
/** All misbehaving issuers, and the reference. */
const all = profiles.length
const unreached = new RegExp(`\\n0 fooled, 0 rejected, ${all - 1} not reached\\n$`)
const report = (...flags: string[]) => run(['dev', 'report', '--issuer', server.issuer, ...flags])
const at = (id: string) => ({ issuer: `${server.issuer}/_dev/issuers/${id}` })

async function passReference(): Promise<void> {
  const issuer = at('reference')
  const tokens = await obtainTokens(issuer, await register(issuer))
  await callApi(issuer, '/api/oauth/userinfo', tokens.access_token)
}

/** Reads the metadata of another issuer, continues, and reports its failures in XML. */
async function beFooled(): Promise<void> {
  const issuer = at('metadata-other-issuer')
  await fetch(`${issuer.issuer}/.well-known/openid-configuration`)
  await register(issuer)
  const body = JSON.stringify({ outcome: 'fooled', reason: '<&"\u0007>' })
  const headers = { 'content-type': 'application/json' }
  await fetch(`${issuer.issuer}/outcome`, { method: 'POST', headers, body })
}

t.test('without a client that completed the flow nothing is proven: it ends with 1', async (t) => {
  const { code, stdout, stderr } = await report()
  t.equal(code, 1)
  t.match(stdout, /^not reached {2}reference /)
  t.equal(
    stderr,
    'lychgate: no client completed a flow at /_dev/issuers/reference, which does not misbehave: the rest proves nothing\n',
  )
})

t.test(
  'when no client is deceived it ends with 0, and with --all only after every profile was reached',
  async (t) => {
    await passReference()
    const { code, stdout, stderr } = await report()
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, unreached)
    const strict = await report('--all')
    t.equal(strict.code, 1)
    t.equal(strict.stderr, `lychgate: ${all - 1} of the misbehaving issuers were not reached\n`)
  },
)

t.test('a deceived client ends it with 1, and the request that showed it is printed', async (t) => {
  await beFooled()
  const file = join(folder, 'issuers.xml')
  const [page, sarif] = [join(folder, 'issuers.html'), join(folder, 'issuers.sarif')]
  const named = ['--client', 'my app 1.2']
  const { code, stdout, stderr } = await report('--junit', file, '--html', page, '--sarif', sarif, ...named)
  t.equal(code, 1)
  t.equal(stderr, 'lychgate: fooled by 1 of the misbehaving issuers\n')
  t.match(stdout, /\nfooled {7}metadata-other-issuer /)
  t.match(stdout, /\n {2}seen: POST \/api\/oauth\/register 201; the client itself: fooled: <&"\ufffd>\n/)

  const xml = readFileSync(file, 'utf8')
  const totals = `tests="${all}" failures="1" errors="0" skipped="${all - 2}"`
  t.match(xml, `<testsuite name="lychgate dev report my app 1.2 misbehaving issuers" ${totals} time=`)
  t.equal(xml.match(/<testcase /g)?.length, all)
  t.equal(xml.match(/<skipped /g)?.length, all - 2)
  t.equal(
    xml.match(/<failure message="POST \/api\/oauth\/register 201; the client itself: fooled/g)?.length,
    1,
  )
  t.match(xml, 'the client itself: fooled: &#60;&#38;&#34;\ufffd&#62;')
  t.match(xml, 'a sound client does not use it: issuer is not')

  const html = readFileSync(page, 'utf8')
  t.match(html, '<h1>my app 1.2: misbehaving issuers</h1>')
  t.match(html, /<details class="fail" open>\n<summary><b>fail<\/b>a sound client does not use it/)
  t.equal(html.match(/<details class="pass">/g)?.length, 1, 'the reference')
  const failed = JSON.parse(readFileSync(sarif, 'utf8')).runs[0].results.filter(
    ({ kind }: { kind: string }) => kind === 'fail',
  )
  t.match(failed, [{ ruleId: 'metadata-other-issuer', level: 'error' }])
  t.equal(failed.length, 1)
})

t.test('--json prints the report, and --reset deletes what was observed', async (t) => {
  const { code, stdout } = await report('--json', '--reset')
  t.equal(code, 1)
  const { reference, fooled, profiles: listed } = JSON.parse(stdout)
  t.strictSame(
    { reference, fooled, profiles: listed.length },
    { reference: 'passed', fooled: 1, profiles: all },
  )
  t.match((await report()).stdout, unreached)
})

t.test('without a development server it prints where it looked', async (t) => {
  const port = await freePort()
  const nobody = await run(['dev', 'report', '--port', String(port)])
  t.equal(nobody.code, 1)
  t.equal(
    nobody.stderr,
    `lychgate: no development server at http://localhost:${port}: nothing responds there; start lychgate dev, or name it with --issuer or --port\n`,
  )
})
