import { defaultUpstream } from '../../admin/operations/upstream-schema.ts'
import { CommandFailed } from '../failure.ts'
import { attempt, type Batch, membersOfNew, pruningFile, type Setting } from './plan.ts'
import { type Placed, secretOf, type Wanted } from './read.ts'
import type { UpstreamEntry } from './schema.ts'
import { differences, type State } from './state.ts'

type Entry = Placed<UpstreamEntry>

/** Plans what entries say about upstreams. */
export function planUpstreams(
  setting: Setting,
  { upstreams, otherUpstreamIds, hasSecret }: Pick<State, 'upstreams' | 'otherUpstreamIds' | 'hasSecret'>,
  entries: readonly Entry[],
): readonly Batch[] {
  const byId = new Map(upstreams.map((upstream) => [upstream.upstream_id, upstream]))
  return entries.flatMap(
    (placed) =>
      attempt(setting, placed, () => {
        if (otherUpstreamIds.has(placed.entry.upstream_id))
          throw new CommandFailed('upstream_id: the configuration of the server has this upstream, and wins')
        const before = byId.get(placed.entry.upstream_id)
        return planUpstream(setting, placed, before, hasSecret.get(placed.entry.upstream_id) === true)
      }) ?? [],
  )
}

function planUpstream(
  { target }: Setting,
  placed: Entry,
  before: UpstreamEntry | undefined,
  isSameSecret: boolean,
): Batch | [] {
  const { secret: _, secretFile: __, ...entry } = placed.entry
  const { upstream_id: id, issuer } = entry
  const secret = secretOf(placed)
  const after = { ...defaultUpstream, ...entry }
  const isSecretSent = secret !== undefined && !isSameSecret
  const sent = isSecretSent ? { client_secret: secret.text } : {}
  const shownSecret = isSecretSent ? [{ member: 'secret', after: `that of ${secret.from}` }] : []
  if (before === undefined)
    return {
      changes: [
        { action: 'add', kind: 'upstream', name: id, members: [...membersOfNew(after), ...shownSecret] },
      ],
      write: () => target.addUpstream(id, { ...after, ...sent }, placed.file),
    }
  if (before.issuer !== issuer)
    throw new CommandFailed(
      'issuer: it never changes, because users are linked to it; use another upstream_id',
    )
  const members = [...differences(before, after), ...shownSecret]
  if (members.length === 0) return []
  const { upstream_id: ___, issuer: ____, ...body } = { ...after, ...sent }
  return {
    changes: [{ action: 'change', kind: 'upstream', name: id, members }],
    write: () => target.settleUpstream(id, placed.file, body),
  }
}

/** Plans the removal of the upstreams that no entry describes. Those of the configuration stay. */
export function pruneUpstreams(
  { target }: Setting,
  upstreams: readonly UpstreamEntry[],
  entries: Wanted,
): readonly Batch[] {
  const named = new Set(entries.upstreams?.map(({ entry }) => entry.upstream_id))
  return upstreams
    .filter((upstream) => !named.has(upstream.upstream_id))
    .map(({ upstream_id: id }) => ({
      changes: [{ action: 'delete', kind: 'upstream', name: id, members: [] }],
      write: () => target.settleUpstream(id, pruningFile(entries, 'upstreams')),
    }))
}
