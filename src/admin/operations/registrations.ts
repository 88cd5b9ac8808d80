import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { membersByToken } from '../../clients/core-members.ts'
import { assertText } from '../../clients/members.ts'
import { auditEvent } from '../../domain/audit.ts'
import { insert, remove } from '../../domain/decision.ts'
import {
  describeInitialToken,
  type InitialToken,
  initialTokenKind,
  mintInitialToken,
  nameOfToken,
} from '../../domain/initial-token.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { Declared } from '../../feature/deps.ts'
import type { Call, Operation, Page, Typed } from './operation.ts'
import { requireFound } from './rules.ts'
import { listQuery, nothing, pageOf, TokenResource } from './schema.ts'
import { pageOfWalk } from './walk.ts'

const tokenMembers = {
  name: Type.Optional(Type.String({ description: 'What it is for, in lists.' })),
  redirects: Type.Optional(
    Type.Union([Type.Literal('https'), Type.Literal('loopback')], {
      description: 'Which redirect URIs other than loopback ones a client may have; absent: https.',
    }),
  ),
  pkce: Type.Optional(
    Type.Union([Type.Literal('required'), Type.Literal('optional')], {
      description: 'Whether PKCE is required, optional for confidential clients only; absent: required.',
    }),
  ),
  uses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description: 'How many clients may register with it; absent: 1.',
    }),
  ),
  expires_in: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31_536_000,
      description: 'How long it may be used, in seconds; absent: 30 days.',
    }),
  ),
}
type NewToken = Static<ReturnType<typeof Type.Object<typeof tokenMembers>>>

/** What an operator does with initial access tokens, RFC 7591 §3. */
export function registrationOperations(declared: Declared) {
  const common = { area: 'clients', delegates: false, response: TokenResource } as const
  const extraMembers: Readonly<Record<string, TSchema>> = Object.fromEntries(
    Object.entries(membersByToken(declared)).map(([name, { schema }]) => [name, Type.Optional(schema)]),
  )
  const body = Type.Object(
    { ...tokenMembers, ...extraMembers },
    { title: 'NewRegistrationToken', additionalProperties: false },
  )

  const create: Operation<NewToken> = {
    ...common,
    operationId: 'createRegistrationToken',
    kind: 'create',
    url: '/registration-tokens',
    personalTokens: 'rejected',
    summary: 'Create an initial access token, RFC 7591 section 3; it is shown once',
    body: body as unknown as Typed<NewToken>, // with the members of features
    async perform({ body, context, deps, address, store }, keep) {
      const {
        name,
        redirects = 'https',
        pkce = 'required',
        uses = 1,
        expires_in: seconds = 2_592_000,
        ...extra
      } = body
      if (name !== undefined) assertText(name, 'name')
      const terms = {
        ...{ redirects, pkce, uses },
        ...omitUndefined({ name, extra: Object.keys(extra).length === 0 ? undefined : extra }),
      }
      const { token, record } = mintInitialToken(terms, deps.random(secretBytes), seconds, context.at)
      const id = nameOfToken(record)
      const facts = { token: id, redirects, uses, expires: record.expiresAt }
      const result = {
        status: 201,
        body: describeInitialToken(record),
        headers: { location: `${address}/${id}` },
      }
      const event = auditEvent('registration-token-made', context, facts)
      await store.write(insert(initialTokenKind, record), event, ...keep(result))
      return { ...result, body: { ...result.body, initial_access_token: token } }
    },
  }
  return {
    list: {
      ...common,
      operationId: 'listRegistrationTokens',
      kind: 'list',
      url: '/registration-tokens',
      summary: 'List the initial access tokens that have not expired, in the order of their ids',
      response: pageOf(TokenResource, 'RegistrationTokens'),
      querystring: listQuery({}),
      perform: (call) => {
        const { store, clock } = call.deps
        const read = async ({ size, after }: Page) => {
          const rows = await store.listFrom(initialTokenKind, { prefix: '', after, limit: size })
          const next = rows.length < size ? undefined : rows.at(-1)?.id
          return { rows: rows.map((row) => ({ key: row.id, row })), next }
        }
        return pageOfWalk(call, read, async (row) =>
          clock() < row.expiresAt ? describeInitialToken(row) : undefined,
        )
      },
    },
    create,
    read: {
      ...common,
      operationId: 'readRegistrationToken',
      kind: 'read',
      url: '/registration-tokens/:token_id',
      summary: 'Read an initial access token',
      perform: async (call) => ({ body: describeInitialToken(await findToken(call)) }),
    },
    revoke: {
      ...common,
      operationId: 'revokeRegistrationToken',
      kind: 'end',
      url: '/registration-tokens/:token_id',
      summary: 'Revoke an initial access token; clients that registered with it stay',
      response: nothing,
      async perform(call) {
        const found = await findToken(call)
        const event = auditEvent('registration-token-revoked', call.context, { token: nameOfToken(found) })
        await call.store.write(remove(initialTokenKind, found.id), event)
        return undefined
      },
    },
  } as const satisfies Readonly<Record<string, Operation>>
}

/** The name of a token is the beginning of its key, so that it is found by that. */
async function findToken({ deps, param }: Call): Promise<InitialToken> {
  const name = param('token_id')
  const isName = /^[\w-]{12}$/.test(name)
  const [found] = isName ? await deps.store.listFrom(initialTokenKind, { prefix: name, limit: 1 }) : []
  return requireFound(found, 'registration token')
}
