import { Type } from '@sinclair/typebox'
import { securityFor } from '../../http/openapi.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import type { AdminScope } from '../operations/api-scopes.ts'
import type { Operation } from '../operations/operation.ts'

const errors = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [status, ErrorResponse]))

const ifMatch = Type.Optional(Type.String({ description: 'The ETag of what is changed. Required.' }))
const idempotencyKey = Type.Optional(
  Type.String({
    description: 'The same request with the same key changes nothing, and gets the same response.',
  }),
)
const auditFile = Type.Optional(
  Type.String({
    description: 'The file that the change comes from, percent-encoded: the audit log names it.',
  }),
)

/** What the schema of an operation follows from. */
type Described = Pick<Operation, 'operationId' | 'summary' | 'kind' | 'response' | 'querystring' | 'body'> & {
  readonly delegates?: boolean
  readonly scope: AdminScope
  /** The names of the parts of its path. */
  readonly ids: readonly string[]
}

const forDelegates = 'Administrators of a group may call it, for its members.'

/** Returns the schema of an operation: its kind says which headers it reads, and with which statuses it responds. */
export function operationSchema({
  operationId,
  summary,
  scope,
  kind,
  response,
  ids,
  querystring,
  body,
  delegates = false,
}: Described) {
  const isWrite = kind !== 'list' && kind !== 'read'
  const isConditional = kind === 'change' || kind === 'delete'
  const isPost = kind === 'create' || kind === 'act'
  const success = { list: 200, read: 200, create: 201, change: 200, delete: 204, end: 204, act: 200 }[kind]
  return {
    operationId,
    tags: ['admin'],
    summary,
    ...(delegates && { description: forDelegates }),
    security: [...securityFor(scope)],
    ...(ids.length > 0 && {
      params: Type.Object(Object.fromEntries(ids.map((name) => [name, Type.String()]))),
    }),
    ...(querystring && { querystring }),
    ...(body && { body }),
    ...(isWrite && {
      headers: Type.Object(
        {
          ...(isConditional && { 'if-match': ifMatch }),
          ...(isPost && { 'idempotency-key': idempotencyKey }),
          'audit-file': auditFile,
        },
        { additionalProperties: true },
      ),
    }),
    response: {
      [success]: success === 204 ? { type: 'null', description: 'It is deleted.' } : response,
      ...errors(401, 403, 429, 503),
      ...(kind === 'list' && errors(400)),
      ...(ids.length > 0 && errors(404)),
      ...(isWrite && errors(400, 409)),
      ...(isConditional && errors(412, 428)),
      ...(body && badBody),
      ...(isPost && errors(422)),
    },
  }
}
