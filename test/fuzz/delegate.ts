import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { redeemCode } from '../../src/domain/authorization-code.ts'
import { parseAuthorizationRequest, resolveRedirectUri } from '../../src/domain/authorization-request.ts'
import { createGroup } from '../../src/domain/group.ts'
import { openHandle } from '../../src/domain/handle.ts'
import type { Deps } from '../../src/feature/deps.ts'
import { describeService } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { beginSession } from '../../src/users/rules/session.ts'

/** A user who administers the members of a group, and reads only: the users of a world stay as they are. */
export interface Delegate {
  readonly token: string
  readonly memberId: string
  /** The users and groups that they cannot see. */
  readonly hidden: readonly [string, ...string[]]
  readonly groupId: string
}

/** Makes bob the administrator of a group with alice, and gets an access token for him. */
export async function addDelegate(
  app: FastifyInstance,
  { config, store, keys, clock, random }: Deps,
  clientId: string,
): Promise<Delegate> {
  const [client, ...users] = await Promise.all([
    store.find('client', clientId),
    ...['alice', 'bob', 'carol'].map((login) => store.find('userByLogin', login)),
  ])
  const [alice, bob, carol] = users
  if (!client || !alice || !bob || !carol) throw new Error('a world has this client and these users')
  const now = clock()
  const operator = { by: 'operator', at: now } as const
  const make = (name: string, administratorsId?: string) =>
    changeGroups(store, (all) => createGroup(all, { name, administratorsId }, random(16), operator))
  const leads = await make('leads')
  const school = await make('school', leads.id)
  const others = await make('others')
  await addToGroup(store, leads, bob.id, operator)
  await addToGroup(store, school, alice.id, operator)
  await addToGroup(store, others, carol.id, operator)

  const service = describeService(config, declared)
  const [redirectUri = ''] = client.redirectUris
  const codeVerifier = random(32).toString('base64url')
  const parameters = {
    response_type: 'code',
    code_challenge: hash('sha256', codeVerifier, 'base64url'),
    code_challenge_method: 'S256',
    scope: 'openid admin:users:read',
  }
  const redirect = resolveRedirectUri({ redirect_uri: redirectUri }, client)
  const asked = parseAuthorizationRequest(parameters, client, redirect, service, undefined)
  const session = beginSession('', bob.id, ['pwd'], config.lifetimes, now)
  const { grant, code } = await app.approve(asked, client, session, asked.scope, now)
  const handle = openHandle(keys.handles, code, 'code')
  if (handle === undefined) throw new Error('a code just made can be opened')
  await store.write({ op: 'insertGrant', grant })
  const redemption = { handle, client, redirectUri, codeVerifier, resource: asked.resource }
  const issued = await store.transact('grant', grant.id, (found) =>
    redeemCode(found, redemption, service, config.lifetimes, now),
  )
  const { access_token: token } = await app.issueTokens(issued, { client, now, confirmation: undefined })
  return { token, memberId: alice.id, hidden: [bob.id, carol.id, leads.id, others.id], groupId: school.id }
}
