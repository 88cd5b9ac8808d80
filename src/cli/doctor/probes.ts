import { ok, problem, warning } from '../../doctor/finding.ts'
import type { Finding } from '../../domain/finding.ts'
import type { Client } from '../../domain/model.ts'
import type { ClientProbe } from '../../feature/feature.ts'
import { features } from '../../features.ts'
import { ask, excerptOf, membersOf, NoResponse } from './http.ts'

/** Checks the proxies in front of the apps of clients. */
export async function examineProbes(clients: readonly Client[]): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const { clientProbe } of features) {
    if (clientProbe === undefined) continue
    // One after the other: there may be many, behind one proxy.
    for (const client of clients) findings.push(...(await examineProbe(client, clientProbe)))
  }
  return findings
}

async function examineProbe(client: Client, probe: ClientProbe): Promise<readonly Finding[]> {
  const request = probe.requestOf(client)
  if (request === undefined || client.lockedAt !== undefined) return []
  const { host } = new URL(request.url)
  try {
    const response = await ask(request.url, { headers: request.headers })
    const fault = probe.faultOf(response.status === 200 ? membersOf(response) : undefined)
    if (fault === undefined) return [ok`protected host: ${host} lets nothing through that a client forges`]
    const found = response.status === 200 ? fault.found : `${response.status}: ${excerptOf(response)}`
    const wrong = problem`protected host: ${host}: ${fault.said}
      found  ${found}
      change  ${probe.change}`
    return [wrong]
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    const none = warning`protected host: ${host} cannot be reached from here
      expected  a response from ${request.url}
      found  ${error.message}
      change  let this machine connect to ${host}, or run lychgate doctor where it can`
    return [none]
  }
}
