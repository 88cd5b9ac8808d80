/** What a server prints to type next works in the shell that it is printed in. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startedAs } from '../../src/cli/started-as.ts'
import { newFolder } from '../helpers/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

t.test('the program is named as a shell in this folder finds it', async (t) => {
  const folder = newFolder(t)
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const script = join(folder, "it's here", 'lychgate.js')
  mkdirSync(join(folder, "it's here"))
  writeFileSync(script, '')
  writeFileSync(join(folder, 'one-file'), '')
  const start = { environment: { PATH: `/usr/bin:${bin}` }, argv0: 'node', script, folder }
  const one = { ...start, argv0: './one-file', script: join(folder, 'one-file') }
  t.equal(
    startedAs({ ...start, environment: { ...start.environment, npm_lifecycle_event: 'start' } }),
    'npx lychgate',
  )
  t.equal(startedAs(start), "node 'it'\\''s here/lychgate.js'")
  t.equal(startedAs(one), './one-file')
  symlinkSync(join(folder, 'one-file'), join(bin, 'lychgate'))
  t.equal(startedAs(one), 'lychgate', 'a link to it is in PATH')
  t.equal(startedAs(start), "node 'it'\\''s here/lychgate.js'", 'another program is in PATH')
})

t.test('npm start prints a command for a token that works as it is printed', async (t) => {
  // A newcomer has only what npm finds; of this checkout, the Node.
  const tools = newFolder(t)
  writeFileSync(join(tools, 'node'), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`)
  chmodSync(join(tools, 'node'), 0o755)
  const path = (process.env['PATH'] ?? '').split(':').filter((entry) => !entry.includes('node_modules'))
  const ours = /^(LYCHGATE_|npm_|NODE_OPTIONS$|TAP_|_TAPJS)/
  const environment = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name))),
    PATH: [tools, ...path].join(':'),
  }
  const server = spawn('env', ['npm', 'start', '--', '--port', '0', '--data', newFolder(t)], {
    cwd: root,
    env: environment,
    detached: true,
  })
  t.teardown(() => server.pid !== undefined && process.kill(-server.pid, 'SIGKILL'))
  let output = ''
  const line = await new Promise<string>((resolve, reject) => {
    server.stdout.on('data', (chunk) => {
      output += chunk
      const [, found] = /^ {2}(.* token --issuer .*)$/m.exec(output) ?? []
      if (found !== undefined) resolve(found)
    })
    server.once('exit', () => reject(new Error(output)))
  })
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], {
    cwd: root,
    env: environment,
    encoding: 'utf8',
  })
  t.match({ status, stdout, stderr }, { status: 0, stdout: /^lyc_access_[\w-]+\n$/, stderr: '' }, line)
})
