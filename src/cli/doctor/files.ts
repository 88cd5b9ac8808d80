import { type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { storeUrl } from '../../settings/load.ts'
import { confidentialPaths, variableOf } from '../../settings/options.ts'
import { type Finding, ok, problem, setting, warning } from './finding.ts'
import type { Setup } from './setup.ts'

/** A file or folder that is there. */
interface Found {
  readonly path: string
  readonly stats: Stats
}

/** Who may read what the server keeps, and whose it is. */
export function* examineFiles(setup: Setup): Generator<Finding> {
  const { config } = setup
  const folder = look(config.data)
  if (folder === undefined && config.store === undefined) {
    yield problem('data folder', 'is not there; lychgate serve does not make it', {
      expected: config.data,
      change: [`mkdir -p -m 0700 ${config.data}`, ...setting('data', '/var/lib/lychgate')],
    })
    return
  }
  const files = databaseFiles(setup)
  if (folder !== undefined && config.store === undefined) {
    yield* examineFolder(folder)
    yield* examineOwner(folder, files)
  }
  const secrets = [...secretFiles(setup), join(config.data, 'dev-secret')]
  const confidential = [...files, ...secrets.flatMap((path) => look(path) ?? [])]
  const open = confidential.filter(({ stats }) => (stats.mode & 0o007) !== 0)
  for (const one of open) {
    yield problem('file modes', `${one.path} is open to everybody on this machine`, {
      expected: 'mode 0600, or 0400 for a secret',
      found: `mode ${modeOf(one)}`,
      change: [`chmod 0600 ${one.path}`],
    })
  }
  if (open.length === 0 && confidential.length > 0) {
    yield ok('file modes', `nobody else reads ${confidential.map(({ path }) => path).join(', ')}`)
  }
}

function* examineFolder(folder: Found): Generator<Finding> {
  const { path, stats } = folder
  const mode = modeOf(folder)
  if ((stats.mode & 0o077) === 0) {
    yield ok('data folder', `${path} has mode ${mode}`)
    return
  }
  const isForEverybody = (stats.mode & 0o007) !== 0
  const who = isForEverybody ? 'everybody on this machine' : 'the group of its owner'
  yield (isForEverybody ? problem : warning)('data folder', `${path} is open to ${who}`, {
    expected: 'mode 0700',
    found: `mode ${mode}`,
    change: [`chmod 0700 ${path}`],
  })
}

/** A command run by root leaves files that the server's user cannot write. */
function* examineOwner({ path, stats }: Found, files: readonly Found[]): Generator<Finding> {
  const foreign = files.filter((file) => file.stats.uid !== stats.uid)
  const user = process.getuid?.()
  if (foreign.length > 0) {
    yield problem('owner', `the files in ${path} belong to different users`, {
      expected: `user ${stats.uid}, who owns the folder`,
      found: foreign.map((file) => `${file.path}: user ${file.stats.uid}`).join(', '),
      change: [`chown -R ${stats.uid}:${stats.gid} ${path}`],
    })
  } else if (user !== undefined && user !== 0 && user !== stats.uid) {
    yield warning('owner', `${path} belongs to another user than this one`, {
      expected: `user ${user}`,
      found: `user ${stats.uid}`,
      change: [`run lychgate as user ${stats.uid}: sudo -u '#${stats.uid}' lychgate doctor`],
    })
  } else yield ok('owner', `${path} and the files in it belong to user ${stats.uid}`)
}

function databaseFiles({ config }: Setup): readonly Found[] {
  const url = storeUrl(config)
  if (!url.startsWith('sqlite:') || url === 'sqlite::memory:') return []
  const file = url.slice('sqlite:'.length)

  return ['', '-wal', '-shm'].flatMap((suffix) => look(file + suffix) ?? [])
}

/** The files that carry a secret: those of `_FILE` variables, and the configuration where one is written into it. */
function secretFiles({ environment, origins, file }: Setup): readonly string[] {
  return confidentialPaths.flatMap((path) => {
    const named = environment[`${variableOf(path)}_FILE`]
    const written = origins.get(path)?.kind === 'file' ? file : undefined
    return [named || [], written ?? []].flat()
  })
}

function look(path: string): Found | undefined {
  try {
    return { path, stats: statSync(path) }
  } catch {
    return undefined
  }
}

function modeOf({ stats }: Found): string {
  return (stats.mode & 0o7777).toString(8).padStart(4, '0')
}
