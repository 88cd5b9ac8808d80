import { type Static, Type } from '@sinclair/typebox'
import { check } from '../../domain/check.ts'
import { isDeceptive } from '../../domain/deceptive.ts'
import { accept, withWrites } from '../../domain/decision.ts'
import { parseScope } from '../../domain/scope.ts'
import { secretBytes } from '../../domain/secret.ts'
import { userPersonalTokens } from '../../users/factors.ts'
import {
  addPersonalToken,
  describePersonalToken,
  idOfPersonalToken,
  mintPersonalToken,
  type PersonalToken,
  personalTokenKind,
  personalTokenRule,
  personalTokenSeconds,
  revokePersonalToken,
} from '../../users/rules/personal-token.ts'
import { scopes } from './api-scopes.ts'
import { type Call, findUser, listed, type Operation, pageOfAll } from './operation.ts'
import { requireFound } from './rules.ts'
import { listQuery, nothing, PersonalTokenResource, pageOf } from './schema.ts'

const NewPersonalToken = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 60, description: 'What it is for, in lists.' }),
    scope: Type.String({ description: 'Scopes of the admin API, separated by spaces: the most it may do.' }),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: personalTokenSeconds.longest,
        description: 'How long it may be used, in seconds; absent: 90 days.',
      }),
    ),
  },
  { title: 'NewPersonalToken', additionalProperties: false },
)

const common = { area: 'users', delegates: false, response: PersonalTokenResource } as const

export const listPersonalTokens: Operation = {
  ...common,
  operationId: 'listPersonalTokens',
  kind: 'list',
  url: '/users/:sub/personal-tokens',
  summary: 'List the personal tokens of a user that have not expired',
  response: pageOf(PersonalTokenResource, 'PersonalTokens'),
  querystring: listQuery({}),
  async perform(call) {
    const { store, clock } = call.deps
    const all = await store.listOf(personalTokenKind, (await findUser(call)).id)
    const live = all.filter(({ expiresAt }) => clock() < expiresAt)
    const keyOf = ({ id }: PersonalToken) => id
    return listed(call, async (page) => pageOfAll(live, keyOf, page), keyOf, describePersonalToken)
  },
}

export const createPersonalToken: Operation<Static<typeof NewPersonalToken>> = {
  ...common,
  operationId: 'createPersonalToken',
  kind: 'create',
  url: '/users/:sub/personal-tokens',
  personalTokens: 'rejected',
  needsRecentSignIn: true,
  summary: 'Create a personal token of the caller, for the admin API alone; it is shown once',
  body: NewPersonalToken,
  async perform(call, keep) {
    const { context, deps, address, body, store } = call
    const userId = call.param('sub')
    assertOwn(call, userId)
    const { name, expires_in: seconds = personalTokenSeconds.usual } = body
    check(
      name.trim() !== '' && !isDeceptive(name),
      personalTokenRule,
      'invalid_request',
      'name must be visible, without control or invisible characters',
    )
    const scope = readScope(call)
    const described = { name: name.trim(), scope, seconds }
    const { token, record } = mintPersonalToken(described, userId, deps.random(secretBytes), context.at)
    const result = {
      status: 201,
      body: describePersonalToken(record),
      headers: { location: `${address}/${idOfPersonalToken(record)}` },
      userId,
    }
    await store.transact(userPersonalTokens, userId, (found) => {
      const { user, tokens } = requireFound(found, 'user')
      const live = tokens.filter(({ expiresAt }) => context.at < expiresAt).length
      return withWrites(addPersonalToken(user, record, live, context), ...keep(result))
    })
    return { ...result, body: { ...result.body, token } }
  },
}

export const readPersonalToken: Operation = {
  ...common,
  operationId: 'readPersonalToken',
  kind: 'read',
  url: '/users/:sub/personal-tokens/:token_id',
  summary: 'Read a personal token of a user',
  perform: async (call) => ({ body: describePersonalToken(await findToken(call)) }),
}

export const endPersonalToken: Operation = {
  ...common,
  operationId: 'revokePersonalToken',
  kind: 'end',
  url: '/users/:sub/personal-tokens/:token_id',
  personalTokens: 'rejected',
  summary: 'Revoke a personal token of a user',
  response: nothing,
  async perform(call) {
    const { id } = await findToken(call)
    await call.store.transact(personalTokenKind, id, (found) =>
      accept(undefined, ...revokePersonalToken(requireFound(found, 'personal token'), call.context)),
    )
    return undefined
  },
}

/** Administrators make tokens of their own: one of another would act in the name of that one. */
function assertOwn({ caller }: Pick<Call, 'caller'>, userId: string): void {
  check(
    caller?.kind === 'user' && caller.sub === userId,
    personalTokenRule,
    'access_denied',
    'a personal token is created by its owner, who is signed in',
  )
}

/** @throws {OAuthError} `invalid_scope`, RFC 6749 §3.3; `access_denied` for more than the caller has. */
function readScope({ body, caller }: Call<Static<typeof NewPersonalToken>>): readonly string[] {
  const scope = parseScope(body.scope)
  check(
    scope.length > 0 && scope.every((name) => Object.hasOwn(scopes, name)),
    personalTokenRule,
    'invalid_scope',
    'scope must have scopes of the admin API, and no other',
    { stored: Object.keys(scopes), received: scope },
  )
  check(
    scope.every((name) => caller?.scope?.includes(name) ?? true),
    'lychgate-admin-no-escalation',
    'access_denied',
    'the access token lacks a scope that the personal token is to have',
    { stored: caller?.scope ?? [], received: scope },
  )
  return scope
}

/** The id of a token is the beginning of its key. */
async function findToken(call: Call): Promise<PersonalToken> {
  const id = call.param('token_id')
  const all = await call.deps.store.listOf(personalTokenKind, (await findUser(call)).id)
  const token = all.find((one) => idOfPersonalToken(one) === id && call.deps.clock() < one.expiresAt)
  return requireFound(token, 'personal token')
}
