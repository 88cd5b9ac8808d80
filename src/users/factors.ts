import { availableAcrs, type Factors, lacksAcr } from '../domain/authentication-context.ts'
import type { Seconds, Session, SignInRequest, User, UserCredentials } from '../domain/model.ts'
import type { Service } from '../feature/service.ts'
import type { Store, UserRead } from '../storage/store.ts'
import { passkeyKind } from './rules/passkey.ts'
import { type PersonalToken, personalTokenKind } from './rules/personal-token.ts'
import { secondFactorKind } from './rules/second-factor.ts'
import { failuresOf, rowKeys, throttleKind } from './rules/throttle.ts'
import { upstreamLinkKind, type WaysToSignIn } from './rules/upstream-link.ts'

/** A user with everything that signs them in, by user id. Decisions about a user's credentials wait for each other. */
export const userCredentials: UserRead<UserCredentials> = {
  name: 'userCredentials',
  kinds: [passkeyKind, secondFactorKind],
  compose: (user, sessions, recordsOf) => {
    const [secondFactor] = recordsOf(secondFactorKind)
    return {
      user,
      passkeys: recordsOf(passkeyKind),
      ...(secondFactor !== undefined && { secondFactor }),
      sessions,
    }
  },
}

/** What signs a user in without a second step, by user id. Decisions about it wait for the others about the user. */
export const waysToSignIn: UserRead<WaysToSignIn> = {
  name: 'waysToSignIn',
  kinds: [passkeyKind, upstreamLinkKind],
  compose: (user, _sessions, recordsOf) => ({
    user,
    passkeys: recordsOf(passkeyKind),
    links: recordsOf(upstreamLinkKind),
  }),
}

/** A user with their personal tokens, by user id. A lock of the user and a new token wait for each other. */
export const userPersonalTokens: UserRead<{
  readonly user: User
  readonly tokens: readonly PersonalToken[]
}> = {
  name: 'userPersonalTokens',
  kinds: [personalTokenKind],
  compose: (user, _sessions, recordsOf) => ({ user, tokens: recordsOf(personalTokenKind) }),
}

/** Where a user's ways to sign in are found. */
export interface FactorSources {
  readonly store: Pick<Store, 'find' | 'listOf'>
  readonly service: Pick<Service, 'relyingParty'>
}

/** What a user can show at a sign-in; codes count from the first that was shown, passkeys where they work. */
export async function factorsOf(sources: FactorSources, userId: string): Promise<Factors> {
  const { passkeys, ...factors } = await countFactors(sources, userId)
  return { ...factors, passkey: passkeys > 0 }
}

/** Returns the same with the number of passkeys. */
export async function countFactors({ store, service }: FactorSources, userId: string) {
  const [user, secondFactor, passkeys] = await Promise.all([
    store.find('user', userId),
    store.find(secondFactorKind, userId),
    service.relyingParty === undefined ? [] : store.listOf(passkeyKind, userId),
  ])
  return {
    password: user?.passwordHash !== undefined,
    codes: secondFactor?.confirmedAt !== undefined,
    passkeys: passkeys.length,
  }
}

/** Returns the context classes the user can step up to; looked up only if the session satisfies none requested. */
export async function loadAvailableAcrs(
  sources: FactorSources,
  { acr }: SignInRequest,
  session: Session | undefined,
): Promise<readonly string[]> {
  if (session === undefined || !lacksAcr(session.methods, acr)) return []
  return availableAcrs(await factorsOf(sources, session.userId))
}

/** Returns how many failures of a user are counted now: the highest count of a password or a code. */
export async function countFailures(
  store: Pick<Store, 'find' | 'listFrom'>,
  userId: string,
  now: Seconds,
): Promise<number> {
  const [inWindows, ...rows] = await Promise.all([
    store.listFrom(throttleKind, { prefix: failuresOf(userId), limit: mostCounters }),
    ...Object.values(rowKeys(userId)).map((key) => store.find(throttleKind, key)),
  ])
  const open = [...inWindows, ...rows].filter((one) => one !== undefined && now < one.expiresAt)
  return Math.max(0, ...open.map((one) => one?.failures ?? 0))
}

/** Counters of one user that are read: one for each network, within a window. */
const mostCounters = 1000

/** Describes to an operator a user's ways to sign in other than a password, and their recent failures. */
export async function describeSignIn(store: FactorSources['store'], userId: string) {
  const [factor, passkeys, ...rows] = await Promise.all([
    store.find(secondFactorKind, userId),
    store.listOf(passkeyKind, userId),
    ...Object.values(rowKeys(userId)).map((key) => store.find(throttleKind, key)),
  ])
  return {
    second_factor: factor?.confirmedAt !== undefined,
    passkeys: passkeys.length,
    /** The highest count: of passwords or codes, in known or unknown browsers. */
    failures_in_a_row: Math.max(...rows.map((row) => row?.failures ?? 0)),
  }
}
