import { setTimeout } from 'node:timers/promises'
import { obtainTokens, postAs, refresh, register, type Tokens } from '../../test/helpers/flow.ts'
import type { PostgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { tokenPath } from '../../test/helpers/proofs.ts'
import type { TestNode, TestServer } from '../../test/helpers/server.ts'
import { UserAgent } from '../../test/helpers/user-agent.ts'
import { addClient } from '../../test/helpers/wire.ts'

const [connections, delay] = [64, 5]

/** Measures how many requests of one client are served at 5 ms: for its own tokens, and refreshes in the same run. */
export async function measureOneClient(
  server: TestServer,
  proxy: PostgresProxy,
  seconds: number,
): Promise<readonly string[]> {
  const machine = await addClient(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
  })
  const app = await register(server)
  const agent = new UserAgent(server.issuer)
  const grants: Tokens[] = []
  for (let lane = 0; lane < connections; lane += 1) grants.push(await obtainTokens(server, app, { agent }))
  const requests = {
    'client credentials': (node: TestNode) =>
      postAs(node, machine, tokenPath, { grant_type: 'client_credentials' }),
    refresh: async (node: TestNode, lane: number) => {
      const response = await refresh(node, app, grants[lane]?.refresh_token ?? '')
      if (response.ok) grants[lane] = (await response.clone().json()) as Tokens
      return response
    },
  }
  proxy.delay = delay
  const rows: string[] = []
  const kinds = Object.entries(requests)
  // The first turns measure the compiler, and are dropped.
  for (const [name, request] of [...kinds, ...kinds]) {
    const statuses = new Map<number, number>()
    const end = performance.now() + seconds * 1000
    await Promise.all(
      Array.from({ length: connections }, async (_, lane) => {
        const node = server.nodes[lane % server.nodes.length] ?? server
        while (performance.now() < end) {
          const response = await request(node, lane)
          await response.arrayBuffer()
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
          if (!response.ok) await setTimeout(delay)
        }
      }),
    )
    const { 200: served = 0, ...others } = Object.fromEntries(statuses)
    rows.push(
      `| ${[name, server.nodes.length, (served / seconds).toFixed(0), JSON.stringify(others)].join(' | ')} |`,
    )
  }
  proxy.delay = 0
  return rows.slice(kinds.length)
}
