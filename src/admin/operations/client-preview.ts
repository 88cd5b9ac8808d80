import { Type } from '@sinclair/typebox'
import { currentGrant, isLoss } from '../../domain/current-grant.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { formatScope } from '../../domain/scope.ts'
import { clientUrl, common } from './clients.ts'
import type { Operation } from './operation.ts'
import { requireFound } from './rules.ts'

const Preview = Type.Object(
  {
    client_id: Type.String(),
    sub: Type.String(),
    allowed: Type.Boolean({ description: 'Whether the user may use the client.' }),
    why: Type.Optional(Type.String({ description: 'Why it would get nothing, for any user.' })),
    scope: Type.String({ description: 'All that it may ask for.' }),
    contents: Type.Array(
      Type.Object({
        of: Type.String({ description: 'id_token, userinfo, or access_token with the API that it is for.' }),
        names: Type.Array(Type.String(), { description: 'The names of its claims.' }),
        claims: Type.Optional(
          Type.Object({}, { additionalProperties: true, description: 'If the user is the caller.' }),
        ),
      }),
    ),
  },
  { title: 'Preview', additionalProperties: false },
)

/** Computes what a client would get. Nothing is issued, stored or sent. */
export const previewClient: Operation = {
  ...common,
  operationId: 'previewClient',
  kind: 'read',
  url: `${clientUrl}/preview`,
  summary:
    'Show what a client would get for a user: claims of the caller, and only their names of another user',
  response: Preview,
  querystring: Type.Object({
    sub: Type.Optional(Type.String({ description: 'The user; absent: the user of the access token.' })),
  }),
  async perform({ deps, server, caller, context, param, query }) {
    const client = requireFound(await deps.store.find('client', param('client_id')), 'client')
    const own = caller?.kind === 'user' ? caller.sub : undefined
    const sub = query('sub') ?? own
    const user = requireFound(sub === undefined ? undefined : await deps.store.find('user', sub), 'user')
    const service = server.service()
    const grant = currentGrant(imagined(client, user.id, service, context.at), client, service)
    const about = { client_id: client.id, sub: user.id }
    if (isLoss(grant)) return { body: { ...about, allowed: false, why: grant.why, scope: '', contents: [] } }
    const { isAllowed, contents } = await server.preview({ grant, client, now: context.at })
    return {
      body: {
        ...about,
        allowed: isAllowed && user.lockedAt === undefined && client.lockedAt === undefined,
        scope: formatScope(grant.scope),
        contents: Object.entries(contents).map(([of, claims]) => ({
          of,
          names: Object.keys(claims),
          ...(user.id === own && { claims }),
        })),
      },
    }
  },
}

/** What the user would have granted; it is in no store, and has no secret of which a token could be made. */
function imagined(
  client: Client,
  userId: string,
  { issuer, openScopes }: { readonly issuer: string; readonly openScopes: ReadonlySet<string> },
  now: Seconds,
): Grant {
  const [redirectUri = ''] = client.redirectUris
  return {
    id: '',
    secret: '',
    clientId: client.id,
    userId,
    scope: client.scope ?? [...openScopes],
    resource: [issuer],
    redirectUri,
    redirectUriSent: false,
    authenticatedAt: now,
    methods: [],
    authTimeOwed: client.requireAuthTime,
    claims: { userinfo: [], idToken: [] },
    approvedAt: now,
    seq: 0,
    absoluteExpiresAt: now,
    expiresAt: now,
  }
}
