import { type Static, Type } from '@sinclair/typebox'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { isSameText } from '../../domain/secret.ts'
import { isAdministrator } from '../../users/administrators.ts'
import { findAmong, lineOf, listGroups } from '../../users/groups.ts'
import {
  changeUpstream,
  createUpstream,
  deleteUpstream,
  type StoredUpstream,
  upstreamKind,
} from '../../users/rules/upstream.ts'
import { type Upstream, upstreamDefaults } from '../../users/upstream-members.ts'
import { describeUpstream, isStored, mostUpstreams, upstreamsOf } from '../../users/upstreams.ts'
import { type Call, listed, type Operation, pageOfAll } from './operation.ts'
import { describeCaller, requireFound, tagOfUpstream } from './rules.ts'
import { listQuery, nothing, pageOf } from './schema.ts'
import { ChangedUpstream, clientSecret, NewUpstream, UpstreamResource } from './upstream-schema.ts'

type Changed = Static<typeof ChangedUpstream>

const common = { area: 'upstreams', delegates: false, response: UpstreamResource } as const
const one = { ...common, url: '/upstreams/:upstream_id' } as const

export const listUpstreams: Operation = {
  ...common,
  operationId: 'listUpstreams',
  kind: 'list',
  url: '/upstreams',
  summary: 'List the upstreams of the configuration and of the store, in the order of their ids',
  response: pageOf(UpstreamResource, 'Upstreams'),
  querystring: listQuery({}),
  async perform(call) {
    const upstreams = await upstreamsOf(call.deps).list()
    const service = call.server.service()
    const keyOf = (upstream: Upstream) => upstream.id
    return listed(
      call,
      async (page) => pageOfAll(upstreams, keyOf, page),
      keyOf,
      (upstream) => describeUpstream(upstream, service),
    )
  },
}

export const readUpstream: Operation = {
  ...one,
  operationId: 'readUpstream',
  kind: 'read',
  summary: 'Read an upstream',
  async perform(call) {
    const upstream = requireFound(await upstreamsOf(call.deps).find(call.param('upstream_id')), 'upstream')
    const body = describeUpstream(upstream, call.server.service())
    return { body, ...(isStored(upstream) && { tag: tagOfUpstream(upstream) }) }
  },
}

export const addUpstream: Operation<Static<typeof NewUpstream>> = {
  ...common,
  operationId: 'createUpstream',
  kind: 'create',
  url: '/upstreams',
  summary: 'Add an upstream with which users may sign in',
  body: NewUpstream,
  taken: 'another upstream has this id or issuer',
  async perform(call, keep) {
    const { body, context, deps } = call
    const { upstream_id: id, issuer, name, client_id: clientId, client_secret: secret } = body
    const all = await upstreamsOf(deps).list()
    const isFree = all.every((other) => isStored(other) || (other.id !== id && other.issuer !== issuer))
    check(isFree, ofConfiguration, 'conflict', 'the configuration has an upstream with this id or issuer', {
      status: 409,
    })
    check(
      all.length < mostUpstreams,
      'lychgate-upstream-limit',
      'conflict',
      `there are ${mostUpstreams} upstreams already`,
      { status: 409 },
    )
    const assertMayMap = await mappingCheck(call)
    assertMayMap(body.groups ?? {})
    const sealed = await sealedSecret(call, id, secret)
    const upstream: StoredUpstream = {
      ...upstreamDefaults,
      ...settingsOf(body),
      ...{ id, name, issuer, clientId },
      ...sealed.members,
      createdAt: context.at,
      updatedAt: context.at,
    }
    const result = {
      status: 201,
      body: describeUpstream(upstream, call.server.service()),
      headers: { location: `${call.address}/${id}`, etag: tagOfUpstream(upstream) },
    }
    await call.store.write(...createUpstream(upstream, context), ...sealed.writes, ...keep(result))
    return result
  },
}

export const editUpstream: Operation<Changed> = {
  ...one,
  operationId: 'changeUpstream',
  kind: 'change',
  summary: 'Change an upstream; what is not named stays, and so do its id and issuer',
  body: ChangedUpstream,
  async perform(call) {
    const { body, context, store } = call
    const { id } = await findStored(call)
    const assertMayMap = await mappingCheck(call)
    assertMayMap(body.groups ?? {})
    const sealed = await sealedSecret(call, id, body.client_secret)
    const { name, client_id: clientId } = body
    const change = { ...omitUndefined({ name, clientId }), ...settingsOf(body), ...sealed.members }
    const changed = await store.transact(upstreamKind, id, (current) => {
      const upstream = seen(call, current)
      assertMayMap(upstream.groups)
      const decision = changeUpstream(upstream, change, context)
      return { ...decision, writes: [...decision.writes, ...sealed.writes] }
    })
    return { body: describeUpstream(changed, call.server.service()), tag: tagOfUpstream(changed) }
  },
}

export const removeUpstream: Operation = {
  ...one,
  operationId: 'deleteUpstream',
  kind: 'delete',
  summary: 'Delete an upstream; its users stay users, and what came through it ends at the next refresh',
  response: nothing,
  async perform(call) {
    const { id } = await findStored(call)
    await call.store.transact(upstreamKind, id, (current) =>
      deleteUpstream(seen(call, current), call.context),
    )
    return undefined
  },
}

const Comparison = Type.Object(
  { client_secret: clientSecret },
  { title: 'UpstreamSecret', additionalProperties: false },
)
const Compared = Type.Object(
  { upstream_id: Type.String(), matches: Type.Boolean() },
  { title: 'ComparedUpstreamSecret', additionalProperties: false },
)

export const compareUpstreamSecret: Operation<Static<typeof Comparison>> = {
  ...common,
  operationId: 'compareUpstreamSecret',
  kind: 'act',
  url: '/upstreams/:upstream_id/secret/compare',
  summary: 'Tell whether a secret is the one that this server has for an upstream',
  response: Compared,
  body: Comparison,
  async perform(call) {
    const { id, sealedSecret } = await findStored(call)
    const keys = await call.server.openKeys()
    const secret = sealedSecret === undefined ? '' : keys.unseal(sealedSecret, id).toString()
    const matches = isSameText(call.body.client_secret, secret)
    return { status: 200, body: { upstream_id: id, matches }, headers: {} }
  },
}

const ofConfiguration = 'lychgate-upstream-of-configuration'

/** Returns the upstream that the path names. @throws {OAuthError} `conflict` for one of the configuration: files win. */
async function findStored({ deps, param }: Call<unknown>): Promise<StoredUpstream> {
  const upstream = requireFound(await upstreamsOf(deps).find(param('upstream_id')), 'upstream')
  check(
    isStored(upstream),
    ofConfiguration,
    'conflict',
    'the configuration has this upstream; it is changed there',
    { status: 409 },
  )
  return upstream
}

function seen({ assertSeen }: Call<unknown>, current: StoredUpstream | undefined): StoredUpstream {
  const upstream = requireFound(current, 'upstream')
  assertSeen(tagOfUpstream(upstream), upstream)
  return upstream
}

/**
 * Returns what checks the groups that an upstream gives: it decides who is in them, so neither a client without a user
 * nor a personal token may add or change one that makes administrators.
 */
async function mappingCheck({ caller, deps }: Call<unknown>): Promise<(groups: Upstream['groups']) => void> {
  if (caller === undefined || caller.kind === 'user') return () => {}
  const groups = await listGroups(deps.store)
  const administers = (name: string) => {
    const group = findAmong(groups, name)
    // One that is added later has the name.
    return isAdministrator(group === undefined ? [{ name }] : lineOf(groups, group), deps.config.admin.group)
  }
  return (mapped) =>
    check(
      !Object.values(mapped).some(administers),
      'lychgate-admin-over-administrators',
      'access_denied',
      `${describeCaller(caller)} must not let an upstream decide who is an administrator`,
    )
}

/** Seals a secret, and requires that it is sealed as the store wants it when it is written. */
async function sealedSecret(
  { server }: Call<unknown>,
  id: string,
  secret: string | undefined,
): Promise<{ readonly members: Pick<StoredUpstream, 'sealedSecret'>; readonly writes: readonly Write[] }> {
  if (secret === undefined) return { members: {}, writes: [] }
  const keys = await server.openKeys()
  const sealedSecret = keys.seal(Buffer.from(secret), id, upstreamKind)
  return { members: { sealedSecret }, writes: [keys.requireSealedNow(sealedSecret, id)] }
}

/** The members of a body that have a default, under their names inside. */
function settingsOf(body: Changed): Partial<Upstream> {
  const {
    client_authentication: clientAuthentication,
    signing_algorithm: signingAlgorithm,
    first_sign_in: firstSignIn,
    multi_factor: multiFactor,
    groups_claim: groupsClaim,
    max_age_seconds: maxAgeSeconds,
    scope,
    domains,
    groups,
    enabled,
  } = body
  return omitUndefined({
    ...{ clientAuthentication, signingAlgorithm, scope, firstSignIn, domains, multiFactor },
    ...{ groupsClaim, groups, maxAgeSeconds, enabled },
  })
}
