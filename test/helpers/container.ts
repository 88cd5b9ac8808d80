import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ContainerPrograms } from '../../scripts/cluster/packages.ts'

/** How one container runs. */
export interface ContainerOptions {
  readonly environment?: Readonly<Record<string, string>>
  readonly user?: { readonly uid: number; readonly gid: number }
  /** What is mounted for writing, by its path inside; files there cannot be run. */
  readonly volumes?: Readonly<Record<string, string>>
  /** What is mounted for reading. */
  readonly mounts?: Readonly<Record<string, string>>
  readonly memoryBytes?: number
  /** The port of this machine that leads to the same port inside. */
  readonly port?: number
  /** The path of its network namespace; by default one with no network but loopback. */
  readonly network?: string
}

/** A container that runs. */
export interface Container {
  readonly child: ChildProcess
  /** Runs a command in it, as `docker exec` does. */
  exec(args: readonly string[], input?: string): { status: number | null; stdout: string; stderr: string }
}

/** Runs containers of an unpacked image with runc: no network but loopback, a read-only root, no capability. */
export function runContainers(t: Test, { runc, environment: own }: ContainerPrograms, bundle: string) {
  const spec = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8'))
  const state = join(bundle, 'state')
  const env = { ...own, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }
  const command = (...args: string[]) => ['--root', state, ...args]

  return (args: readonly string[], options: ContainerOptions = {}): Container => {
    const id = randomUUID()
    const folder = join(bundle, id)
    mkdirSync(folder)
    const mounted = (all: Readonly<Record<string, string>> = {}, mode: string) =>
      Object.entries(all).map(([destination, source]) => ({
        destination,
        source,
        type: 'bind',
        options: ['bind', mode, 'nosuid', 'nodev', 'noexec'],
      }))
    const variables = Object.entries(options.environment ?? {}).map(([name, value]) => `${name}=${value}`)
    const none = { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] }
    const config = {
      ...spec,
      root: { path: join(bundle, 'rootfs'), readonly: true },
      process: {
        ...spec.process,
        terminal: false,
        args: [spec.process.args[0], ...args],
        env: [...spec.process.env, ...variables],
        user: options.user ?? spec.process.user,
        capabilities: none,
      },
      mounts: [
        ...spec.mounts.filter(({ destination }: { destination: string }) => destination !== '/data'),
        ...mounted(options.volumes, 'rw'),
        ...mounted(options.mounts, 'ro'),
      ],
      linux: {
        ...spec.linux,
        namespaces: spec.linux.namespaces.map((namespace: { type: string }) =>
          namespace.type === 'network' && options.network
            ? { ...namespace, path: options.network }
            : namespace,
        ),
        ...(options.memoryBytes !== undefined && { resources: { memory: { limit: options.memoryBytes } } }),
      },
    }
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
    const child = spawn(runc, command('run', '--bundle', folder, id), { env })
    const call = (...rest: string[]) => spawnSync(runc, command(...rest), { env, encoding: 'utf8' })
    // runc passes signals on, but this one would end runc alone.
    child.kill = (signal) => call('kill', id, String(signal)).status === 0
    const pid = (): number => JSON.parse(call('state', id).stdout || '{}').pid ?? 0
    const endRelay =
      options.port === undefined ? () => undefined : relay(options.port, join(folder, 'relay'), pid)
    child.once('exit', endRelay)
    t.teardown(() => {
      call('delete', '--force', id)
      endRelay()
    })
    return {
      child,
      exec: (line, input = '') => {
        const result = spawnSync(runc, command('exec', id, spec.process.args[0], ...line), {
          env,
          input,
          encoding: 'utf8',
        })
        return { status: result.status, stdout: result.stdout, stderr: result.stderr }
      },
    }
  }
}

/**
 * Connects a port of this machine with the same port of a container, which no network leads to. Returns its end.
 */
function relay(port: number, path: string, pidOf: () => number): () => void {
  const inside = `require('node:net').createServer((one) => {
    const other = require('node:net').connect(${port}, '127.0.0.1')
    one.pipe(other).pipe(one)
    for (const each of [one, other]) each.on('error', () => { one.destroy(); other.destroy() })
  }).listen('${path}')`
  let entered: ChildProcess | undefined
  const open = new Set<Socket>()
  const server = createServer((one) => {
    const pid = entered === undefined ? pidOf() : 0
    if (pid > 0)
      entered = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, process.execPath, '-e', inside], {
        stdio: 'ignore',
      })
    const other = connect(path)
    one.pipe(other).pipe(one)
    for (const each of [one, other]) {
      open.add(each)
      each.on('error', () => {
        one.destroy()
        other.destroy()
      })
      each.on('close', () => open.delete(each))
    }
  }).listen(port, '127.0.0.1')
  return () => {
    entered?.kill('SIGKILL')
    server.close()
    for (const each of open) each.destroy()
  }
}
