/**
 * An operation is a route of the admin API only if someone decided so: who may call it is written here, and a new one is
 * named. A definition in src/admin/operations has no default for either.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'

/** The routes of the first version of the API, each with its scope, and whether administrators of groups may call it. */
const first = `
  GET /attributes admin:users:read
  GET /audit admin:audit:read
  GET /client-documents admin:clients:read
  GET /client-documents/{url} admin:clients:read
  POST /client-documents/{url}/allow admin:clients:write
  POST /client-documents/{url}/deny admin:clients:write
  POST /client-documents/{url}/refresh admin:clients:write
  GET /clients admin:clients:read
  POST /clients admin:clients:write
  GET /clients/{client_id} admin:clients:read
  DELETE /clients/{client_id} admin:clients:write
  PATCH /clients/{client_id} admin:clients:write
  PUT /clients/{client_id} admin:clients:write
  POST /clients/{client_id}/lock admin:clients:write
  POST /clients/{client_id}/revoke admin:clients:write
  POST /clients/{client_id}/secret admin:clients:write
  POST /clients/{client_id}/secret/compare admin:clients:write
  POST /clients/{client_id}/unlock admin:clients:write
  GET /deliveries/finished admin:clients:read
  GET /deliveries/pending admin:clients:read
  POST /explain admin:audit:read
  GET /grants admin:users:read delegates
  GET /grants/{grant_id} admin:users:read
  DELETE /grants/{grant_id} admin:users:write
  GET /groups admin:users:read delegates
  POST /groups admin:users:write
  GET /groups/{group_id} admin:users:read delegates
  DELETE /groups/{group_id} admin:users:write
  PATCH /groups/{group_id} admin:users:write
  GET /groups/{group_id}/members admin:users:read delegates
  POST /groups/{group_id}/members admin:users:write delegates
  DELETE /groups/{group_id}/members/{sub} admin:users:write delegates
  GET /keys admin:keys:read
  POST /keys/rotate admin:keys:write
  POST /keys/{kid}/retire admin:keys:write
  GET /openapi.json public
  GET /registration-tokens admin:clients:read
  POST /registration-tokens admin:clients:write
  GET /registration-tokens/{token_id} admin:clients:read
  DELETE /registration-tokens/{token_id} admin:clients:write
  GET /rejections admin:audit:read
  GET /rejections/{request_id} admin:audit:read
  GET /resources admin:clients:read
  GET /sessions admin:users:read delegates
  GET /settings admin:audit:read
  GET /users admin:users:read delegates
  POST /users admin:users:write delegates
  GET /users/{sub} admin:users:read delegates
  DELETE /users/{sub} admin:users:write
  PATCH /users/{sub} admin:users:write delegates
  GET /users/{sub}/grants admin:users:read delegates
  DELETE /users/{sub}/grants/{client_id} admin:users:write delegates
  GET /users/{sub}/groups admin:users:read delegates
  GET /users/{sub}/links admin:users:read
  POST /users/{sub}/links admin:users:write delegates
  DELETE /users/{sub}/links/{link_id} admin:users:write
  POST /users/{sub}/lock admin:users:write delegates
  POST /users/{sub}/password admin:users:write
  POST /users/{sub}/remove-codes admin:users:write
  POST /users/{sub}/remove-passkeys admin:users:write
  POST /users/{sub}/revoke admin:users:write delegates
  GET /users/{sub}/sessions admin:users:read delegates
  DELETE /users/{sub}/sessions/{session_id} admin:users:write delegates
  GET /users/{sub}/sign-in admin:users:read
  POST /users/{sub}/sign-out admin:users:write delegates
  POST /users/{sub}/unlock admin:users:write delegates
`

/** Those that were added later; the changelog has each. */
const added: readonly string[] = [
  'DELETE /resources/{resource} admin:clients:write',
  'DELETE /scopes/{scope} admin:clients:write',
  'PATCH /resources/{resource} admin:clients:write',
  'PATCH /scopes/{scope} admin:clients:write',
  'POST /resources admin:clients:write',
  'POST /scopes admin:clients:write',
  'GET /clients/{client_id}/preview admin:clients:read',
  'GET /clients/{client_id}/rejection admin:clients:read',
  'GET /factors admin:users:read',
  'GET /recipes admin:clients:read',
  'GET /resources/{resource} admin:clients:read',
  'GET /scopes admin:clients:read',
  'GET /scopes/{scope} admin:clients:read',
  'GET /sessions/{session_id} admin:users:read',
  'DELETE /users/{sub}/personal-tokens/{token_id} admin:users:write',
  'GET /upstreams admin:upstreams:read',
  'POST /upstreams admin:upstreams:write',
  'GET /upstreams/{upstream_id} admin:upstreams:read',
  'PATCH /upstreams/{upstream_id} admin:upstreams:write',
  'DELETE /upstreams/{upstream_id} admin:upstreams:write',
  'POST /upstreams/{upstream_id}/secret/compare admin:upstreams:write',
  'GET /users/{sub}/access/{client_id} admin:audit:read',
  'GET /users/{sub}/personal-tokens admin:users:read',
  'GET /users/{sub}/personal-tokens/{token_id} admin:users:read',
  'POST /clients/{client_id}/profile admin:clients:write',
  'POST /invitations admin:users:write',
  'POST /users/{sub}/personal-tokens admin:users:write',
  'POST /users/{sub}/test-email admin:users:write',
]

t.test('the admin API has the routes that were decided, for the callers that were decided', async (t) => {
  const text = readFileSync(new URL('../../openapi/admin.json', import.meta.url), 'utf8')
  // `as`: the description that the server generates.
  const { paths } = JSON.parse(text) as {
    paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  }
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, description = '' }]) => {
      const scopes = security.flatMap((one) => Object.values(one)).flat()
      const scope = scopes[0] ?? 'public'
      const delegates = description.includes('Administrators of a group') ? ['delegates'] : []
      return [method.toUpperCase(), path.replace('/api/admin/v1', ''), scope, ...delegates].join(' ')
    }),
  )
  const decided = first
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  t.strictSame(routes.toSorted(), [...decided, ...added].toSorted())
})

interface Described {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly description?: string
}
