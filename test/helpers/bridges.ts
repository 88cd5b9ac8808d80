/** Networks of containers as Docker makes them: a bridge for each, in the network namespace of this process. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'

/** A network: the bridge, the first three numbers of its addresses, and whether it leads elsewhere. */
export interface Bridge {
  readonly name: string
  readonly prefix: string
  readonly isInternal: boolean
}

/** The address of this machine for everything that runs in the networks: no address of theirs is like it. */
export const clientAddress = '192.0.2.7'

const ip = (...args: string[]) => execFileSync('ip', args)

/** Gives this namespace its loopback, and the address of a client elsewhere. */
export function beginNetworks(): void {
  ip('link', 'set', 'lo', 'up')
  ip('address', 'add', `${clientAddress}/32`, 'dev', 'lo')
}

/** Adds a bridge whose first address is this machine; what leaves this machine for it has `clientAddress`. */
export function addBridge({ name, prefix, isInternal }: Bridge): void {
  ip('link', 'add', name, 'type', 'bridge')
  ip('address', 'add', `${prefix}.1/24`, 'dev', name)
  ip('link', 'set', name, 'up')
  if (!isInternal) ip('route', 'replace', `${prefix}.0/24`, 'dev', name, 'src', clientAddress)
}

/** Makes a network namespace with these addresses, and returns its path. It goes with this process. */
export async function addNamespace(
  t: Test,
  places: readonly { readonly bridge: Bridge; readonly address: string }[],
): Promise<string> {
  const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => holder.kill())
  await once(holder.stdout, 'data')
  const path = `/proc/${holder.pid}/ns/net`
  const inside = (...args: string[]) => execFileSync('nsenter', [`--net=${path}`, ...args])
  inside('ip', 'link', 'set', 'lo', 'up')
  // As in Docker, where no program needs a right for port 443.
  inside('sh', '-c', 'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start')
  for (const { bridge, address } of places) {
    const [near, far] = [`v${holder.pid}${bridge.name}`, `eth-${bridge.name}`]
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', String(holder.pid))
    ip('link', 'set', near, 'master', bridge.name, 'up')
    inside('ip', 'address', 'add', `${address}/24`, 'dev', far)
    inside('ip', 'link', 'set', far, 'up')
    if (!bridge.isInternal) inside('ip', 'route', 'add', 'default', 'via', `${bridge.prefix}.1`)
  }
  return path
}
