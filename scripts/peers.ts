/**
 * `lychgate prove` at servers of others, in pinned versions. `npm run peers` asks each, and writes what it found
 * into docs/peers.md; `npm run peers NAME…` asks those. Each failed clause is compared with its text by hand
 * before the page is committed.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ReportedClause } from '../src/cli/reports/report.ts'
import { isObject } from '../src/domain/is-object.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folderOfPeers = join(root, 'scripts/clients/peers')
const page = join(root, 'docs/peers.md')

/** A server that is there, and the command that starts it at a port. */
interface Installed {
  readonly version: string
  readonly start: (port: number) => readonly [string, ...string[]]
}

/** A server of others, and how it is asked. */
export interface Peer {
  readonly name: string
  readonly about: string
  /** A text says why it cannot be had. */
  readonly install: (folder: string) => Installed | string
  /** Absent: `all`. */
  readonly profile?: string
  readonly flags: readonly string[]
  /** It registers clients and has no way to delete them (RFC 7592). */
  readonly keepsClients?: true
  /** What a reader has to know about a row. */
  readonly notes: Readonly<Record<string, string>>
}

/** A server of npm, installed in scripts/clients, and started by the script of its name without the scope. */
function ofNpm(name: string): Peer['install'] {
  return () => {
    const manifest = join(root, 'scripts/clients/node_modules', name, 'package.json')
    if (!existsSync(manifest)) return 'npm ci --prefix scripts/clients --ignore-scripts has not run'
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'))
    const script = join(folderOfPeers, `${basename(name)}.js`)
    return {
      version,
      start: (port) => [process.execPath, '--disable-warning=ExperimentalWarning', script, `${port}`],
    }
  }
}

/** A server of PyPI, installed into a folder of the run. */
function ofPython(name: string): Peer['install'] {
  return (folder) => {
    const source = join(folderOfPeers, name)
    const requirements = join(source, 'requirements.txt')
    const python = join(folder, name, 'bin/python')
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements]
    try {
      execFileSync('python3', ['-m', 'venv', join(folder, name)], { stdio: 'pipe', timeout: 500_000 })
      execFileSync(python, pip, { stdio: 'pipe', timeout: 500_000 })
    } catch (error) {
      return String(error).split('\n', 1)[0] ?? ''
    }
    const version = new RegExp(`^${name}==(.+)$`, 'm').exec(readFileSync(requirements, 'utf8'))?.[1] ?? ''
    return { version, start: (port) => [python, join(source, 'start.py'), `${port}`] }
  }
}

const clientFiles = (peer: string, ...names: readonly string[]) =>
  names.map((name) => join(folderOfPeers, peer, `client-${name}.json`))
const user = (peer: string, name: string) => [
  '--username',
  name,
  '--password-file',
  join(folderOfPeers, peer, 'password.txt'),
]

export const peers: readonly Peer[] = [
  {
    name: 'oidc-provider',
    about:
      'It has its development pages, open registration, and the features of `scripts/clients/peers/oidc-provider.js`.',
    install: ofNpm('oidc-provider'),
    flags: [],
    notes: {
      'oidc-core-3.1.2.1-get-and-post': '`enableHttpPostMethods` is off unless it is set',
      'oidc-core-3.1.2.1-redirect-uri-required':
        '`allowOmittingSingleRegisteredRedirectUri` is on unless it is set',
      'oidc-rpl-2-get-and-post/post': '`enableHttpPostMethods` is off unless it is set',
      'rfc6749-10.13-frame-protection': 'the development pages; a product has its own',
    },
  },
  {
    name: 'better-auth',
    about:
      'It has its plugin `@better-auth/oauth-provider` with open registration, RS256, a database in memory, and the two\npages that its manual leaves to the product: `scripts/clients/peers/better-auth.js`.',
    install: ofNpm('better-auth'),
    flags: user('better-auth', 'alice@example.org'),
    keepsClients: true,
    notes: {
      'oidc-core-3.1.2.1-get-and-post': 'a POST of another origin is rejected unless `trustedOrigins` has it',
      ...Object.fromEntries(
        [
          'oidc-rpl-2-get-and-post',
          'oidc-rpl-2-logout-on-yes',
          'oidc-rpl-2-state-returned',
          'oidc-rpl-4-idempotent',
        ].map((clause) => [clause, '`enable_end_session` is off for clients that register themselves']),
      ),
      'oidc-rpl-2-get-and-post/post': 'a POST of another origin is rejected unless `trustedOrigins` has it',
    },
  },
  {
    name: '@node-oauth/oauth2-server',
    about:
      'It is a library: the model, the pages, the metadata and an API that it protects, which stands for UserInfo, are\nthose of `scripts/clients/peers/oauth2-server.js`. Asked with `--profile oauth21`, with four clients that it does not\nregister.',
    install: ofNpm('@node-oauth/oauth2-server'),
    profile: 'oauth21',
    flags: [
      '--client',
      ...clientFiles('oauth2-server', 'a', 'b', 'c', 'd'),
      ...user('oauth2-server', 'alice'),
    ],
    notes: {
      'oauth21-4.1.1-pkce-for-all': 'the library has no option that demands PKCE; a model can',
      'rfc6749-4.1.1-validate-request': 'the library sees a request after the product has the user',
      'rfc7636-4.3-method-default-plain':
        '`plain` is off unless `enablePlainPKCE` is set, and S256 is assumed then',
      'rfc7636-4.4.1-challenge-required': 'the code is of no use without a verifier then',
      'rfc8252-7.3-any-port': 'a model can have `validateRedirectUri`',
    },
  },
  {
    name: 'oauth2-mock-server',
    about:
      'It is made for tests of clients and accepts what a client sends, so most of its rows are meant by its authors.\nIt has two clients with a secret that it does not register.',
    install: ofNpm('oauth2-mock-server'),
    flags: ['--client', ...clientFiles('oauth2-mock-server', 'a', 'b')],
    notes: {},
  },
  {
    name: 'nanoidp',
    about:
      'It has `require_pkce` and four clients in its settings: two with HTTP Basic, one with a secret in the form, and a\npublic one. It is made for tests, too.',
    install: ofPython('nanoidp'),
    flags: ['--client', ...clientFiles('nanoidp', 'a', 'b', 'c', 'd'), ...user('nanoidp', 'alice')],
    notes: {},
  },
]

/** What a run found at a server: the section of docs/peers.md, and what it did not clean up. */
export interface Found {
  readonly heading: string
  readonly section: string
  readonly remaining: readonly unknown[]
}

/** Starts a server, asks it, and stops it. */
export async function ask(
  peer: Peer,
  { version, start }: Installed,
  port: number,
  folder: string,
): Promise<Found> {
  const [file, ...args] = start(port)
  // A process group: the Python script starts another process.
  const child = spawn(file, args, { stdio: 'ignore', detached: true })
  try {
    const issuer = `http://localhost:${port}`
    while (!(await isReady(issuer))) {
      if (child.exitCode !== null) throw new Error(`${peer.name} does not start`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const report = join(folder, `${basename(peer.name)}.json`)
    const profile = ['--profile', peer.profile ?? 'all']
    const command = [join(root, 'src/lychgate.js'), 'prove', issuer, ...profile, '--report', report]
    const asking = spawn(process.execPath, [...command, ...peer.flags], { stdio: 'ignore' })
    await new Promise((resolve) => asking.once('exit', resolve))
    const found: unknown = JSON.parse(readFileSync(report, 'utf8'))
    if (!isObject(found) || !isObject(found['counts'])) throw new Error(`${report} is no report`)
    const heading = `## ${peer.name} ${version}`
    const results = found['results'] as readonly ReportedClause[] // of this command
    const remaining = found['remaining_clients'] as readonly unknown[] // of this command
    return { heading, section: sectionOf(peer, heading, results, found['counts']), remaining }
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
}

/** Whether the server publishes metadata, of either kind. */
async function isReady(issuer: string): Promise<boolean> {
  for (const name of ['openid-configuration', 'oauth-authorization-server'])
    if ((await fetch(`${issuer}/.well-known/${name}`).catch(() => undefined))?.ok === true) return true
  return false
}

function sectionOf(
  { about, notes }: Peer,
  heading: string,
  results: readonly ReportedClause[],
  counts: Readonly<Record<string, unknown>>,
): string {
  const failed = results.filter(({ verdict }) => verdict === 'fail')
  const rows = failed
    .toSorted((a, b) => (a.check < b.check ? -1 : 1))
    .map(({ check, wants, because = '', observations }) => {
      const note = notes[check] === undefined ? '' : ` (${notes[check]})`
      return `| \`${check}\` | ${cell(wants)} | ${requestOf(observations.at(-1)?.sent ?? '')} | ${cell(because)}${note} |`
    })
  const sums = Object.entries({ ...counts, pass: undefined, fail: undefined, warning: undefined })
    .filter(([, count]) => count !== undefined)
    .map(([verdict, count]) => `${String(count)} ${verdict}`)
  const { pass, fail, warning } = counts
  return `${heading}

${String(pass)} passed, ${String(fail)} failed, ${String(warning)} warnings, ${sums.join(', ')}.
${about}

| clause | wanted | request | came |
| --- | --- | --- | --- |
${rows.join('\n')}
`
}

/** The method and path of a curl line; a part of a path that is another one in each run is left out. */
function requestOf(curl: string): string {
  const [, verb, url = ''] = /^curl (?:-X (\w+) )?'([^']+)'/.exec(curl) ?? []
  const method = verb ?? (/ (?:-d|--data-urlencode) /.test(curl) ? 'POST' : 'GET')
  const path = URL.parse(url)?.pathname.replaceAll(/\/[\w-]{20,}/g, '/…') ?? ''
  return `\`${method} ${path}\``
}

/** Text of a report in a table; `name=value` is code. */
function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .replaceAll(/\b\w+=\w+/g, '`$&`')
}

/** The section of the page under a heading; undefined if it has none. */
export function documented(heading: string): string | undefined {
  const text = readFileSync(page, 'utf8')
  const at = text.indexOf(`${heading}\n`)
  if (at === -1) return undefined
  const end = text.indexOf('\n## ', at)
  return text.slice(at, end === -1 ? undefined : end)
}

if (import.meta.main) {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-peers-'))
  const names = process.argv.slice(2)
  let port = Number(process.env['PEERS_PORT'] ?? 24_700)
  for (const peer of peers.filter(({ name }) => names.length === 0 || names.includes(name))) {
    const installed = peer.install(folder)
    if (typeof installed === 'string') throw new Error(`${peer.name}: ${installed}`)
    const { heading, section } = await ask(peer, installed, port, folder)
    port += 1
    const text = readFileSync(page, 'utf8')
    const before = new RegExp(`\\n## ${peer.name} [\\s\\S]*?(?=\\n## |$)`)
    const next = `\n${section}`
    // Functions: a replacement text has its own meaning of $.
    writeFileSync(page, before.test(text) ? text.replace(before, () => next) : text + next)
    process.stdout.write(`${heading.slice(3)}: ${section.split('\n')[2] ?? ''}\n`)
  }
  rmSync(folder, { recursive: true, force: true })
}
