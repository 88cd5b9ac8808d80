/** Uses what a release contains as its users do: downloads it, checks it, installs it, starts it. */
import { spawn } from 'node:child_process'
import { createReadStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { version as versionLine } from '../../src/system/version.ts'
import { root } from '../build/bundle.ts'
import { version } from '../build/origin.ts'
import { blocksOf } from '../docs/page.ts'

/**
 * Serves the folder, and installs and starts the executable, as docs/install.md says, and the npm package in empty
 * folders.
 * @throws if one of them does not print the version of this build
 */
export async function tryRelease(folder: string, name: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'lychgate-release-'))
  const server = createServer(({ url = '/' }, response) => {
    const file = createReadStream(join(folder, basename(url)))
    file.on('error', () => response.writeHead(404).end()).on('open', () => file.pipe(response))
  })
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await tryFile(join(work, 'file'), address, name)
    await tryPackage(join(work, 'package'), address)
  } finally {
    server.close()
    rmSync(work, { recursive: true })
  }
}

/** The commands of docs/install.md that download, check and install the executable. */
async function tryFile(folder: string, address: string, name: string): Promise<void> {
  const page = readFileSync(`${root}docs/install.md`, 'utf8')
  const block = blocksOf(page).find(({ content }) => content.startsWith('release=http'))
  const commands = (block?.content ?? '')
    .replace(/^release=\S+/, `release=${address}`)
    .replaceAll(`lychgate-${version}-`, `lychgate-${name}-`)
    .replace('/usr/local/bin/', `${folder}/bin/`)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  await run('bash', ['-euo', 'pipefail', '-c', commands], folder)
  isThisVersion(await run(join(folder, 'bin/lychgate'), ['--version'], folder))
  // A damaged download is not installed.
  rmSync(join(folder, 'bin/lychgate'))
  const damaged = commands.replace('sha256sum', `printf x >> lychgate-${name}-linux-x64; sha256sum`)
  const status = await run('bash', ['-euo', 'pipefail', '-c', damaged], folder).catch(() => undefined)
  if (status !== undefined) throw new Error('a damaged download was installed')
}

/** The npm package, installed from the folder, up to the metadata of a development server. */
async function tryPackage(folder: string, address: string): Promise<void> {
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const tarball = `${address}/lychgate-${version}.tgz`
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', tarball, ...quiet], folder)
  isThisVersion(await run('npx', ['lychgate', '--version'], folder))
  const child = spawn('npx', ['lychgate', 'dev', '--port', '0'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    let banner = ''
    child.stdout.on('data', (text) => {
      banner += text
    })
    let issuer: string | undefined
    for (let waited = 0; issuer === undefined && waited < 600 && child.exitCode === null; waited += 1) {
      await setTimeout(100)
      issuer = /http:\/\/localhost:\d+/.exec(banner)?.[0]
    }
    const response = await fetch(`${issuer}/.well-known/openid-configuration`)
    const { issuer: published } = (await response.json()) as { readonly issuer?: unknown }
    if (published !== issuer) throw new Error(`npx lychgate dev: the issuer is ${published}`)
  } finally {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  }
}

function isThisVersion(printed: string): void {
  if (printed.trim() !== versionLine()) throw new Error(`it prints ${printed}, not ${versionLine()}`)
}

/** Runs a program without the settings of npm and of this server, and returns what it prints. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:npm_|LYCHGATE_)/i.test(name))
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: Object.fromEntries(kept) })
    let [output, errors] = ['', '']
    child.stdout.on('data', (text) => {
      output += text
    })
    child.stderr.on('data', (text) => {
      errors += text
    })
    child.on('error', reject)
    child.on('exit', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${program} ${args[0]}: ${code}\n${errors}`)),
    )
  })
}
