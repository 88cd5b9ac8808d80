import { type TSchema, Type } from '@sinclair/typebox'
import { securityFor } from '../http/openapi.ts'
import { badBody, ErrorResponse } from '../http/schema.ts'
import type { AdminScope } from './scopes.ts'

const open = { additionalProperties: true } as const
const closed = { additionalProperties: false } as const
const errors = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [status, ErrorResponse]))

/** A user as operators see them. */
export const UserResource = Type.Object(
  {
    sub: Type.String(),
    username: Type.String(),
    seeded: Type.Boolean({ description: 'A development server made the user.' }),
    created_at: Type.Integer(),
    has_password: Type.Boolean(),
    locked_at: Type.Optional(Type.Integer()),
    claims: Type.Object({}, { ...open, description: 'Standard claims, OpenID Connect Core §5.1.' }),
  },
  { title: 'User', ...closed },
)

/** The link of an invitation, or the address to which it was sent. */
const Invitation = Type.Object(
  {
    sent_to: Type.Optional(Type.String()),
    link: Type.Optional(Type.String({ description: 'Works once, for anyone who has it. It is shown once.' })),
    expires_at: Type.Integer(),
  },
  { title: 'Invitation', ...closed },
)

/** A user with an invitation, as the response to its creation. */
export const InvitedUser = Type.Object(
  { ...UserResource.properties, invitation: Type.Optional(Invitation) },
  { title: 'InvitedUser', ...closed },
)

/** A client as operators see it: RFC 7591 metadata, and what an operator decides. */
export const ClientResource = Type.Object(
  { client_id: Type.String(), origin: Type.String() },
  { title: 'Client', description: 'Client metadata, RFC 7591 §2, and what an operator decides.', ...open },
)

/** The secret of a client, in the only response that has it. */
export const ClientSecret = Type.Object(
  {
    client_id: Type.String(),
    client_secret: Type.Optional(Type.String({ description: 'It is shown once, and stored as a hash.' })),
    previous_secret_expires_at: Type.Optional(Type.Integer()),
  },
  { title: 'ClientSecret', ...closed },
)

/** A page of a list. */
export function pageOf(item: TSchema, title: string) {
  return Type.Object(
    {
      items: Type.Array(item),
      next: Type.Optional(Type.String({ description: 'The cursor of the next page; absent on the last.' })),
    },
    { title, ...closed },
  )
}

const Limit = Type.Optional(
  Type.String({
    pattern: '^(?:[1-9]\\d?|1\\d\\d|200)$',
    description: 'At most this many, 1 to 200; default 50.',
  }),
)
const After = Type.Optional(Type.String({ description: 'The cursor `next` of the page before.' }))

/** The query of a list, with its filters. */
export function listQuery(filters: Readonly<Record<string, TSchema>>) {
  return Type.Object({ limit: Limit, after: After, ...filters }, closed)
}

const IfMatch = Type.Object(
  { 'if-match': Type.Optional(Type.String({ description: 'The ETag of what is changed. Required.' })) },
  open,
)
const IdempotencyKey = Type.Object(
  {
    'idempotency-key': Type.Optional(
      Type.String({
        description: 'The same request with the same key changes nothing, and gets the same response.',
      }),
    ),
  },
  open,
)

/** What the schema of an operation follows from. */
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly scope: AdminScope
  readonly kind: 'list' | 'read' | 'create' | 'change' | 'delete' | 'act'
  readonly response: TSchema
  readonly id?: string
  readonly querystring?: TSchema
  readonly body?: TSchema
}

/** Returns the schema of an operation: its kind says which headers it reads, and with which statuses it responds. */
export function operationSchema({
  operationId,
  summary,
  scope,
  kind,
  response,
  id,
  querystring,
  body,
}: Operation) {
  const isWrite = kind !== 'list' && kind !== 'read'
  const isConditional = kind === 'change' || kind === 'delete'
  const success = { list: 200, read: 200, create: 201, change: 200, delete: 204, act: 200 }[kind]
  return {
    operationId,
    tags: ['admin'],
    summary,
    security: [...securityFor(scope)],
    ...(id !== undefined && { params: Type.Object({ [id]: Type.String() }) }),
    ...(querystring && { querystring }),
    ...(body && { body }),
    ...(isConditional && { headers: IfMatch }),
    ...(!isConditional && isWrite && { headers: IdempotencyKey }),
    response: {
      [success]: kind === 'delete' ? { type: 'null', description: 'It is deleted.' } : response,
      ...errors(401, 403, 429, 503),
      ...(kind === 'list' && errors(400)),
      ...(id !== undefined && errors(404)),
      ...(isWrite && errors(400, 409)),
      ...(isConditional && errors(412, 428)),
      ...(body && badBody),
      ...(!isConditional && isWrite && errors(422)),
    },
  }
}
