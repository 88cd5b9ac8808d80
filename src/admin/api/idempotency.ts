import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { check } from '../../domain/check.ts'
import { insert, put, type Write } from '../../domain/decision.ts'
import type { Seconds } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { recordKind } from '../../domain/record.ts'
import type { Needs } from '../../feature/deps.ts'
import { RecordExists } from '../../storage/store.ts'
import type { Keep, KeptResponse } from '../operations/operation.ts'
import { conflict } from '../operations/rules.ts'

/** The response to the first request with an idempotency key. */
interface FirstResponse extends KeptResponse {
  readonly id: string
  /** Of the request: another one must not have the same key. */
  readonly fingerprint: string
  readonly expiresAt: Seconds
}

const firstResponseKind = recordKind<FirstResponse>('adminResponse', {
  id: ({ id }) => id,
  userId: ({ userId }) => userId,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Does something, and returns its response. `keep` returns what to write together with the change. */
type Perform = (keep: Keep) => Promise<KeptResponse>

/**
 * Performs a request once, however often it is sent with the same `Idempotency-Key`
 * (draft-ietf-httpapi-idempotency-key-header). The key is stored in the transaction of the change, so that of two
 * requests at once one changes something, and the other gets its response.
 * @param taken What is wrong if the change meets another record without such a key.
 */
export async function once(
  request: FastifyRequest,
  reply: FastifyReply,
  { config, store, clock }: Needs<'config' | 'store' | 'clock'>,
  taken: string,
  perform: Perform,
): Promise<object> {
  const now = clock()
  const key = keyOf(request)
  const send = ({ status, body, headers }: KeptResponse) => {
    reply.code(status).headers(headers)
    return body
  }
  const { sub = '', clientId = '' } = request.access ?? {}
  const id = digest(sub, clientId, key ?? '')
  const fingerprint = digest(
    request.method,
    request.url,
    JSON.stringify(request.body ?? null, withoutPassword),
  )
  const firstResponse = key === undefined ? undefined : await store.find(firstResponseKind, id)
  const replay = (first: FirstResponse) => {
    check(
      first.fingerprint === fingerprint,
      'lychgate-admin-idempotency-key',
      'idempotency_key_reused',
      'another request had this Idempotency-Key',
      { status: 422 },
    )
    reply.header('idempotent-replayed', 'true')
    return send(first)
  }
  if (firstResponse !== undefined && firstResponse.expiresAt > now) return replay(firstResponse)
  const keep = (response: KeptResponse): readonly Write[] => {
    if (key === undefined) return []
    const expiresAt = now + config.admin.idempotencySeconds
    const first = { ...omitUndefined({ ...response }), id, fingerprint, expiresAt } as FirstResponse
    return [firstResponse === undefined ? insert(firstResponseKind, first) : put(firstResponseKind, first)]
  }
  try {
    return send(await perform(keep))
  } catch (error) {
    if (!(error instanceof RecordExists)) throw error
    const first = key === undefined ? undefined : await store.find(firstResponseKind, id)
    if (first === undefined) throw conflict(taken)
    return replay(first)
  }
}

function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  check(
    typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key),
    'lychgate-admin-idempotency-key',
    'invalid_request',
    'Idempotency-Key must have 1 to 255 visible ASCII characters',
  )
  return key
}

/** A hash of a password that is quick to compute would give it away. */
function withoutPassword(name: string, value: unknown): unknown {
  return name === 'password' ? undefined : value
}

/** JSON separates the parts. */
function digest(...parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url')
}
