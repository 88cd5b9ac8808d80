import type { Static } from '@sinclair/typebox'
import type { AccessRule } from '../../domain/access.ts'
import type { Factors } from '../../domain/authentication-context.ts'
import { check } from '../../domain/check.ts'
import { clientLocked } from '../../domain/grant.ts'
import type { Group } from '../../domain/group.ts'
import type { Client, Seconds } from '../../domain/model.ts'
import type { Declared } from '../../feature/deps.ts'
import { type Past, type PastAccess, readPastAccess } from '../../observability/past-access.ts'
import { countFactors } from '../../users/factors.ts'
import { groupsOf } from '../../users/groups.ts'
import { upstreamLinkKind } from '../../users/rules/upstream-link.ts'
import { type Call, findUser } from './operation.ts'
import { requireFound } from './rules.ts'
import type { Access } from './schema.ts'

type Line = Static<typeof Access>['rules'][number]

/**
 * Explains which rules let a user use a client, or do not. For an earlier time the facts are those of the audit log; what
 * it does not record is not known.
 */
export async function explainAccess(call: Call, accessRules: Declared['accessRules']) {
  const { deps, server, param, query } = call
  const { config, store, clock } = deps
  const now = clock()
  const user = await findUser(call)
  const client = requireFound(await store.find('client', param('client_id')), 'client')
  const at = query('at') === undefined ? now : Number(query('at'))
  check(at <= now, 'lychgate-access-past', 'invalid_request', 'at is in the future')
  const { passkeys, ...others } = await countFactors({ store, service: server.service() }, user.id)
  const isPast = query('at') !== undefined && at < now
  const upstreams = (await store.listOf(upstreamLinkKind, user.id)).length
  const present = { user, client, factors: { ...others, passkeys, upstreams } }
  const facts = isPast
    ? await pastFacts(call, present, at)
    : {
        userLocked: { value: user.lockedAt !== undefined },
        clientLocked: { value: client.lockedAt !== undefined },
        groups: { value: await groupsOf(store, user.id) },
        factors: { value: { ...others, passkey: passkeys > 0, upstream: upstreams > 0 } },
        clientFor: async () => ({ value: client }),
      }
  const rules = [
    existed('user', user.createdAt, at) ?? lockOf('user', facts.userLocked),
    existed('client', client.issuedAt, at) ?? lockOf('client', facts.clientLocked),
    waysIn(facts.factors),
    ...(await Promise.all(accessRules.map((ruleOf) => judged(ruleOf(config), facts, { at, isPast })))),
  ]
  const results = rules.map(({ result }) => result)
  const result = (['failed', 'not known'] as const).find((one) => results.includes(one)) ?? 'passed'
  return { sub: user.id, client_id: client.id, at, result, rules }
}

/** Before the log begins, nothing that can change is known. */
async function pastFacts(
  { deps: { config, store, clock } }: Call,
  present: Parameters<typeof readPastAccess>[1],
  at: Seconds,
): Promise<PastAccess> {
  const { auditSeconds } = config
  if (auditSeconds === 0 || at >= clock() - auditSeconds) return readPastAccess(store, present, at)
  const unknown = { unknown: 'the log is not kept for so long (auditSeconds)' }
  return {
    userLocked: unknown,
    clientLocked: unknown,
    groups: unknown,
    factors: unknown,
    clientFor: async () => unknown,
  }
}

function existed(about: 'user' | 'client', since: Seconds, at: Seconds): Line | undefined {
  if (at >= since) return undefined
  const rule = about === 'user' ? 'lychgate-account-locked' : clientLocked
  return { about, rule, result: 'failed', why: `the ${about} was added later` }
}

function lockOf(about: 'user' | 'client', lock: Past<boolean>): Line {
  const rule = about === 'user' ? 'lychgate-account-locked' : clientLocked
  if ('unknown' in lock) return { about, rule, result: 'not known', why: lock.unknown }
  return lock.value
    ? { about, rule, result: 'failed', why: `an operator locked the ${about}` }
    : { about, rule, result: 'passed', why: `the ${about} is not locked` }
}

function waysIn(factors: PastAccess['factors']): Line {
  const line = { about: 'factor', rule: 'rfc6749-3.1-owner-authenticated-first' }
  if ('unknown' in factors) return { ...line, result: 'not known', why: factors.unknown }
  const { password, codes, passkey, upstream } = factors.value
  const names = [
    ...[password && 'a password', codes && 'one-time codes', passkey && 'a passkey'],
    upstream && 'an upstream',
  ].filter(Boolean)
  return password || passkey || upstream
    ? { ...line, result: 'passed', why: `the user signs in with ${names.join(', ')}` }
    : { ...line, result: 'failed', why: 'the user has neither a password nor a passkey that works here' }
}

/** Judges by a rule, if all that it depends on is known. */
async function judged(
  { about, rule, ofSettings, member, judge }: AccessRule,
  { clientFor, groups, factors }: PastAccess,
  { at, isPast }: { readonly at: Seconds; readonly isPast: boolean },
): Promise<Line> {
  const client: Past<Client> = await clientFor(member)
  const parts: readonly Past<Client | Factors | readonly Group[]>[] = [client, groups, factors]
  const unknown = parts.flatMap((part) => ('unknown' in part ? part.unknown : []))
  const line = { about, rule }
  if ('unknown' in client || 'unknown' in groups || 'unknown' in factors)
    return { ...line, result: 'not known', why: [...new Set(unknown)].join('; ') }
  const { passed, why } = judge({
    client: client.value,
    groups: groups.value,
    factors: factors.value,
    now: at,
  })
  if (ofSettings && isPast) {
    const nowSays = passed ? 'passed' : 'failed'
    const settings = 'the log does not record settings and files; by those of now it'
    return { ...line, result: 'not known', why: `${settings} ${nowSays}: ${why}` }
  }
  return { ...line, result: passed ? 'passed' : 'failed', why }
}
