import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
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
import { describeDelivery, finishedDeliveryKind, logoutDeliveryKind } from '../../domain/logout-delivery.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { RecordKind } from '../../domain/record.ts'
import type { Resource } from '../../domain/resource.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { pageOfAll } from '../operations/operation.ts'
import { requireFound } from '../operations/rules.ts'
import { DeliveryResource, listQuery, pageOf, ResourceResource, TokenResource } from '../operations/schema.ts'
import { operationsOf } from './operation.ts'

const NewToken = Type.Object(
  {
    name: Type.Optional(Type.String({ description: 'What it is for, in lists.' })),
    redirects: Type.Optional(
      Type.Union([Type.Literal('https'), Type.Literal('loopback')], {
        description: 'Which redirect URIs a client may have besides loopback ones; absent: https.',
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
  },
  { title: 'NewRegistrationToken', additionalProperties: false },
)

/** `/registration-tokens`, `/deliveries` of logout tokens, and `/resources` as the configuration declares them. */
export const registrationResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { store, random, service } = deps
  const { list, read, create, end } = operationsOf(app, deps, 'clients')
  /** The name of a token is the beginning of its key, so that it is found by that. */
  const findToken = async (name: string) => {
    const isName = /^[\w-]{12}$/.test(name)
    const [found] = isName ? await store.listFrom(initialTokenKind, { prefix: name, limit: 1 }) : []
    return requireFound(found, 'registration token')
  }

  list(
    '/registration-tokens',
    {
      operationId: 'listRegistrationTokens',
      summary: 'List the initial access tokens that have not expired, in the order of their ids',
      response: pageOf(TokenResource, 'RegistrationTokens'),
      querystring: listQuery({}),
    },
    ({ size, after }) => store.listFrom(initialTokenKind, { prefix: '', after, limit: size }),
    ({ id }) => id,
    describeInitialToken,
  )
  create(
    '/registration-tokens',
    {
      operationId: 'createRegistrationToken',
      summary: 'Create an initial access token, RFC 7591 section 3; it is shown once',
      response: TokenResource,
      body: NewToken,
    },
    async ({ body, context, request, store: writing }, keep) => {
      const { name, redirects = 'https', pkce = 'required', uses = 1, expires_in: seconds = 2_592_000 } = body
      if (name !== undefined) assertText(name, 'name')
      const wanted = { redirects, pkce, uses, ...omitUndefined({ name }) }
      const { token, record } = mintInitialToken(wanted, random(secretBytes), seconds, context.at)
      const id = nameOfToken(record)
      const facts = { token: id, redirects, uses, expires: record.expiresAt }
      const headers = { location: `${request.url}/${id}` }
      const kept = { status: 201, body: describeInitialToken(record), headers }
      const event = auditEvent('registration-token-made', context, facts)
      await writing.write(insert(initialTokenKind, record), event, ...keep(kept))
      return { ...kept, body: { ...kept.body, initial_access_token: token } }
    },
  )
  read(
    '/registration-tokens/:token_id',
    {
      operationId: 'readRegistrationToken',
      summary: 'Read an initial access token',
      response: TokenResource,
    },
    async ({ param }) => ({ body: describeInitialToken(await findToken(param('token_id'))) }),
  )
  end(
    '/registration-tokens/:token_id',
    {
      operationId: 'revokeRegistrationToken',
      summary: 'Revoke an initial access token; clients that registered with it stay',
    },
    async ({ param, context, store: writing }) => {
      const found: InitialToken = await findToken(param('token_id'))
      const event = auditEvent('registration-token-revoked', context, { token: nameOfToken(found) })
      await writing.write(remove(initialTokenKind, found.id), event)
    },
  )

  /** Adds the list of a kind of deliveries. */
  function listDeliveries<Delivery extends Parameters<typeof describeDelivery>[0]>(
    kind: RecordKind<Delivery>,
    path: 'pending' | 'finished',
    which: string,
  ): void {
    const title = path === 'pending' ? 'PendingDeliveries' : 'FinishedDeliveries'
    list(
      `/deliveries/${path}`,
      {
        operationId: `list${title}`,
        summary: `List the logout tokens ${which}, in the order of their sid`,
        response: pageOf(DeliveryResource, title),
        querystring: listQuery({}),
      },
      ({ size, after }) => store.listFrom(kind, { prefix: '', after, limit: size }),
      ({ sid }) => sid,
      describeDelivery,
    )
  }
  listDeliveries(logoutDeliveryKind, 'pending', 'still to be sent')
  listDeliveries(finishedDeliveryKind, 'finished', 'that were sent, or failed')

  list(
    '/resources',
    {
      operationId: 'listResources',
      summary:
        'List the protected resources that the configuration declares, in the order of their identifiers',
      response: pageOf(ResourceResource, 'Resources'),
      querystring: listQuery({}),
    },
    async (page) => pageOfAll(service.allResources, ({ identifier }) => identifier, page),
    ({ identifier }) => identifier,
    ({ identifier, name, scopes, tokenFormat, accessTokenSeconds }: Resource) => ({
      identifier,
      name,
      scopes: [...scopes],
      token_format: tokenFormat,
      access_token_seconds: accessTokenSeconds,
    }),
  )
}
