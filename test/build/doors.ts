/**
 * What users take, each from an empty machine to an administrator who has added an app: the executable as `lychgate init`
 * sets it up, and the executable as deploy/lychgate.service runs it.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeCertificates } from '../helpers/certificates.ts'
import { ended, executable, newFolder, printed, spawnFile } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProxy } from '../helpers/proxy.ts'
import { linkOfFirstUser, walk } from './walk.ts'

const file = executable ?? ''
const root = fileURLToPath(new URL('../..', import.meta.url))

t.test('the executable: init, serve, and the link that it prints', async (t) => {
  const [folder, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const init = spawnFile(file, ['init', '--yes', '--issuer', issuer], {}, folder)
  const { code, stdout } = await ended(init)
  t.equal(code, 0)
  // As it says, in the same words.
  const [, command = ''] = /^ {2}(\S+ serve --config \S+)$/m.exec(stdout) ?? []
  const [program = '', ...args] = command.split(' ')
  const server = spawnFile(program, args, {}, folder)
  t.teardown(() => server.kill('SIGKILL'))
  await walk(t, { name: 'executable', issuer, link: await printed(server, linkOfFirstUser) })
})

t.test('the unit: the commands at its head, and its command line, behind a TLS proxy', async (t) => {
  // What is an absolute path on a machine is below this folder.
  const machine = newFolder(t)
  const at = (path: string) => join(machine, path)
  const unit = readFileSync(join(root, 'deploy/lychgate.service'), 'utf8')
  const settingsOf = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
  for (const folder of ['etc/systemd/system', 'usr/local/bin', 'run/credentials', 'root'])
    mkdirSync(at(folder), { recursive: true })
  copyFileSync(file, at('root/lychgate'))
  for (const name of ['lychgate.service', 'lychgate.yaml'])
    copyFileSync(join(root, 'deploy', name), at(`root/${name}`))
  const commands = [...unit.matchAll(/^# {3}(\S.*)$/gm)]
    .map(([, command = '']) => command.replaceAll(/(?<=\s)\/(?=usr|etc)/g, `${machine}/`))
    .filter((command) => !/^(systemctl|systemd-run|journalctl|-E) ?/.test(command))
  t.equal(commands.length, 6)
  const path = `${at('usr/local/bin')}:/usr/bin:/bin`
  const setUp = spawnSync('env', ['-i', `PATH=${path}`, 'sh', '-euc', commands.join('\n')], {
    cwd: at('root'),
    encoding: 'utf8',
  })
  t.match(setUp, { status: 0, stderr: '' })

  // As systemd does it: the state folder, the credential, the variables and the environment file.
  const [state = '', environmentFile = ''] = ['StateDirectory', 'EnvironmentFile'].map(
    (name) => settingsOf(name)[0] ?? '',
  )
  mkdirSync(at(`var/lib/${state}`), { recursive: true, mode: 0o700 })
  for (const credential of settingsOf('LoadCredential')) {
    const [id = '', source = ''] = credential.split(':')
    cpSync(at(source), at(`run/credentials/${id}`))
  }
  const port = await freePort()
  writeFileSync(at(environmentFile.replace(/^-/, '')), `LYCHGATE_PORT=${port}\n`, { flag: 'a' })
  const lines = [
    ...settingsOf('Environment').map((line) =>
      line.replaceAll('%S', at('var/lib')).replaceAll('%d', at('run/credentials')),
    ),
    ...readFileSync(at(environmentFile.replace(/^-/, '')), 'utf8')
      .trim()
      .split('\n'),
  ]
  const environment = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const [program = '', ...args] = (settingsOf('ExecStart')[0] ?? '').split(' ')
  const server = spawnFile(at(program), args, environment, machine)
  t.teardown(() => server.kill('SIGKILL'))
  const link = await printed(server, linkOfFirstUser)
  const issuer = String(environment['LYCHGATE_ISSUER'])
  t.ok(link.startsWith(`${issuer}/link?`), link)
  const proxy = await startProxy(t, () => port, makeCertificates(newFolder(t)).otherName)
  await walk(t, { name: 'unit', issuer, link, port: proxy.port })
})
