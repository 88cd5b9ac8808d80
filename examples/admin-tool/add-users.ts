/**
 * Adds the users of a CSV file to a group through the admin API, and prints the link of each new one. Run again, it
 * changes nothing. `admin-api.ts` has the types of the API: `npm run types` makes it from the description that the server
 * publishes at /api/admin/v1/openapi.json.
 */
import { readFileSync } from 'node:fs'
import createClient from 'openapi-fetch'
import { allowInsecureRequests, ClientSecretBasic, clientCredentialsGrant, discovery } from 'openid-client'
import type { paths } from './admin-api.ts'

const { ISSUER = 'http://localhost:9400', CLIENT_ID = '', CLIENT_SECRET = '' } = process.env
const [file = '', groupName = ''] = process.argv.slice(2)
if (groupName === '') throw new Error('usage: add-users.ts FILE.csv GROUP')

const issuer = new URL(ISSUER)
const config = await discovery(issuer, CLIENT_ID, undefined, ClientSecretBasic(CLIENT_SECRET), {
  // Only for an issuer on this computer.
  execute: issuer.protocol === 'http:' ? [allowInsecureRequests] : [],
})
const { access_token: token } = await clientCredentialsGrant(config)
const api = createClient<paths>({ baseUrl: ISSUER, headers: { authorization: `Bearer ${token}` } })

/** The body of a response. An error describes what is wrong, and a challenge names the scope that is missing. */
function bodyOf<T>({
  data,
  error,
  response,
}: {
  data?: T
  error?: { error_description: string }
  response: Response
}): T {
  if (data !== undefined) return data
  const challenge = response.headers.get('www-authenticate') ?? ''
  throw new Error(`${response.status} ${error?.error_description} ${challenge}`)
}

const found = bodyOf(await api.GET('/api/admin/v1/groups', { params: { query: { name: groupName } } }))
const group = found.items[0] ?? bodyOf(await api.POST('/api/admin/v1/groups', { body: { name: groupName } }))

for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
  const [email = '', name] = line.split(',').map((field) => field.trim())
  const { items } = bodyOf(await api.GET('/api/admin/v1/users', { params: { query: { login: email } } }))
  const sub = items[0]?.sub ?? (await invite(email, name))
  const path = { group_id: group.group_id }
  bodyOf(await api.POST('/api/admin/v1/groups/{group_id}/members', { params: { path }, body: { sub } }))
}

async function invite(email: string, name: string | undefined): Promise<string> {
  // The key makes it safe to send the request again after a lost response.
  const header = { 'idempotency-key': `${groupName}/${email}` }
  const body = { email, send: false, ...(name && { claims: { name } }) }
  const user = bodyOf(await api.POST('/api/admin/v1/users', { params: { header }, body }))
  console.log(`${email}  ${user.invitation?.link ?? ''}`)
  return user.sub
}

// A list comes in pages: each names where the next one begins.
let after: string | undefined
let members = 0
do {
  const query = after === undefined ? {} : { after }
  const page = bodyOf(
    await api.GET('/api/admin/v1/groups/{group_id}/members', {
      params: { path: { group_id: group.group_id }, query },
    }),
  )
  members += page.items.length
  after = page.next
} while (after !== undefined)
console.log(`${groupName} has ${members} members`)
