import { existsSync, readlinkSync } from 'node:fs'
import { examineClients } from '../../doctor/clients.ts'
import { ok, problem, type Setup, setting, unchecked, upstreamOf } from '../../doctor/finding.ts'
import { examineFiles, examineSettings, settingFault } from '../../doctor/settings.ts'
import type { Finding } from '../../domain/finding.ts'
import type { StoredKey } from '../../domain/model.ts'
import { declared } from '../../features.ts'
import { greetMailServer, MailFailed, senderOf } from '../../outbound/mailer.ts'
import { developmentFaults } from '../../settings/checks.ts'
import { ConfigError, type ConfigSources, type ResolvedConfig, resolveConfig } from '../../settings/load.ts'
import { httpInstant, systemClock } from '../../system/system.ts'
import { examineFetches } from './fetches.ts'
import { headerOf, NoResponse, type Reference, startReference } from './http.ts'
import { examineIssuer, examinePublishedKeys, examineServer } from './issuer.ts'
import { examineLoad } from './load.ts'
import { examineProbes } from './probes.ts'
import { examineProxy } from './proxy.ts'
import { compareClocks, examineDatabase, examineKeys } from './store.ts'

/** What to examine. */
export interface Examination extends ConfigSources {
  /** Sends nothing over the network, except to the database of the configuration. */
  readonly offline?: boolean
  /** By default it is detected. */
  readonly isContainer?: boolean
}

/** The PID namespace of a machine has the same number everywhere; a container has its own. */
const machineProcesses = 'pid:[4026531836]'

/**
 * Returns whether this process is in a container. A virtual machine that was made of an image has the marker of one, but
 * the processes of a machine.
 * @param root The root of the file system.
 */
export function isInContainer(environment: NodeJS.ProcessEnv, root = ''): boolean {
  if (environment['KUBERNETES_SERVICE_HOST'] !== undefined) return true
  if (!['/.dockerenv', '/run/.containerenv'].some((file) => existsSync(root + file))) return false
  try {
    return readlinkSync(`${root}/proc/self/ns/pid`) !== machineProcesses
  } catch {
    return true
  }
}

/** Returns every finding about a set-up, whether its server runs or not. Changes nothing. */
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
  const setup = { ...resolved, environment, isContainer: isContainer ?? isInContainer(environment) }
  const { facts, findings } = await examineDatabase(setup)
  const keys = await examineKeys(setup, facts ?? {}, systemClock())
  const network = offline
    ? [unchecked`network: was not used, because of --offline`]
    : [
        ...(await examineMail(setup)),
        ...(await examineFetches(setup)),
        ...(await examineNetwork(setup, facts?.keys ?? [])),
        ...(await examineLoad(setup)),
        ...(await examineProbes(facts?.operatorClients ?? [])),
      ]
  const clock = facts?.clock ? [compareClocks('the database', facts.clock)] : []
  return [
    ...examineSettings(setup),
    ...examineFiles(setup),
    ...findings,
    ...examineClients(setup.config, facts ?? {}, Object.entries(declared.clientProfiles), systemClock()),
    ...clock,
    ...keys,
    ...network,
  ]
}

/** Checks that the mail server accepts this sender, if one is configured; sends no email. */
export async function examineMail({ config }: Pick<Setup, 'config'>): Promise<readonly Finding[]> {
  const sender = senderOf(config)
  if (sender === undefined) return []
  const { host } = new URL(sender.url)
  try {
    await greetMailServer(sender)
    return [ok`mail: ${host} accepts email from ${sender.from}`]
  } catch (error) {
    if (!(error instanceof MailFailed)) throw error
    const failed = problem`mail: cannot be sent
      expected  a mail server that accepts this sender
      found  ${error.message.replace(/^mail: /, '')}
      change  ${setting('mail.url', 'smtps://USER:PASSWORD@HOST:465')}`
    return [failed]
  }
}

async function examineNetwork(setup: Setup, ring: readonly StoredKey[]): Promise<readonly Finding[]> {
  const reference = await startReference(setup.config)
  try {
    const { state, finding } = await examineServer(setup, reference)
    const { isReached, findings } = await examineIssuer(setup, state, reference)
    return [finding, ...findings, ...(isReached ? await examineExchange(setup, ring, reference) : [])]
  } finally {
    await reference.close()
  }
}

/** Checks everything else that goes through the proxy, once the issuer responds as this server. */
async function examineExchange(
  setup: Setup,
  ring: readonly StoredKey[],
  reference: Reference,
): Promise<readonly Finding[]> {
  try {
    const keys = ring.length > 0 ? [await examinePublishedKeys(setup, ring, systemClock())] : []
    const before = systemClock()
    const { findings, response } = await examineProxy(setup, reference)
    const at = response && httpInstant(headerOf(response, 'date') ?? '')
    const clock = at === undefined ? [] : [compareClocks('the issuer', { before, at, after: systemClock() })]
    return [...keys, ...findings, ...clock]
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    const some = problem`issuer: responds to some requests only
      expected  a response to every request
      found  ${error.message} (${error.code})
      change  look at the log of the proxy; it passes requests on to ${upstreamOf(setup)}`
    return [some]
  }
}
