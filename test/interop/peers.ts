/**
 * `lychgate prove` against servers of others, in the versions that scripts/clients pins: what fails is what
 * docs/peers.md has, where each clause was compared with the text by hand.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/peers.md'), 'utf8')
const folder = newFolder(t)

/** Clients that a server without registration knows, or takes for known. */
const clients = ['one', 'other'].map((name) => {
  const file = join(folder, `${name}.json`)
  const secret = { client_secret: 'secret', token_endpoint_auth_method: 'client_secret_basic' }
  writeFileSync(
    file,
    JSON.stringify({ client_id: name, redirect_uris: ['http://127.0.0.1:47999/callback'], ...secret }),
  )
  return file
})

for (const [peer, flags] of [
  ['oidc-provider', []],
  ['oauth2-mock-server', ['--client', ...clients]],
] as const) {
  t.test(`of ${peer} the clauses fail that docs/peers.md has, and no other`, async (t) => {
    const port = await freePort()
    const child = spawn(process.execPath, [join(root, `scripts/clients/peers/${peer}.js`), `${port}`], {
      stdio: 'ignore',
    })
    t.teardown(() => child.kill('SIGKILL'))
    const issuer = `http://localhost:${port}`
    while ((await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined))?.ok !== true) {
      t.equal(child.exitCode, null, 'the server has not ended')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const file = join(folder, `${peer}-report.json`)
    await run(['prove', issuer, '--profile', 'all', '--report', file, ...flags])
    const { results, remaining_clients: remaining } = JSON.parse(readFileSync(file, 'utf8'))
    const failed = results.filter(({ verdict }: { verdict: string }) => verdict === 'fail')
    t.strictSame(failed.map(({ check }: { check: string }) => check).toSorted(), documented(peer))
    t.strictSame(remaining, [])
  })
}

/** The clauses in the table of a server, which has the version that is tried. */
function documented(peer: string): readonly string[] {
  const { version } = JSON.parse(
    readFileSync(join(root, `scripts/clients/node_modules/${peer}/package.json`), 'utf8'),
  )
  const [, section = ''] = page.split(`\n## ${peer} ${version}\n`)
  return [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `([^`]+)` \|/gm)]
    .map(([, name = '']) => name)
    .toSorted()
}
