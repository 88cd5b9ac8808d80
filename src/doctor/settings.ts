import { type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../domain/finding.ts'
import { isLoopbackIssuer } from '../settings/checks.ts'
import { storeUrl } from '../settings/load.ts'
import { confidentialPaths, configOptions, variableOf } from '../settings/options.ts'
import { isDirect, ok, problem, type Setup, setting, warning } from './finding.ts'

const memory = 'sqlite::memory:'

/** Yields findings about settings that are valid, and probably a mistake. */
export function* examineSettings(setup: Setup): Generator<Finding> {
  const { config, file, isContainer } = setup
  const { host, issuer, mode, port, trustProxy } = config
  const { port: publicPort, protocol } = new URL(issuer)
  yield ok`settings: valid for lychgate ${mode}${file === undefined ? '' : `, with ${file}`}`
  if (config.rateLimits === 'off') {
    yield warning`rate limits: are off: one client can send any number of requests
      change  ${setting('rateLimits', 'on')}`
  }
  if (mode === 'serve' && config.store === memory) {
    yield problem`store: is in memory: everything is lost when the server stops
      change  ${setting('store', 'sqlite:/var/lib/lychgate/lychgate.db')}`
  }
  // A proxy in the same container or pod, or a browser where users develop, does reach it.
  if (isContainer && ['127.0.0.1', '::1', 'localhost'].includes(host)) {
    yield warning`container: the server listens on its own loopback address, which is not reachable from outside
      expected  an address of the container, unless the proxy is in here too
      found  ${host}
      change  ${setting('host', '0.0.0.0')}`
  }
  if (isContainer && isLoopbackIssuer(issuer)) {
    yield warning`container: the issuer is a loopback address: other containers and machines reach themselves under it
      expected  the address the browser uses
      found  ${issuer}
      change  ${setting('issuer', 'https://auth.example.org')}`
  }
  if (protocol === 'http:' && !isDirect(setup) && trustProxy.length === 0 && port !== 0) {
    yield warning`port: the issuer names another port than the one the server listens on
      expected  port ${port}, or a proxy that passes ${publicPort || 80} on to it
      found  ${issuer}
      change  ${setting('port', publicPort || '80')}`
  }
}

/** Returns the finding for a fault of the configuration. Where the fault says what to write, that is the line. */
export function settingFault(fault: string): Finding {
  const [, path = '', url = '…'] = /^([\w.]+)[^:]*:.*?(https?:\/\/[^\s,]+)?$/.exec(fault) ?? []
  if (!configOptions().some((option) => option.path === path)) return problem`settings: ${fault}`
  return problem`settings: ${fault}
    change  ${setting(path, url)}`
}

/** A file or folder that exists. */
interface Found {
  readonly path: string
  readonly stats: Stats
}

/** Yields findings about the owner and the modes of the data folder, of the database and of files with a secret. */
export function* examineFiles(setup: Setup): Generator<Finding> {
  const { data, store } = setup.config
  const folder = find(data)
  if (folder === undefined && store === undefined) {
    yield problem`data folder: does not exist; lychgate serve does not create it
      expected  ${data}
      change  mkdir -p -m 0700 ${data}
      change  ${setting('data', '/var/lib/lychgate')}`
    return
  }
  const url = storeUrl(setup.config)
  const file = url.startsWith('sqlite:') && url !== memory ? url.slice('sqlite:'.length) : undefined
  const files = file === undefined ? [] : ['', '-wal', '-shm'].flatMap((suffix) => find(file + suffix) ?? [])
  if (folder !== undefined && store === undefined) {
    yield examineFolder(folder)
    yield examineOwner(folder, files)
  }
  const secrets = [...secretFiles(setup), join(data, 'dev-secret')]
  const confidential = [...files, ...secrets.flatMap((path) => find(path) ?? [])]
  const open = confidential.filter(({ stats }) => (stats.mode & 0o007) !== 0)
  for (const { path, stats } of open) {
    yield problem`file modes: ${path} is open to every user of this machine
      expected  mode 0600, or 0400 for a secret
      found  mode ${octal(stats)}
      change  chmod 0600 ${path}`
  }
  if (open.length === 0 && confidential.length > 0)
    yield ok`file modes: other users cannot read ${confidential.map(({ path }) => path)}`
}

function examineFolder({ path, stats }: Found): Finding {
  const [isOpenToGroup, isOpenToAll] = [(stats.mode & 0o077) !== 0, (stats.mode & 0o007) !== 0]
  if (!isOpenToGroup) return ok`data folder: ${path} has mode ${octal(stats)}`
  const report = isOpenToAll ? problem : warning
  return report`data folder: ${path} is open to ${isOpenToAll ? 'every user of this machine' : 'the group of its owner'}
    expected  mode 0700
    found  mode ${octal(stats)}
    change  chmod 0700 ${path}`
}

/** A command run by root leaves files that the server's user cannot write. */
function examineOwner({ path, stats: { uid, gid } }: Found, files: readonly Found[]): Finding {
  const foreign = files.filter(({ stats }) => stats.uid !== uid)
  const user = process.getuid?.() ?? 0
  if (foreign.length > 0) {
    return problem`owner: the files in ${path} belong to different users
      expected  user ${uid}, who owns the folder
      found  ${foreign.map((file) => `${file.path}: user ${file.stats.uid}`)}
      change  chown -R ${uid}:${gid} ${path}`
  }
  if (user === 0 || user === uid) return ok`owner: ${path} and the files in it belong to user ${uid}`
  return warning`owner: ${path} belongs to another user than this one
    expected  user ${user}
    found  user ${uid}
    change  run lychgate as user ${uid}: sudo -u '#${uid}' lychgate doctor`
}

/** Returns the files that contain a secret: files named by options, and the configuration if it contains one. */
function secretFiles({ environment, origins }: Setup): readonly string[] {
  return confidentialPaths.flatMap((path) => {
    const named = environment[`${variableOf(path)}_FILE`]
    const origin = origins.get(path)
    return [named || [], origin?.kind === 'file' ? origin.name : []].flat()
  })
}

function find(path: string): Found | undefined {
  try {
    return { path, stats: statSync(path) }
  } catch {
    return undefined
  }
}

function octal({ mode }: Stats): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
