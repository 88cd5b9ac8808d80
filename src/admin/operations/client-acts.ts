import { type Static, Type } from '@sinclair/typebox'
import { describeClient } from '../../clients/describe.ts'
import {
  changeOperatorClient,
  lockClient,
  rotateClientSecret,
  unlockClient,
} from '../../clients/operator-client.ts'
import { withWrites } from '../../domain/decision.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { secretMatches } from '../../domain/secret.ts'
import { vocabularyOf } from '../../feature/client-vocabulary.ts'
import type { Declared } from '../../feature/deps.ts'
import { assertByOperator, clientUrl, common, describe, secretMember, taken } from './clients.ts'
import { type Operation, responding } from './operation.ts'
import { requireWithin, tagOfClient } from './rules.ts'
import { ClientSecret } from './schema.ts'

const closed = { additionalProperties: false } as const
const Rotation = Type.Object(
  {
    client_secret: Type.Optional(secretMember),
    keep_old_seconds: Type.Integer({
      minimum: 0,
      maximum: 31_536_000,
      description: 'How long the old secret is accepted, too; 0: not at all.',
    }),
  },
  { title: 'Rotation', ...closed },
)
const Comparison = Type.Object({ client_secret: secretMember }, { title: 'Comparison', ...closed })
const Compared = Type.Object(
  { client_id: Type.String(), matches: Type.Boolean() },
  { title: 'Compared', ...closed },
)
const changedMember = Type.Object({ before: Type.Unknown(), after: Type.Unknown() }, closed)
const Profiled = Type.Object(
  {
    client_id: Type.String(),
    changed: Type.Record(Type.String(), changedMember, {
      description: 'Each member that differs, as it was and as it is; null: it has none.',
    }),
  },
  { title: 'Profiled', additionalProperties: true },
)

/** What locks a client, and what ends that. */
export function clientLocks(declared: Declared) {
  const locking = (operationId: string, verb: string, summary: string, decide: typeof lockClient) =>
    ({
      ...common,
      operationId,
      kind: 'act',
      url: `${clientUrl}/${verb}`,
      summary,
      perform: (call, keep) => {
        const clientId = call.param('client_id')
        return call.store.transact('client', clientId, (found) =>
          responding(
            decide(requireWithin(found, call.caller), call.context),
            (client) => ({
              status: 200,
              body: describe(client, vocabularyOf(call.deps.config, declared)),
              headers: { etag: tagOfClient(client) },
              clientId,
            }),
            keep,
          ),
        )
      },
    }) as const satisfies Operation
  return {
    lock: locking(
      'lockClient',
      'lock',
      'Lock a client: its tokens are invalid while it is locked',
      lockClient,
    ),
    unlock: locking('unlockClient', 'unlock', 'Unlock a client', unlockClient),
  }
}

export const rotateSecret: Operation<Static<typeof Rotation>> = {
  ...common,
  operationId: 'rotateClientSecret',
  kind: 'act',
  url: `${clientUrl}/secret`,
  summary: 'Replace the secret of a client; the response has one that was made, which is shown once',
  response: ClientSecret,
  body: Rotation,
  async perform(call, keep) {
    const { keep_old_seconds: keepOld, client_secret: chosenSecret } = call.body
    const { context, caller } = call
    const clientId = call.param('client_id')
    const keepUntil = keepOld > 0 ? context.at + keepOld : undefined
    const until = omitUndefined({ previous_secret_expires_at: keepUntil })
    const result = { status: 200, body: { client_id: clientId, ...until }, headers: {}, clientId }
    const fresh = chosenSecret ?? call.deps.random(32)
    const { secret } = await call.store.transact('client', clientId, (found) =>
      withWrites(
        rotateClientSecret(requireWithin(found, caller), fresh, context, keepUntil),
        ...keep(result),
      ),
    )
    return {
      ...result,
      body: { ...result.body, ...(chosenSecret === undefined && { client_secret: secret }) },
    }
  },
}

export const compareSecret: Operation<Static<typeof Comparison>> = {
  ...common,
  operationId: 'compareClientSecret',
  kind: 'act',
  url: `${clientUrl}/secret/compare`,
  summary: 'Compare a secret with the one of a client, and change nothing',
  response: Compared,
  body: Comparison,
  async perform({ deps, param, body, caller }) {
    const { id, secretHash } = requireWithin(await deps.store.find('client', param('client_id')), caller)
    const matches = secretMatches(body.client_secret, secretHash)
    return { status: 200, body: { client_id: id, matches }, headers: {} }
  },
}

/** Brings a client in line with a profile of a feature; a server without such a feature does not have it. */
export function profileClient(declared: Declared): Operation<{ readonly profile: string }> {
  const { clientProfiles } = declared
  return {
    ...common,
    operationId: 'profileClient',
    kind: 'act',
    url: `${clientUrl}/profile`,
    summary: 'Choose the profile that a client must conform to; the response says what that changed',
    response: Profiled,
    taken,
    body: Type.Object(
      {
        profile: Type.Unsafe<string>({
          type: 'string',
          enum: [...Object.keys(clientProfiles), 'none'],
          description: 'none: no profile any more.',
        }),
      },
      { title: 'ChosenProfile', ...closed },
    ),
    async perform(call, keep) {
      const vocabulary = vocabularyOf(call.deps.config, declared)
      const clientId = call.param('client_id')
      return call.store.transact('client', clientId, (found) => {
        const client = requireWithin(found, call.caller)
        assertByOperator(client)
        const taken = Object.values(clientProfiles).map(({ take }) => take(client))
        const wanted = Object.assign({}, ...taken, clientProfiles[call.body.profile]?.put(client))
        return responding(
          changeOperatorClient(client, wanted, vocabulary, call.context),
          (after) => ({
            status: 200,
            body: {
              client_id: clientId,
              changed: differences(describeClient(client, vocabulary), describeClient(after, vocabulary)),
            },
            headers: { etag: tagOfClient(after) },
            clientId,
          }),
          keep,
        )
      })
    },
  }
}

function differences(before: object, after: object): object {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  const names = [...new Set([...old.keys(), ...now.keys()])].filter(
    (name) => JSON.stringify(old.get(name)) !== JSON.stringify(now.get(name)),
  )
  return Object.fromEntries(
    names.map((name) => [name, { before: old.get(name) ?? null, after: now.get(name) ?? null }]),
  )
}
