import type { Config } from '../config/schema.ts'
import type { Finding } from '../domain/finding.ts'
import { offeredAlgorithms } from '../domain/key-term.ts'
import { finishedDeliveryKind, unreachableClients } from '../domain/logout-delivery.ts'
import type { Client, Seconds } from '../domain/model.ts'
import { pkceRuleOf } from '../domain/pkce-auto.ts'
import { privateUseScheme } from '../domain/redirect-uri.ts'
import type { ClientProfile } from '../feature/deps.ts'
import type { ChallengeCount, Store, StoreFacts } from '../storage/store.ts'
import type { Clock } from '../system/system.ts'
import { setting, warning } from './finding.ts'

/** How long a client may take until it uses PKCE for the first time. */
const learningSeconds: Seconds = 30 * 86_400
/** How many clients are named. */
const mostNamed = 5

/** Profiles by their names. */
export type Profiles = readonly (readonly [name: string, profile: ClientProfile])[]

/** Yields what is weak about clients, and what of a profile they and the settings miss. */
export function* examineClients(
  config: Config,
  facts: Partial<StoreFacts>,
  profiles: Profiles,
  now: Seconds,
): Generator<Finding> {
  const { operatorClients = [], registeredClients = [], challenges = [] } = facts
  const silent = facts.unreachableClients ?? []
  const clients = [...operatorClients, ...registeredClients]
  const codes = new Map(challenges.map((count) => [count.clientId, count]))
  const countOf = ({ id }: Client) => ({ clientId: id, codes: 0, challenges: 0, ...codes.get(id) })
  const ofCount = (count: ChallengeCount) =>
    `${count.clientId} (${count.challenges} of ${count.codes} recent requests had one)`
  const lax = operatorClients.filter((client) => pkceRuleOf(client) === 'optional')
  if (lax.length > 0) {
    const counted = lax.map(countOf)
    const safe = counted.filter((count) => count.codes > 0 && count.codes === count.challenges)
    yield warning`clients: PKCE is optional for a client: an attacker can redeem a leaked code of it
      expected  required, where every recent request had a code_challenge; for an app that sends none it breaks sign-in
      found  ${named(counted, ofCount)}
      change  ${named(safe, ({ clientId }) => `lychgate client set ${clientId} --pkce required`)}
      change  ${safe.length < lax.length ? ['let each other app send code_challenge first'] : []}`
  }
  const unlearned = operatorClients.filter(
    ({ pkceAutoSince = now, pkceOptional }) => pkceOptional && now - pkceAutoSince >= learningSeconds,
  )
  if (unlearned.length > 0) {
    yield warning`clients: a client with --pkce auto has not used PKCE in 30 days: an attacker can redeem a leaked code of it
      expected  an exchange with a code_verifier, which makes PKCE required
      found  ${named(unlearned.map(countOf), ofCount)}
      change  switch PKCE on in the app; for an app that has no PKCE:
      change  ${named(unlearned, ({ id }) => `lychgate client set ${id} --pkce optional`)}`
  }
  const shared = operatorClients.flatMap(({ id, redirectUris }) => {
    const scheme = redirectUris.map(privateUseScheme).find((one) => one !== undefined && !one.includes('.'))
    return scheme === undefined ? [] : `${id}: ${scheme}`
  })
  if (shared.length > 0) {
    yield warning`clients: a redirect scheme has no dot: another app on a device can take it, and the codes sent to it
      expected  the domain of the app in reverse order, such as com.example.app:/path (RFC 8252 section 7.1)
      found  ${named(shared)}
      change  use an https redirect URI of the app, if it has one, and lychgate client set CLIENT --any-redirect-scheme false`
  }
  if (silent.length > 0) {
    yield warning`logout: a client never responds: its users stay signed in there when they sign out here
      expected  200 or 204 from its backchannel_logout_uri
      found  ${named(silent)}
      change  ${named(silent, (id) => `lychgate logout deliveries --client ${id} --failed`)}
      change  lychgate client set CLIENT --backchannel-logout-uri URL`
  }
  const offered = offeredAlgorithms(config.keys)
  const others = clients.flatMap(({ id, idTokenSignedResponseAlg: algorithm }) =>
    offered.includes(algorithm) ? [] : `${id}: ${algorithm}`,
  )
  if (others.length > 0) {
    yield warning`clients: a client registered an algorithm for its ID Tokens that is off: they are signed with another
      expected  ${offered}
      found  ${named(others)}
      change  ${setting('keys.ed25519', 'on')}
      change  lychgate client set CLIENT --id-token-alg ES256`
  }
  for (const [name, { shortcomings }] of profiles) {
    for (const { said, expected, found, setting: wanted, change = [] } of shortcomings(config, clients)) {
      const changes = [...(wanted === undefined ? [] : setting(...wanted)), ...change]
      yield warning`${`profile ${name}`}: ${said}
        expected  ${expected}
        found  ${found}
        change  ${changes}`
    }
  }
}

function named<T>(all: readonly T[], write: (one: T) => string = String): readonly string[] {
  const more = all.length - mostNamed
  return [...all.slice(0, mostNamed).map(write), ...(more > 0 ? [`and ${more} more`] : [])]
}

/** Findings about the clients of a running server, and when they were found. */
export interface ClientFindings {
  readonly at: Seconds
  readonly findings: readonly Finding[]
}

const refreshSeconds: Seconds = 300
const readAtOnce = 250
const mostRegistered = 1000
const mostDeliveries = 1000
const mostGrants = 5000

/**
 * Returns what was found last about the clients of a store, and has them examined when that is five minutes old. No
 * caller waits: clients are read a page at a time, and requests run in between.
 */
export function clientExaminer(
  {
    config,
    store,
    clock,
  }: { config: Config; store: Pick<Store, 'page' | 'listKind' | 'challenges'>; clock: Clock },
  profiles: Profiles,
): () => ClientFindings | undefined {
  let last: ClientFindings | undefined
  let isReading = false

  const listClients = async (only: Client['origin'], most = Number.POSITIVE_INFINITY) => {
    const clients: Client[] = []
    let after: number | undefined
    do {
      const rows = await store.page('client', { limit: readAtOnce, after, only })
      clients.push(...rows.map(({ row }) => row))
      after = rows.length < readAtOnce ? undefined : rows.at(-1)?.seq
      await new Promise(setImmediate)
    } while (after !== undefined && clients.length < most)
    return clients
  }
  const read = async () => {
    const page = { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostDeliveries }
    const examined = {
      operatorClients: await listClients('integration'),
      registeredClients: await listClients('registered', mostRegistered),
      challenges: await store.challenges(mostGrants),
      unreachableClients: unreachableClients(await store.listKind(finishedDeliveryKind, page)),
    }
    last = { at: clock(), findings: [...examineClients(config, examined, profiles, clock())] }
  }
  return () => {
    // A clock that was set back must not prevent it.
    const isOld = last === undefined || Math.abs(clock() - last.at) >= refreshSeconds
    if (isOld && !isReading) {
      isReading = true
      // The store reports its failures; the next look tries again.
      void read()
        .catch(() => undefined)
        .finally(() => {
          isReading = false
        })
    }
    return last
  }
}
