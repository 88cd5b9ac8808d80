import { chownSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { stringify } from 'yaml'
import { ConfigError } from '../config/error.ts'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import { resolveConfig } from '../settings/load.ts'
import { systemRandom } from '../system/system.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addYesFlag } from './flags.ts'
import { makeFolder } from './open.ts'
import { ask } from './operator.ts'
import { shellWord, startedAs } from './started-as.ts'

interface InitFlags {
  readonly issuer?: string
  readonly name?: string
  readonly port?: string
  readonly folder: string
  readonly proxy?: Proxy
  readonly yes?: true
}

type Proxy = 'caddy' | 'nginx' | 'none'
const proxies: readonly Proxy[] = ['caddy', 'nginx', 'none']

/** What a new server is made of. */
interface Plan {
  readonly proxy: Proxy
  readonly issuer: string
  readonly name: string
  readonly port: number
  /** Absolute paths: a server may be started from anywhere. */
  readonly files: { readonly config: string; readonly secret: string; readonly data: string }
}

/** The scopes of a new server: who the user is. Each has its shipped words, in every language. */
const newScopes = ['openid', 'profile', 'email', 'groups', 'offline_access']

const help = `
Makes lychgate.yaml, a secret and an empty data folder, and prints what a proxy and systemd need. Nothing that exists is
replaced. Without --yes it asks for what is missing.

Examples:
  lychgate init
  lychgate init --yes --issuer https://auth.example.org --name 'Example Accounts'
  lychgate init --yes --issuer https://auth.example.org --folder /etc/lychgate --proxy nginx
`

/** Adds `lychgate init`, which prepares a folder for `lychgate serve`. */
export function addInitCommand(program: Command): void {
  const command = program
    .command('init')
    .description('prepare a server for real users: its configuration, its secret and its data folder')
    .option('--issuer <url>', 'the public base URL, such as https://auth.example.org')
    .option('--name <name>', 'the name of the service on every page; by default the host of the issuer')
    .option('--port <number>', 'the port to listen on (default: 9400, or that of an http issuer)')
    .option('--folder <folder>', 'where to make the files', '.')
    .addOption(
      new Option(
        '--proxy <proxy>',
        'the proxy to print a configuration for (default: caddy, or none for an http issuer)',
      ).choices(proxies),
    )
    .addHelpText('after', help)
  addYesFlag(command).action(init)
}

async function init(flags: InitFlags): Promise<void> {
  const plan = await planOf(flags)
  const { config, secret, data } = plan.files
  const present = [config, secret, data].filter((path) => existsSync(path))
  if (present.length > 0)
    throw new CommandFailed(
      `${present.join(' and ')} exist${present.length === 1 ? 's' : ''} already; nothing was changed`,
    )
  const made: string[] = []
  const make = (path: string, text: string, mode: number) => {
    writeFileSync(path, text, { mode, flag: 'wx' })
    made.push(path)
  }
  try {
    make(secret, `${mintSecret('sealing', systemRandom(secretBytes))}\n`, 0o600)
    make(config, configurationOf(plan), 0o640)
    shareWithGroup(config)
    makeFolder(data)
  } catch (error) {
    for (const path of made) rmSync(path)
    throw error
  }
  const warning = (await isTaken(plan.port)) ? portLine(plan) : ''
  process.stdout.write(`${madeOf(plan)}${warning}${proxyLines(plan)}${unitLines(plan)}`)
}

/** Gives a file the group of its folder, which is that of the service where an operator made the folder for it. */
function shareWithGroup(file: string): void {
  try {
    chownSync(file, userInfo().uid, statSync(dirname(file)).gid)
  } catch {
    // Of a group that this user is not in; the file keeps theirs, and the printed chgrp changes it.
  }
}

/** Whether another process listens on the port. */
async function isTaken(port: number): Promise<boolean> {
  const server = createServer()
  const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve).listen(port, '127.0.0.1', () => resolve(undefined))
  })
  server.close()
  return error?.code === 'EADDRINUSE'
}

function portLine({ port, files }: Plan): string {
  return `
Port ${port} is in use by another process, so the server cannot start: end that process, or change port in
${files.config} and in what follows.
`
}

/** @throws {ConfigError} unless a server would start with it. */
async function planOf({ issuer: issuerFlag, name, port, folder, proxy, yes }: InitFlags): Promise<Plan> {
  if (issuerFlag === undefined && yes)
    throw new WrongUsage('--yes needs --issuer, such as https://auth.example.org')
  if (!yes && !process.stdin.isTTY)
    throw new CommandFailed(
      `cannot ask without a terminal; use --yes${issuerFlag === undefined ? ' and --issuer' : ''}`,
    )
  const issuer = issuerFlag ?? (await askFor('The public URL of the server', undefined))
  // Without TLS no proxy is needed, and nothing else passes requests on to another port.
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isDirect = url?.protocol === 'http:'
  const listened = port ?? (isDirect ? url.port || '80' : '9400')
  const values = { issuer, port: Number(listened), secret: 'x'.repeat(32) }
  const { config } = resolveConfig({ mode: 'serve', values })
  const host = new URL(config.issuer).hostname
  const service = name ?? (yes ? host : await askFor('The name that its pages show', host))
  resolveConfig({ mode: 'serve', values: { ...values, service: { name: service } } })
  const at = (path: string) => resolve(folder, path)
  if (!existsSync(folder)) throw new ConfigError(`--folder: ${folder} does not exist`)
  const files = { config: at('lychgate.yaml'), secret: at('secret'), data: at('data') }
  return { issuer, name: service, port: config.port, proxy: proxy ?? (isDirect ? 'none' : 'caddy'), files }
}

/** Asks on standard error, so that standard output can be kept. */
async function askFor(question: string, otherwise: string | undefined): Promise<string> {
  const shown = otherwise === undefined ? '' : ` [${otherwise}]`
  const text = (await ask(`${question}${shown}: `, process.stderr)).trim() || otherwise
  return text ?? askFor(question, otherwise)
}

function configurationOf({ issuer, name, port, proxy, files }: Plan): string {
  const listens =
    proxy === 'none' && issuer.startsWith('http:')
      ? `# Where the server listens: only this computer reaches it.
host: 127.0.0.1
port: ${port}`
      : `# Where the server listens. The proxy in front of it terminates TLS, and adds X-Forwarded-For.
host: 127.0.0.1
port: ${port}
trustProxy: [127.0.0.1, "::1"]`
  return `# The configuration of a Lychgate server. Every option: docs/configuration.md, or lychgate config print.
# Check a change with: lychgate config validate --config ${files.config}

# The public URL, as clients see it. A later change breaks every client and every token.
${stringify({ issuer })}
# The name on every page and in every email.
${stringify({ service: { name } })}
${listens}

# The database of one machine. For several machines: store: postgres://…, or storeFile with a file that contains it.
${stringify({ data: files.data })}
# Encrypts the private keys in the database. Back it up, but not together with the database.
${stringify({ secretFile: files.secret })}
# What apps may ask for. Add the scopes of your own APIs, with their words: docs/api.md. Without this list a server
# offers the 38 scopes of a school.
scopes:
${newScopes.map((scope) => `  - ${stringify({ name: scope })}`).join('')}
# The example API of the issuer, /api/NAME for each NAME:read of the list: your own APIs do not need it.
builtInApi: off

# Links to set a password are printed, unless there is a mail server.
#mail:
#  url: smtps://user:password@mail.example.org
#  from: ${JSON.stringify(`${name} <accounts@${new URL(issuer).hostname}>`)}
`
}

function madeOf({ files }: Plan): string {
  return `Made:
  ${files.config}    readable by you and its group
  ${files.secret}    readable by you only; keep a copy elsewhere
  ${files.data}/    readable by you only

Start it, and open the link it prints to create the first user:
  ${startedAs()} serve --config ${shellWord(files.config)}

Other commands need the same file. To leave it out: export LYCHGATE_CONFIG=${files.config}
`
}

function proxyLines({ issuer, proxy, port }: Plan): string {
  const { origin, hostname } = new URL(issuer)
  const lines: Record<Proxy, string> = {
    none: '',
    caddy: `
Caddyfile, which also gets the certificate:
${origin.startsWith('https') ? hostname : origin} {
	reverse_proxy 127.0.0.1:${port}
}
`,
    nginx: `
nginx, in a server block for ${hostname} that has your certificate:
location / {
    proxy_pass http://127.0.0.1:${port};
    proxy_http_version 1.1;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_buffer_size 16k;
    proxy_buffers 4 16k;
}
`,
  }
  return lines[proxy]
}

/** A short unit that runs as this user; deploy/lychgate.service is the confined one. */
function unitLines({ files }: Plan): string {
  return `
/etc/systemd/system/lychgate.service:
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
User=${userInfo().username}
ExecStart=${commandOf()} serve --config ${files.config}
Restart=on-failure
RestartPreventExitStatus=64 78
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target

With another User= the group of that user has to read the configuration, such as:
chgrp lychgate ${files.config}
`
}

/** How this program was started: the executable, or Node with a script. */
function commandOf(): string {
  const [, script = ''] = process.argv
  return script.endsWith('.js') ? `${process.execPath} ${join(script)}` : process.execPath
}
