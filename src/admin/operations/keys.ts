import { type Static, Type } from '@sinclair/typebox'
import { withWrites } from '../../domain/decision.ts'
import { keyAlgorithms } from '../../domain/key-term.ts'
import type { StoredKey } from '../../domain/model.ts'
import { keyPolicy } from '../../keys/key-policy.ts'
import { describeKey, retireKey, retirementNeeds, rotateKeys, rotationNeeds } from '../../keys/rules.ts'
import type { Call, Operation } from './operation.ts'
import { requireFound } from './rules.ts'
import { KeyResource, Keys } from './schema.ts'

const KeyRotation = Type.Object(
  {
    algorithms: Type.Optional(
      Type.Array(Type.Unsafe<(typeof keyAlgorithms)[number]>({ type: 'string', enum: [...keyAlgorithms] }), {
        minItems: 1,
        description: 'Only keys of these algorithms; absent: all. HS256 seals codes and tokens.',
      }),
    ),
    now: Type.Optional(
      Type.Boolean({
        description: 'true: the successors sign at once, and clients with a cached key set may reject them.',
      }),
    ),
  },
  { title: 'KeyRotation', additionalProperties: false },
)

const common = { area: 'keys', delegates: false } as const

export const listKeys: Operation = {
  ...common,
  operationId: 'listKeys',
  kind: 'read',
  url: '/keys',
  summary: 'List every key, oldest first',
  response: Keys,
  perform: async (call) => {
    const ring = await call.deps.store.list('key')
    return { body: { items: describeAll(call, ring, ring) } }
  },
}

export const rotateServerKeys: Operation<Static<typeof KeyRotation>> = {
  ...common,
  operationId: 'rotateKeys',
  kind: 'act',
  url: '/keys/rotate',
  summary: 'Add a successor for each key; tokens stay valid',
  response: Keys,
  body: KeyRotation,
  async perform(call, keep) {
    const { algorithms = keyAlgorithms, now: isNow = false } = call.body
    const at = isNow ? 'once' : 'published'
    const respond = (ring: readonly StoredKey[]) => {
      const rotated = ring.filter(({ algorithm }) => algorithms.includes(algorithm))
      return { status: 200, body: { items: describeAll(call, rotated, ring) }, headers: {} }
    }
    const keys = await call.server.openKeys()
    const ring = await keys.change(
      {
        needs: (current, now) => rotationNeeds(current, algorithms, now),
        decide: (current, fresh, now) => {
          const policy = keyPolicy(call.deps.config)
          const decision = rotateKeys(current, { algorithms, at }, fresh, policy, now)
          if ('rejection' in decision) return decision
          return withWrites(decision, ...call.requireMay({}), ...keep(respond(decision.result)))
        },
      },
      call.context,
    )
    return respond(ring)
  },
}

export const retireServerKey: Operation = {
  ...common,
  operationId: 'retireKey',
  kind: 'act',
  url: '/keys/:kid/retire',
  summary: 'Retire a key at once, which invalidates what it signed or sealed',
  response: KeyResource,
  async perform(call, keep) {
    const { deps, context, param } = call
    const kid = param('kid')
    const before = await deps.store.list('key')
    const key = requireFound(
      before.find(({ id }) => id === kid),
      'key',
    )
    const [body] = describeAll(call, [{ ...key, retiredAt: context.at }], before)
    const result = { status: 200, body: body ?? {}, headers: {} }
    const keys = await call.server.openKeys()
    const done = await keys.change(
      {
        needs: (current, now) => retirementNeeds(current, kid, now),
        decide: (current, fresh, now) => {
          const decision = retireKey(current, kid, fresh, keyPolicy(deps.config), now)
          const isRetired = 'result' in decision && decision.result !== undefined
          return isRetired ? withWrites(decision, ...call.requireMay({}), ...keep(result)) : decision
        },
      },
      context,
    )
    requireFound(done, 'key that is not retired')
    return result
  },
}

function describeAll({ deps }: Call<unknown>, some: readonly StoredKey[], ring: readonly StoredKey[]) {
  return some.map((key) => describeKey(key, ring, deps.clock()))
}
