import { ok, problem, type Setup, warning } from '../../doctor/finding.ts'
import type { Finding } from '../../domain/finding.ts'
import { loadChange } from '../../http/load-shedding.ts'
import { ask, NoResponse } from './http.ts'

/**
 * Reads from the metrics of the running server whether it rejects requests because of their load, or did since it
 * started. Finds nothing where no server measures itself.
 */
export async function examineLoad({ config }: Pick<Setup, 'config'>): Promise<readonly Finding[]> {
  const { host, port } = config.management
  if (port === undefined) return []
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  try {
    const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/metrics`
    const { status, body } = await ask(url)
    return status === 200 ? [findingOf(body)] : []
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    return []
  }
}

/** Returns the finding about what the metrics say. */
export function findingOf(metrics: string): Finding {
  const sumOf = (name: string) =>
    metrics
      .split('\n')
      .filter((line) => /^\w+/.exec(line)?.[0] === `lychgate_${name}`)
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  const rejected = sumOf('requests_shed_total')
  if (rejected === 0) return ok`load: no request was rejected because of it since the server started`
  const atLevel = sumOf('overloaded') > 0 ? problem : warning
  const said = atLevel === problem ? 'is too high' : 'was too high since the server started'
  return atLevel`load: ${said}
    expected  none
    found  ${rejected} requests were rejected with 503
    change  ${loadChange}`
}
