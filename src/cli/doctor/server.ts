import { readinessUrl } from '../healthcheck.ts'
import { askIfThere } from './ask.ts'
import { differenceOf } from './difference.ts'
import { type Finding, ok, problem, setting, unchecked } from './finding.ts'
import type { Reference } from './reference.ts'
import { type Setup, upstreamOf } from './setup.ts'

/** Whether the server of this configuration runs here, and what it is if not that. */
export interface ExaminedServer {
  readonly state: 'runs' | 'silent' | 'another'
  readonly findings: readonly Finding[]
}

/** Asks on the server's own address, past every proxy. */
export async function examineServer(setup: Setup, reference: Reference): Promise<ExaminedServer> {
  const { config, origins } = setup
  if (config.port === 0)
    return { state: 'silent', findings: [unchecked('server', 'port 0 became any free one')] }
  const origin = new URL(readinessUrl(config)).origin
  const path = `${new URL(config.issuer).pathname.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await askIfThere(origin + path)
  if (answer === undefined) {
    const said = `nothing listens at ${upstreamOf(setup)}: the server does not run here`
    return { state: 'silent', findings: [unchecked('server', said)] }
  }
  const expected = await reference.answer(`${config.issuer}/.well-known/openid-configuration`)
  const difference = differenceOf(answer, expected)
  if (difference !== undefined) {
    const isOurs = ['slash', 'scheme', 'issuer', 'members'].includes(difference.kind)
    const said = isOurs
      ? `what listens at ${origin} runs with other settings: its document ${difference.said}`
      : `what listens at ${origin} is not this server: its document ${difference.said}`
    const names = ['issuer', 'port'].flatMap((name) => origins.get(name)?.name ?? [])
    const change = isOurs
      ? [`restart the server with the settings that were examined (${names.join(', ') || 'defaults'})`]
      : setting('port', '9401')
    const { expected: wanted, found } = difference
    return { state: 'another', findings: [problem('server', said, { expected: wanted, found, change })] }
  }
  const named = await askIfThere(origin + path, { headers: { host: 'another.example' } })
  if (named?.body !== answer.body) {
    const change = ['restart the server with this version: its documents follow the issuer alone']
    const detail = { expected: 'the same document for every Host', found: 'another one', change }
    return { state: 'another', findings: [problem('server', 'follows the Host header', detail)] }
  }
  const said = `runs at ${origin} with these settings, whatever Host it is asked as`
  return { state: 'runs', findings: [ok('server', said)] }
}
