import { stringify } from 'yaml'

/** A PostgreSQL node: the database and its Patroni. */
export interface DatabaseNode {
  readonly name: string
  readonly folder: string
  readonly port: number
  /** Patroni's REST API. */
  readonly restPort: number
}

/** Passwords of the roles, made for one run. */
export interface Passwords {
  readonly superuser: string
  readonly replication: string
  readonly lychgate: string
}

/**
 * Seconds. The standby takes over when the primary has not renewed its key for `ttl`; newer versions of Patroni accept
 * none shorter than 20. `loop_wait + 2 * retry_timeout` may not exceed it: then a primary that cannot reach etcd has
 * stepped down before its key expires.
 */
const timing = { ttl: 20, loop_wait: 3, retry_timeout: 5 }

/** Patroni's file for one node. */
export function patroniConfiguration(
  node: DatabaseNode,
  {
    etcdPort,
    bin,
    passwords,
  }: { readonly etcdPort: number; readonly bin: string; readonly passwords: Passwords },
): string {
  return stringify({
    scope: 'lychgate',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.restPort}`, connect_address: `127.0.0.1:${node.restPort}` },
    etcd3: { hosts: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...timing,
        // A commit is acknowledged when the standby has it on disk too, and only a standby that has every one may take
        // over.
        synchronous_mode: true,
        // In strict mode writes would fail while there is no standby: after a failover, until the old primary is back.
        synchronous_mode_strict: false,
        // Without etcd the primary stays primary as long as it reaches every other node.
        failsafe_mode: true,
        // How long a crashed database has to restart before the standby takes over.
        primary_start_timeout: 10,
        postgresql: {
          use_pg_rewind: true,
          parameters: { max_connections: 100, shared_buffers: '32MB', synchronous_commit: 'on' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${node.port}`,
      connect_address: `127.0.0.1:${node.port}`,
      bin_dir: bin,
      data_dir: `${node.folder}/database`,
      pgpass: `${node.folder}/pgpass`,
      authentication: {
        superuser: { username: 'postgres', password: passwords.superuser },
        replication: { username: 'replication', password: passwords.replication },
      },
      pg_hba: [
        'host replication replication 127.0.0.1/32 scram-sha-256',
        'host all all 127.0.0.1/32 scram-sha-256',
      ],
      // Neither sockets nor shared memory outside the folder.
      parameters: { unix_socket_directories: '', dynamic_shared_memory_type: 'mmap' },
      // A node that can neither continue nor be rewound is copied again.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
    watchdog: { mode: 'off' },
  })
}

/** HAProxy's file: the primary on one port, the Lychgate nodes in turn on another. */
export function haproxyConfiguration(
  nodes: readonly DatabaseNode[],
  ports: { readonly store: number; readonly issuer: number; readonly lychgate: readonly number[] },
): string {
  return `defaults
  timeout connect 2s
  timeout check 2s

listen primary
  mode tcp
  bind 127.0.0.1:${ports.store}
  timeout client 1h
  timeout server 1h
  # Patroni answers 200 here on the one node that may be written to. Connections to one that no longer may are cut.
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${nodes.map(({ name, port, restPort }) => `  server ${name} 127.0.0.1:${port} check port ${restPort}`).join('\n')}

listen lychgate
  mode http
  bind 127.0.0.1:${ports.issuer}
  timeout client 30s
  timeout server 30s
  balance roundrobin
${ports.lychgate.map((port, at) => `  server lychgate-${at + 1} 127.0.0.1:${port}`).join('\n')}
`
}
