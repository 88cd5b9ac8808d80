import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { withWrites } from '../../domain/decision.ts'
import { keyAlgorithms } from '../../domain/key-term.ts'
import type { StoredKey } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { keyPolicy } from '../../keys/key-policy.ts'
import { describeKey, retireKey, retirementNeeds, rotateKeys, rotationNeeds } from '../../keys/rules.ts'
import { requireFound } from '../operations/rules.ts'
import { KeyResource, Keys } from '../operations/schema.ts'
import { operationsOf } from './operation.ts'

const NewSuccessors = Type.Object(
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

/** `/keys`: list, rotate and retire. */
export const keyResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, keys, clock } = deps
  const { read, act } = operationsOf(app, deps, 'keys')
  const policy = keyPolicy(config)
  const describeAll = (some: readonly StoredKey[], ring: readonly StoredKey[]) =>
    some.map((key) => describeKey(key, ring, clock()))

  read(
    '/keys',
    { operationId: 'listKeys', summary: 'List every key, oldest first', response: Keys },
    async () => {
      const ring = await store.list('key')
      return { body: { items: describeAll(ring, ring) } }
    },
  )
  act(
    '/keys/rotate',
    {
      operationId: 'rotateKeys',
      summary: 'Add a successor for each key; tokens stay valid',
      response: Keys,
      body: NewSuccessors,
    },
    async ({ body: { algorithms = keyAlgorithms, now: isNow = false }, context, requireMay }, keep) => {
      const at = isNow ? 'once' : 'published'
      const respond = (ring: readonly StoredKey[]) => {
        const rotated = ring.filter(({ algorithm }) => algorithms.includes(algorithm))
        return { status: 200, body: { items: describeAll(rotated, ring) }, headers: {} }
      }
      const ring = await keys.change(
        {
          needs: (current, now) => rotationNeeds(current, algorithms, now),
          decide: (current, fresh, now) => {
            const decision = rotateKeys(current, { algorithms, at }, fresh, policy, now)
            if ('rejection' in decision) return decision
            return withWrites(decision, ...requireMay({}), ...keep(respond(decision.result)))
          },
        },
        context,
      )
      return respond(ring)
    },
  )
  act(
    '/keys/:kid/retire',
    {
      operationId: 'retireKey',
      summary: 'Retire a key at once, which invalidates what it signed or sealed',
      response: KeyResource,
    },
    async ({ param, context, requireMay }, keep) => {
      const kid = param('kid')
      const before = await store.list('key')
      const key = requireFound(
        before.find(({ id }) => id === kid),
        'key',
      )
      const retired = { ...key, retiredAt: context.at }
      const kept = { status: 200, body: describeKey(retired, before, clock()), headers: {} }
      const done = await keys.change(
        {
          needs: (current, now) => retirementNeeds(current, kid, now),
          decide: (current, fresh, now) => {
            const decision = retireKey(current, kid, fresh, policy, now)
            const isRetired = 'result' in decision && decision.result !== undefined
            return isRetired ? withWrites(decision, ...requireMay({}), ...keep(kept)) : decision
          },
        },
        context,
      )
      requireFound(done, 'key that is not retired')
      return kept
    },
  )
}
