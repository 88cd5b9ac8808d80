import type { FastifyInstance } from 'fastify'
import { type KeyAlgorithm, type KeyState, keyAlgorithms, stateOf } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { every, single } from '../../domain/parameters.ts'
import type { Text, Value } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { ago } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { retireServerKey, rotateServerKeys } from '../operations/keys.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt, wasFound } from './call.ts'
import { lossOf } from './key-loss.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/keys': AdminModel & {
      readonly keys: readonly {
        readonly id: string
        readonly name: Value
        readonly state: Text
        /** Absent for a retired key. */
        readonly retireUrl?: string
      }[]
      /** At which age a key gets a successor; 0: never by itself. */
      readonly rotationSeconds: Seconds
    }
    'admin/keys-rotate': AdminModel & {
      readonly algorithms: readonly {
        readonly algorithm: KeyAlgorithm
        readonly name: Value
        readonly isTicked: boolean
      }[]
      readonly isNow: boolean
      readonly aheadSeconds: Seconds
      readonly cacheSeconds: Seconds
      readonly backUrl: string
    }
  }
}

/** The keys of the server, those of an algorithm together, the newest first. */
export function keysPage(_app: FastifyInstance, { config, service, store }: PageDeps): AdminPage {
  const root = service.prefix + adminPath('keys')
  return {
    path: '/keys',
    section: 'keys',
    show: async ({ now, render }) => {
      const ring = await store.list('key')
      const inOrder = keyAlgorithms.flatMap((algorithm) =>
        ring
          .filter((key) => key.algorithm === algorithm)
          .toSorted((one, other) => other.activeAt - one.activeAt),
      )
      return render('admin/keys', {
        keys: inOrder.map((key) => {
          const state = stateOf(key, ring, now)
          return {
            id: key.id,
            name: nameOf(key.algorithm),
            state: textOf(key, state, now),
            ...(state !== 'retired' && { retireUrl: `${root}/${encodeURIComponent(key.id)}/retire` }),
          }
        }),
        rotationSeconds: config.keys.rotationSeconds,
      })
    },
  }
}

function textOf(key: StoredKey, state: KeyState, now: Seconds): Text {
  const end = key.retiredAt ?? now
  if (state === 'waiting') return msg('admin.keys.waiting', { from: { moment: key.activeAt } })
  if (state === 'active') return msg('admin.keys.active', { ago: { duration: ago(key.activeAt, now) } })
  if (state === 'retired') return msg('admin.keys.retired', { ago: { ago: ago(end, now) } })
  return msg('admin.keys.verifies', { until: { moment: end } })
}

/** Names the handle key by its purpose. */
function nameOf(algorithm: KeyAlgorithm): Value {
  return algorithm === 'HS256' ? msg('admin.keys.handle') : algorithm
}

/** Gives the keys of some algorithms a successor. */
export function keysRotatePage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service } = deps
  const show = ({ form, render }: AdminVisit, problem?: Text) => {
    const isSent = problem !== undefined || form['algorithm'] !== undefined
    return render(
      'admin/keys-rotate',
      {
        algorithms: keyAlgorithms.map((algorithm) => ({
          algorithm,
          name: nameOf(algorithm),
          isTicked: !isSent || every(form, 'algorithm').includes(algorithm),
        })),
        isNow: single(form, 'now') !== undefined,
        aheadSeconds: config.keys.publishAheadSeconds,
        cacheSeconds: config.lifetimes.metadataCacheSeconds,
        backUrl: service.prefix + adminPath('keys'),
      },
      problem,
    )
  }
  return {
    path: '/keys/rotate',
    section: 'keys',
    isForm: true,
    kept: { algorithm: undefined, now: undefined },
    repeats: ['algorithm'],
    show: (visit) => show(visit),
    submit: async (visit) => {
      const { form, done } = visit
      const algorithms = keyAlgorithms.filter((one) => every(form, 'algorithm').includes(one))
      if (algorithms.length === 0) return show(visit, msg('admin.keys.rotate.none'))
      const body = { algorithms, now: single(form, 'now') !== undefined }
      await performAt(deps, visit, rotateServerKeys, {}, body)
      return done('keys-rotated', '/keys')
    },
  }
}

/** So much of a key id is typed to confirm: the id of a signing key has 43 random characters. */
const typedLength = 8

/** Retires a key, which invalidates everything that it signed or sealed. */
export function keyRetirePage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store, clock } = deps
  const lost = async (key: StoredKey, ring: readonly StoredKey[]) => {
    const { lifetimes } = config
    const { reloadSeconds } = config.keys
    const { activeGrants } = await store.activity()
    const issued = {
      lifetimes,
      reloadSeconds,
      resources: service.allResources,
      ...(activeGrants !== undefined && { activeGrants }),
    }
    return lossOf(key, ring, clock(), issued)
  }
  return actPage<StoredKey>({
    path: '/keys/:id/retire',
    section: 'keys',
    title: msg('admin.keys.retire'),
    about: msg('admin.keys.retire.about'),
    isTyped: true,
    find: async (id) => {
      const ring = await store.list('key')
      const subject = requireFound(
        ring.find((key) => key.id === id),
        'key',
      )
      const name = id.slice(0, typedLength)
      return { subject, name, url: service.prefix + adminPath('keys'), more: await lost(subject, ring) }
    },
    perform: async ({ id }, visit) => {
      const isRetired = await wasFound(performAt(deps, visit, retireServerKey, { kid: id }))
      return visit.done(isRetired ? 'key-retired' : 'gone', '/keys')
    },
  })
}
