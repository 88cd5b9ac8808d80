/**
 * Programs that run next to Lychgate: those of this machine, and the rest from Debian packages, unpacked and not
 * installed.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Folder } from './folder.ts'

/** The path of each program, and the settings with which it finds its libraries. */
export interface Programs {
  readonly etcd: string
  readonly haproxy: string
  /** Runs Patroni; its configuration file is the last argument. */
  readonly patroni: readonly string[]
  /** The folder with `postgres`, `initdb`, `pg_rewind`. */
  readonly postgres: string
  readonly environment: Readonly<Record<string, string>>
}

/** The paths of the proxies in the documentation. */
export interface Proxies {
  readonly nginx: string
  readonly caddy: string
  readonly haproxy: string
  readonly environment: Readonly<Record<string, string>>
}

/** States in one line why the programs are not available on this machine. */
export class ProgramsMissing extends Error {}

/** `/` and the folder packages are unpacked to, with the same layout as `/`. */
type Roots = readonly string[]

/**
 * Finds the programs of a cluster, and gets missing ones with apt: no package is installed, so root is not needed, no
 * service is started and nothing stays on the machine.
 * @throws {ProgramsMissing}
 */
export async function getPrograms(folder: Folder): Promise<Programs> {
  const roots = await getPackages(folder, (roots) => [
    ...(find(roots, 'usr/bin/etcd') ? [] : ['etcd-server']),
    ...(find(roots, 'usr/sbin/haproxy') ? [] : ['haproxy']),
    // Patroni uses etcd through a library that it only suggests.
    ...(find(roots, 'usr/lib/python3/dist-packages/patroni') ? [] : ['patroni', 'python3-etcd']),
    ...(findPostgres(roots) ? [] : ['postgresql']),
  ])
  return {
    etcd: find(roots, 'usr/bin/etcd') ?? '',
    haproxy: find(roots, 'usr/sbin/haproxy') ?? '',
    patroni: [find(roots, 'usr/bin/python3') ?? '', '-m', 'patroni'],
    postgres: findPostgres(roots) ?? '',
    environment: {
      PYTHONPATH: join(roots[0] ?? '', 'usr/lib/python3/dist-packages'),
      LD_LIBRARY_PATH: libraries(roots[0] ?? '').join(':'),
    },
  }
}

/**
 * The same for the proxies.
 * @throws {ProgramsMissing}
 */
export async function getProxies(folder: Folder): Promise<Proxies> {
  const roots = await getPackages(folder, (roots) => [
    ...(find(roots, 'usr/sbin/nginx') ? [] : ['nginx']),
    ...(find(roots, 'usr/bin/caddy') ? [] : ['caddy']),
    ...(find(roots, 'usr/sbin/haproxy') ? [] : ['haproxy']),
  ])
  return {
    nginx: find(roots, 'usr/sbin/nginx') ?? '',
    caddy: find(roots, 'usr/bin/caddy') ?? '',
    haproxy: find(roots, 'usr/sbin/haproxy') ?? '',
    environment: { LD_LIBRARY_PATH: libraries(roots[0] ?? '').join(':') },
  }
}

/** Gets what `missing` names until it names nothing, and returns where to search. */
async function getPackages(folder: Folder, missing: (roots: Roots) => readonly string[]): Promise<Roots> {
  const roots: Roots = [join(folder.path, 'packages'), '/']
  const names = missing(roots)
  if (names.length > 0) await unpackPackages(folder, names)
  const [still] = missing(roots)
  if (still !== undefined) throw new ProgramsMissing(`the package ${still} has not what it should have`)
  return roots
}

function find(roots: Roots, path: string): string | undefined {
  return roots.map((root) => join(root, path)).find((file) => existsSync(file))
}

/** The newest version: Debian keeps every version in a separate folder. */
function findPostgres(roots: Roots): string | undefined {
  const folders = roots.flatMap((root) => {
    const all = join(root, 'usr/lib/postgresql')
    return existsSync(all) ? readdirSync(all).map((version) => join(all, version, 'bin')) : []
  })
  const version = (path: string) => Number(path.split('/').at(-2))
  return folders
    .filter((path) => version(path) >= 15 && existsSync(join(path, 'pg_rewind')))
    .sort((one, other) => version(other) - version(one))[0]
}

function libraries(root: string): readonly string[] {
  const all = join(root, 'usr/lib')
  if (!existsSync(all)) return []
  return [all, ...readdirSync(all).flatMap((name) => (name.endsWith('-linux-gnu') ? [join(all, name)] : []))]
}

async function unpackPackages(folder: Folder, names: readonly string[]): Promise<void> {
  if (!existsSync('/usr/bin/apt-get')) {
    throw new ProgramsMissing(`${names.join(', ')}: not on this machine, and it has no apt-get to get them`)
  }
  const apt = join(folder.path, 'apt')
  const options = [
    `Dir::State::lists=${apt}/lists`,
    `Dir::Cache=${apt}/cache`,
    'Debug::NoLocking=1',
    'APT::Install-Recommends=0',
  ].flatMap((option) => ['-o', option])
  const script = `set -e
mkdir -p ${apt}/lists/partial ${apt}/cache/archives/partial
apt-get ${options.join(' ')} --quiet update
apt-get ${options.join(' ')} --quiet --yes --download-only install ${names.join(' ')}
for package in ${apt}/cache/archives/*.deb; do dpkg-deb --extract $package ${folder.path}/packages; done`
  await folder.run('packages', ['sh', '-c', script]).catch((error: unknown) => {
    // The first warning is closer to the cause than the final error.
    const line = folder.words('packages').find((text) => /^[EW]: /.test(text))
    throw new ProgramsMissing(
      `${names.join(', ')}: not on this machine, and apt-get cannot get them: ${line?.slice(3) ?? 'no word why'}`,
      { cause: error },
    )
  })
}
