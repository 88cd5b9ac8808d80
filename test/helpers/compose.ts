/**
 * Runs the services of a compose file as it says: each in a network namespace of its own, with the addresses, names,
 * variables, volumes and secrets that the file gives it. It knows the keys of these files, and fails on any other.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { addBridge, addNamespace, type Bridge } from './bridges.ts'
import { entry, newFolder } from './command.ts'
import type { Container, ContainerOptions } from './container.ts'

const keys = {
  file: ['name', 'services', 'networks', 'volumes', 'secrets', 'x-node'],
  read: 'image command environment env_file ports volumes networks secrets depends_on'.split(' '),
  // Every container here has the first three; the others concern Docker alone. Another test compares the health check.
  other: 'read_only cap_drop security_opt build restart stop_grace_period healthcheck'.split(' '),
  network: ['ipam', 'internal'],
  place: ['ipv4_address', 'aliases'],
}

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, Network>>
  readonly volumes?: Readonly<Record<string, null>>
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>
}

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly env_file?: readonly { readonly path: string }[]
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
  readonly networks: readonly string[] | Readonly<Record<string, Place>>
  readonly depends_on?: readonly string[] | Readonly<Record<string, object>>
}

interface Network {
  readonly internal?: boolean
  readonly ipam?: { readonly config: readonly { readonly subnet: string; readonly gateway?: string }[] }
}

interface Place {
  readonly ipv4_address?: string
  readonly aliases?: readonly string[]
}

/** Where a service is: its addresses by bridge, and its names in each. */
interface Placed {
  readonly bridge: Bridge
  readonly address: string
  readonly names: readonly string[]
}

/** How a service runs. */
export interface Started extends ContainerOptions {
  readonly command: readonly string[] | undefined
  /** Its address in its first network. */
  readonly address: string
}

/** What runs an image; undefined where what stands for it is no container. */
export type Runner = (started: Started) => Promise<Container | undefined>

export interface ComposeOptions {
  /** What runs each image, by its name. */
  readonly images: Readonly<Record<string, Runner>>
  /** The issuer instead of that of the comment. */
  readonly issuer: string
  /** Makes the folder of a volume. */
  readonly newVolume: (image: string) => string
}

/** The services that run. */
export interface Stack {
  readonly container: (service: string) => Container
  readonly address: (service: string) => string
  /** The folder of a named volume. */
  readonly volume: (name: string) => string
  /** The commands in the comment of the file that are for a running service. */
  readonly commands: readonly { readonly service: string; readonly args: readonly string[] }[]
}

/** Copies deploy, as a checkout has it, for a test to run there. */
export function copyOfDeploy(t: Test): string {
  const folder = newFolder(t)
  cpSync('deploy', folder, { recursive: true, filter: (path) => !/deploy\/(?:\.env|secrets)$/.test(path) })
  return folder
}

/** Does what the comment of the file says, and starts the services in the order they need. */
export async function composeUp(
  t: Test,
  folder: string,
  name: string,
  { images, issuer, newVolume }: ComposeOptions,
): Promise<Stack> {
  const source = readFileSync(join(folder, name), 'utf8')
  const file: ComposeFile = parse(source, { merge: true })
  assertKeys(name, file, keys.file)
  const commands = followComment(folder, source, issuer)
  const variables = variablesIn(join(folder, '.env'))
  const places = placesOf(file)
  const [containers, volumes] = [new Map<string, Container | undefined>(), new Map<string, string>()]

  const mountsOf = (service: string, { volumes: lines = [], secrets = [], image }: Service) => {
    const mounts: Record<string, string> = {}
    const written: Record<string, string> = {}
    for (const id of secrets) mounts[`/run/secrets/${id}`] = join(folder, file.secrets?.[id]?.file ?? '')
    for (const line of lines) {
      const [from = '', to = '', mode] = line.split(':')
      if (from.startsWith('.') && mode === 'ro') mounts[to] = resolve(folder, from)
      else if (from in (file.volumes ?? {}) && mode === undefined) {
        if (!volumes.has(from)) volumes.set(from, newVolume(image))
        written[to] = volumes.get(from) ?? ''
      } else throw new Error(`${service}: nothing here makes the volume ${line}`)
    }
    return { mounts, written }
  }

  const start = async (service: string): Promise<void> => {
    if (containers.has(service)) return
    const declared = member(file.services, service)
    assertKeys(service, declared, [...keys.read, ...keys.other])
    const { depends_on: needed = [] } = declared
    for (const other of Array.isArray(needed) ? needed : Object.keys(needed)) await start(other)
    const own = Object.entries(declared.environment ?? {}).map(([key, text]) => [key, fill(text, variables)])
    const environment = { ...(declared.env_file && variables), ...Object.fromEntries(own) }
    const { mounts, written } = mountsOf(service, declared)
    const hosts = join(folder, `hosts-${service}`)
    const here = places.get(service) ?? []
    writeFileSync(hosts, namesFor(here, [...places.values()].flat()))
    const network = await addNamespace(t, here)
    const options = { environment, mounts: { '/etc/hosts': hosts, ...mounts }, volumes: written, network }
    const run = member(images, fill(declared.image, variables))
    containers.set(
      service,
      await run({ ...options, command: declared.command, address: here[0]?.address ?? '' }),
    )
  }
  for (const service of Object.keys(file.services)) await start(service)
  const found = <T>(map: ReadonlyMap<string, T | undefined>, key: string): T => {
    const value = map.get(key)
    if (value === undefined) throw new Error(`${name} has no ${key}`)
    return value
  }
  return {
    container: (service) => found(containers, service),
    address: (service) => found(places, service)[0]?.address ?? '',
    volume: (id) => found(volumes, id),
    commands,
  }
}

/** Makes the networks, and gives each service an address in each of its own. */
function placesOf({ networks, services }: ComposeFile): ReadonlyMap<string, readonly Placed[]> {
  const bridges = Object.entries(networks).map(([id, network], at): [string, Bridge] => {
    assertKeys(id, network, keys.network)
    const { subnet, gateway } = network.ipam?.config[0] ?? { subnet: `172.30.${200 + at}.0/24` }
    const prefix = /^(\d+\.\d+\.\d+)\.0\/24$/.exec(subnet)?.[1]
    if (prefix === undefined || (gateway ?? `${prefix}.1`) !== `${prefix}.1`)
      throw new Error(`${id}: ${subnet}`)
    const bridge = { name: `c${prefix.split('.')[2]}`, prefix, isInternal: network.internal === true }
    addBridge(bridge)
    return [id, bridge]
  })
  return new Map(
    Object.entries(services).map(([service, { networks: own }], at) => {
      const asked = Array.isArray(own) ? own.map((id): [string, Place] => [id, {}]) : Object.entries(own)
      const placed = asked.map(([id, place]) => {
        assertKeys(id, place, keys.place)
        const bridge = member(Object.fromEntries(bridges), id)
        const address = place.ipv4_address ?? `${bridge.prefix}.${20 + at}`
        return { bridge, address, names: [service, ...(place.aliases ?? [])] }
      })
      return [service, placed]
    }),
  )
}

/** The lines of /etc/hosts that stand for the name server of the networks of a service. */
function namesFor(here: readonly Placed[], all: readonly Placed[]): string {
  const near = all.filter(({ bridge }) => here.some((one) => one.bridge === bridge))
  return `127.0.0.1 localhost\n${near.map(({ address, names }) => `${address} ${names.join(' ')}\n`).join('')}`
}

/** Runs the commands of the comment, but for compose; the command line stands for the image, whose entry point it is. */
function followComment(folder: string, source: string, issuer: string): Stack['commands'] {
  const lines = [...source.matchAll(/^# {3}(\S.*)$/gm)].map(([, line = '']) => line)
  const here = lines.filter((line) => !line.startsWith('docker compose'))
  const shell = `
sudo() { "$@"; }
docker() { shift 3; "${process.execPath}" "${entry}" "$@"; }
${here.join('\n').replace('https://auth.example.org', issuer)}`
  const { status, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', shell], {
    cwd: folder,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return lines.flatMap((line) => {
    const [, service = '', args = ''] =
      /^docker compose (?:-f \S+ )?exec (\S+) lychgate (.*)$/.exec(line) ?? []
    return service === '' ? [] : [{ service, args: args.split(' ') }]
  })
}

function variablesIn(file: string): Readonly<Record<string, string>> {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
}

/** Replaces `${NAME}`, `${NAME:-otherwise}` and `${NAME:?why}`. */
function fill(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind?: string, rest = '') => {
    const value = variables[name] ?? (kind === '-' ? rest : undefined)
    if (value === undefined) throw new Error(`${name}: ${rest}`)
    return value
  })
}

function assertKeys(name: string, value: object | undefined, allowed: readonly string[]): void {
  const others = Object.keys(value ?? {}).filter((key) => !allowed.includes(key))
  if (others.length > 0) throw new Error(`${name} has ${others.join(', ')}, which the walk does not know`)
}

function member<T>(values: Readonly<Record<string, T>>, key: string): T {
  const value = values[key]
  if (value === undefined) throw new Error(`there is no ${key}`)
  return value
}
