import type { StoredKey } from '../../domain/model.ts'
import { developmentFaults } from '../../settings/checks.ts'
import { ConfigError, type ConfigSources, type ResolvedConfig, resolveConfig } from '../../settings/load.ts'
import { systemClock } from '../../system.ts'
import { NoAnswer } from './ask.ts'
import { examineDatabaseClock, examineIssuerClock } from './clock.ts'
import { examineDatabase } from './database.ts'
import { examineFiles } from './files.ts'
import { type Finding, problem, unchecked } from './finding.ts'
import { examineIssuer, examinePublishedKeys } from './issuer.ts'
import { examineKeys } from './keys.ts'
import { examineMail } from './mail.ts'
import { examineProxy } from './proxy.ts'
import { type Reference, startReference } from './reference.ts'
import { examineServer } from './server.ts'
import { examineSettings, settingFault } from './settings.ts'
import { detectContainer, type Setup, upstreamOf } from './setup.ts'

/** What to examine, and how far to go. */
export interface Examination extends ConfigSources {
  /** Leave the network alone; the database of the configuration is asked wherever it is. */
  readonly offline?: boolean
  /** Found out when absent. */
  readonly isContainer?: boolean
}

/** Everything there is to say of a set-up. Nothing is changed, whether its server runs or not. */
export async function examine(examination: Examination): Promise<readonly Finding[]> {
  const { offline = false, isContainer, environment = {}, ...sources } = examination
  let resolved: ResolvedConfig
  try {
    resolved = resolveConfig({ ...sources, environment })
    const faults = sources.mode === 'dev' ? [...developmentFaults(resolved.config)] : []
    if (faults.length > 0) throw new ConfigError(faults)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map(settingFault)
  }
  const setup = { ...resolved, environment, isContainer: isContainer ?? detectContainer(environment) }
  const store = await examineDatabase(setup)
  const keys = await examineKeys(setup, store.facts?.keys, systemClock())
  const network = offline
    ? [unchecked('network', 'was left alone, as --offline says')]
    : [...(await examineMail(setup)), ...(await examineNetwork(setup, store.facts?.keys ?? []))]
  return [
    ...examineSettings(setup),
    ...examineFiles(setup),
    ...store.findings,
    ...examineDatabaseClock(store.facts ?? {}),
    ...keys,
    ...network,
  ]
}

async function examineNetwork(setup: Setup, ring: readonly StoredKey[]): Promise<readonly Finding[]> {
  const reference = await startReference(setup.config)
  try {
    const server = await examineServer(setup, reference)
    const issuer = await examineIssuer(setup, server.state, reference)
    const findings = [...server.findings, ...issuer.findings]
    return issuer.isReached ? [...findings, ...(await examineExchange(setup, ring, reference))] : findings
  } finally {
    await reference.close()
  }
}

/** The issuer answers as this server: what happens to everything else on the way. */
async function examineExchange(
  setup: Setup,
  ring: readonly StoredKey[],
  reference: Reference,
): Promise<readonly Finding[]> {
  try {
    const keys = ring.length > 0 ? [await examinePublishedKeys(setup, ring, systemClock())] : []
    const before = systemClock()
    const proxy = await examineProxy(setup, reference)
    const clock = proxy.answer ? [...examineIssuerClock(proxy.answer, before, systemClock())] : []
    return [...keys, ...proxy.findings, ...clock]
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const change = [`look at the log of the proxy; it passes requests on to ${upstreamOf(setup)}`]
    const detail = {
      expected: 'an answer to every request',
      found: `${error.message} (${error.code})`,
      change,
    }
    return [problem('issuer', 'answers some requests, and lets go of others', detail)]
  }
}
