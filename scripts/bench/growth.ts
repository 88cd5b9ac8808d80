import { rmSync } from 'node:fs'
import { type HandleKind, openHandle, sealHandle } from '../../src/domain/handle.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { basic, Connection, form, postForm } from './connection.ts'
import { appOf, type GrownStore, growStore, handleBytes, wantsIdToken } from './growth-store.ts'
import { executable } from './measured-servers.ts'
import { type RunningServer, startServer } from './process.ts'
import type { Growth, Sample } from './result.ts'
import { work } from './work.ts'
import type { Lane } from './workloads.ts'

interface Grown {
  readonly store: GrownStore
  readonly server: RunningServer
  readonly idle: number
  /** The number of the current refresh token of each grant. */
  readonly numbers: Uint32Array
}

interface HttpResponse {
  readonly refresh_token?: string
  readonly id_token?: string
}

/** After the refresh that created the state of each grant. */
const firstNumber = 2
const loads = ['refresh', 'refresh, ES256 ID Token', 'introspection'] as const

/**
 * Compares a server with few grants and one with many, in turns: refreshes and introspections of random grants. The
 * product's own writes make the grants, and its keys seal their tokens.
 */
export async function measureGrowth(
  sizes: readonly number[],
  counts: readonly number[],
  rounds: number,
  seconds: number,
): Promise<Growth> {
  const grown: Grown[] = []
  const samples: Sample[] = []
  try {
    for (const size of sizes) grown.push(await grow(size))
    for (const load of loads) {
      for (const count of counts) {
        for (let round = 0; round <= rounds; round += 1) {
          const turn = round % 2 === 0 ? grown : grown.toReversed()
          for (const one of turn) {
            const sample = await sampleGrown(one, load, count, seconds)
            if (round > 0) samples.push(sample)
          }
        }
        process.stderr.write(`growth, ${load}, ${count}: done\n`)
      }
    }
    const held = grown.map(({ store, idle, server }) => {
      return { grants: store.grants, bytesAGrant: store.bytesAGrant, idle, loaded: server.memory() }
    })
    return { samples, held }
  } finally {
    for (const { server, store } of grown) {
      await server.stop()
      rmSync(store.folder, { recursive: true })
    }
  }
}

async function grow(grants: number): Promise<Grown> {
  const port = await freePort()
  const store = await growStore(grants, port)
  process.stderr.write(`${grants} grants, ${store.bytesAGrant.toFixed(0)} bytes each\n`)
  const { server } = await startServer([executable, 'serve'], port, { environment: store.environment })
  return { store, server, idle: server.memory(), numbers: new Uint32Array(grants).fill(firstNumber) }
}

async function sampleGrown(
  grown: Grown,
  load: (typeof loads)[number],
  count: number,
  seconds: number,
): Promise<Sample> {
  const lanes = Array.from({ length: count }, (_, index) =>
    load === 'introspection' ? introspecting(grown) : refreshing(grown, index, count, load !== 'refresh'),
  )
  const sample = await work(lanes, grown.server, seconds, { ownCore: true })
  for (const lane of lanes) lane.close()
  return { ...sample, workload: load, server: String(grown.store.grants), connections: count }
}

/** Each connection has its own grants, as two simultaneous refreshes of one are a reuse. */
function refreshing(
  { store, server, numbers }: Grown,
  index: number,
  count: number,
  hasIdToken: boolean,
): Lane {
  const connection = new Connection(server.port)
  const request = postForm('/api/oauth/token')
  return {
    operate: async () => {
      const even = 2 * (Math.floor((Math.random() * (store.grants / 2 - index)) / count) * count + index)
      const n = wantsIdToken(even) === hasIdToken ? even : even + 1
      const number = numbers[n] ?? 0
      const body = form({
        grant_type: 'refresh_token',
        refresh_token: tokenOf(store, 'refresh', n, number),
        client_id: appOf(store.apps, n),
      })
      const response = await connection.send(request, body)
      const { refresh_token: token = '', id_token: idToken } = JSON.parse(response.body) as HttpResponse
      const next = openHandle(store.keys.handles, token, 'refresh')
      if (response.status !== 200 || next?.grantId !== grantOf(store, n).id || next.seq !== number + 1)
        throw new Error(
          `wanted the next refresh token, got ${response.status} ${response.body.slice(0, 300)}`,
        )
      if ((idToken !== undefined) !== hasIdToken) throw new Error('an ID Token too many, or too few')
      numbers[n] = number + 1
    },
    close: () => connection.close(),
  }
}

function introspecting({ store, server, numbers }: Grown): Lane {
  const connection = new Connection(server.port)
  const request = postForm('/api/oauth/introspect', basic(store.api.id, store.api.secret))
  return {
    operate: async () => {
      const n = Math.floor(Math.random() * store.grants)
      const response = await connection.send(
        request,
        form({ token: tokenOf(store, 'access', n, numbers[n] ?? 0) }),
      )
      const told = JSON.parse(response.body) as { active?: boolean; client_id?: string }
      if (response.status !== 200 || told.active !== true || told.client_id !== appOf(store.apps, n))
        throw new Error(`wanted an active token, got ${response.status} ${response.body.slice(0, 300)}`)
    },
    close: () => connection.close(),
  }
}

function grantOf({ handles }: GrownStore, n: number): { readonly id: string; readonly secret: string } {
  const at = n * handleBytes
  return {
    id: handles.toString('base64url', at, at + 12),
    secret: handles.toString('base64url', at + 12, at + handleBytes),
  }
}

/** A token of this grant, as the server would have issued it an hour ago. */
function tokenOf(store: GrownStore, kind: HandleKind, n: number, seq: number): string {
  const { id, secret } = grantOf(store, n)
  const now = Math.floor(Date.now() / 1000)
  const handle = { kind, grantId: id, seq, issuedAt: now - 60, expiresAt: now + 3000 }
  return sealHandle(handle, store.keys.handles.current, secret)
}
