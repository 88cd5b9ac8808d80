import type { Config } from '../config/schema.ts'
import type { Reading, RecordReads } from '../domain/decision.ts'
import type { Store } from '../storage/store.ts'
import { readOutside } from './reading.ts'
import { membersOf, type StoredUpstream, upstreamKind } from './rules/upstream.ts'
import type { Upstream } from './upstream-members.ts'

/** An upstream as a configuration has it. */
export type ConfiguredUpstream = Upstream & { readonly clientSecretFile?: string | undefined }

/** An upstream of the configuration, or of the store. */
export type AnyUpstream = ConfiguredUpstream | StoredUpstream

/** How many there may be: the sign-in page has a button for each. */
export const mostUpstreams = 100

/** Whether users of this server may sign in elsewhere: a build without that has no such option. */
export function hasUpstreams(config: Config): config is Config & WithUpstreams {
  return 'upstreams' in config
}

interface WithUpstreams {
  readonly upstreams: readonly ConfiguredUpstream[]
}

/** Whether an upstream is one of the store, which operations change. */
export function isStored(upstream: AnyUpstream): upstream is StoredUpstream {
  return 'createdAt' in upstream
}

/** Where a user signed in: an upstream that was deleted and added again is the same one if its issuer is. */
export interface UpstreamOrigin {
  readonly id: string
  /** Absent: it was not written down then. */
  readonly issuer?: string | undefined
}

/**
 * The upstreams of a server: those of its configuration, and those of the store, except one with an id or issuer that
 * the configuration has. They are read at each use, so that a change applies at once on every node.
 */
export function upstreamsOf({
  config,
  store,
}: {
  readonly config: Config
  readonly store: Pick<Store, 'find' | 'listOf' | 'listFrom' | 'listKind'>
}) {
  const configured = hasUpstreams(config) ? config.upstreams : []
  const isHidden = (stored: StoredUpstream) =>
    configured.some(({ id, issuer }) => id === stored.id || issuer === stored.issuer)
  const read = function* (records: RecordReads, id: string): Reading<AnyUpstream | undefined> {
    const own = configured.find((upstream) => upstream.id === id)
    if (own !== undefined) return own
    const stored = yield* records.find(upstreamKind, id)
    return stored === undefined || isHidden(stored) ? undefined : stored
  }
  return {
    find: (id: string): Promise<AnyUpstream | undefined> =>
      readOutside(store, (records) => read(records, id)),
    /** Returns all: those of the configuration first, in their order there. */
    async list(): Promise<readonly AnyUpstream[]> {
      const page = { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostUpstreams }
      const stored = await store.listKind(upstreamKind, page)
      return [...configured, ...stored.filter((upstream) => !isHidden(upstream))]
    },
    /** Whether what came through an upstream may go on. */
    *isEnabled(records: RecordReads, { id, issuer }: UpstreamOrigin): Reading<boolean> {
      const upstream = yield* read(records, id)
      return upstream?.enabled === true && (issuer === undefined || issuer === upstream.issuer)
    },
  }
}

/** Returns the redirect URI of an upstream. Each has its own, RFC 9700 §4.4.2.2. */
export function redirectUriOf({ issuer }: { readonly issuer: string }, { id }: Pick<Upstream, 'id'>): string {
  return `${issuer}/login/upstream/${id}/callback`
}

/** Returns where an administrator tries an upstream in a browser. */
export function trialUrlOf({ issuer }: { readonly issuer: string }, { id }: Pick<Upstream, 'id'>): string {
  return `${issuer}/login/upstream/${id}/try`
}

/** Describes an upstream to an operator, without its secret. */
export function describeUpstream(upstream: AnyUpstream, service: { readonly issuer: string }) {
  return {
    ...membersOf(upstream),
    redirect_uri: redirectUriOf(service, upstream),
    ...(isStored(upstream)
      ? ({ source: 'store', created_at: upstream.createdAt, updated_at: upstream.updatedAt } as const)
      : ({ source: 'configuration' } as const)),
  }
}
