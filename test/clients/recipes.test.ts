/** The recipes of well-known apps: what they may set, and that what real apps send signs in with them. */
import { readdirSync, readFileSync } from 'node:fs'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { addOperatorClient } from '../../src/clients/operator-client.ts'
import {
  assertRecipe,
  clientOfRecipe,
  needsUrl,
  readRecipe,
  recipeIds,
  settingsOf,
  weaknessesOf,
} from '../../src/clients/recipes.ts'
import { insert } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { vocabularyOf } from '../../src/feature/client-vocabulary.ts'
import { declared } from '../../src/features.ts'
import { systemRandom } from '../../src/system/system.ts'
import { pkce, signInAndApprove } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const { config, store, clock } = server.deps
const known = vocabularyOf(config, declared)

/** Adds the client of a recipe. */
async function add(id: string, url: string | undefined): Promise<{ client: Client; secret: string }> {
  const fresh = { id: systemRandom(16), secret: systemRandom(32) }
  const { client, secret = '' } = addOperatorClient(clientOfRecipe(id, url), known, fresh, {
    by: 'operator',
    at: clock(),
  })
  await store.write(insert('client', client))
  return { client, secret }
}

t.test('every recipe can be added, and sets nothing that is left to the operator', async (t) => {
  t.ok(recipeIds().length >= 30, String(recipeIds().length))
  const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
  const urls = [...Object.values(metadata), `${server.issuer}/.well-known/openid-configuration`]
  for (const id of recipeIds()) {
    const recipe = readRecipe(id)
    const { client } = await add(id, 'https://app.example.com')
    t.not(client.consent, 'skip', id)
    t.notOk(client.extra?.['allowed_groups'], id)
    t.equal(client.clientUri, needsUrl(recipe) ? 'https://app.example.com' : undefined, `${id} starts there`)
    t.ok(client.scope, `${id} has a limit of scopes`)
    t.ok(
      client.redirectUris.every((uri) => !uri.includes('{')),
      id,
    )
    const credentials = { client_id: client.id, client_secret: 'its secret' }
    const lines = settingsOf(recipe, {
      issuer: server.issuer,
      url: 'https://app.example.com',
      ...credentials,
    })
    t.notMatch(lines.join('\n'), /\{(?:issuer|url|client_id|client_secret)\}/, id)
    t.match(lines.join('\n'), client.id, `${id} is told its client id`)
    const named = lines.join('\n').match(new RegExp(`${server.issuer}/[\\w./-]+`, 'g')) ?? []
    for (const url of named) t.ok(url.endsWith('/api/oauth/') || urls.includes(url), `${id} names ${url}`)
  }
})

t.test('a recipe with more than a recipe may set is a fault', async (t) => {
  const recipe = readRecipe('immich')
  const faults = [
    { consent: 'skip' },
    { allowed_groups: [] },
    { scope: 'openid admin:users:write' },
    { scope: 'openid courses:read' },
    { security_profile: 'fapi2' },
    { resources: ['https://api.example.com'] },
  ]
  for (const more of faults) {
    const wide = { ...recipe, client: { ...recipe.client, ...more } }
    t.throws(() => assertRecipe(wide), /^recipe: |Error: recipe: /, JSON.stringify(more))
  }
})

t.test('the address of an app is an https origin, and an app has a recipe', async (t) => {
  for (const url of [
    'http://photos.example.com',
    'https://photos.example.com/path',
    'https://photos.example.com?x',
    'https://user@photos.example.com',
    'https://PHOTOS.example.com',
    'photos.example.com',
    'javascript:alert(1)',
    '',
    undefined,
  ])
    t.throws(() => clientOfRecipe('immich', url), { code: 'invalid_client_metadata' }, String(url))
  t.throws(() => clientOfRecipe('../../package', 'https://a.example'), { message: /with a recipe: actual,/ })
  const asked = clientOfRecipe('immich', 'https://photos.example.com/', { scope: 'openid' })
  t.match(asked, { scope: 'openid', redirect_uris: ['https://photos.example.com/auth/login'] })
})

t.test('what a recipe weakens is named', async (t) => {
  t.match(weaknessesOf(readRecipe('gitea')), [/^PKCE is optional/])
  t.strictSame(weaknessesOf(readRecipe('immich')), [])
})

/** What an app sent, by its recipe: requests alone. */
interface Recording {
  readonly url?: string
  readonly requests: readonly {
    readonly method: string
    readonly path: string
    readonly query?: readonly (readonly [string, string])[]
    readonly form?: readonly (readonly [string, string])[]
    readonly authorization?: 'Basic' | 'Bearer'
  }[]
}

const folder = new URL('../recipes/', import.meta.url)
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const id = file.replace('.json', '')
  t.test(`what ${id} sends signs in with its recipe`, async (t) => {
    await replay(t, id, JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Recording)
  })
}

/** Sends the requests of an app, with the values that this server gave it in place of those that were recorded. */
async function replay(t: Test, id: string, { url, requests }: Recording): Promise<void> {
  const { client, secret } = await add(id, url)
  t.not(readRecipe(id).tried, undefined, 'it was tried')
  const { verifier, challenge } = pkce()
  const values = new Map([
    ['<client_id>', client.id],
    ['<secret>', secret],
    ['<verifier>', verifier],
    ['<challenge len 43>', challenge],
  ])
  const filled = (pairs: readonly (readonly [string, string])[] = []) =>
    new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, values.get(value) ?? value]))
  const agent = new UserAgent(server.issuer)
  const seen: string[] = []
  for (const { method, path, query, form, authorization } of requests) {
    const address = `${server.issuer}${path}${query === undefined ? '' : `?${filled(query)}`}`
    seen.push(path)
    if (path === '/oauth/authorize') {
      const back = await signInAndApprove(agent, await agent.open(address))
      t.equal(back.searchParams.get('error_description'), null)
      values.set('<code>', back.searchParams.get('code') ?? '')
    } else if (path === '/oauth/logout') {
      const { status } = await agent.send(address)
      t.ok(status < 400, `sign-out responds ${status}`)
    } else {
      const basic = Buffer.from(`${client.id}:${secret}`).toString('base64')
      const token = authorization === 'Basic' ? basic : values.get('<access_token>')
      const headers: Record<string, string> = authorization
        ? { authorization: `${authorization} ${token}` }
        : {}
      const response = await fetch(address, { method, headers, ...(form && { body: filled(form) }) })
      const body = await json(response)
      t.equal(response.status, 200, `${path} ${JSON.stringify(body)}`)
      for (const name of ['access_token', 'refresh_token', 'id_token'])
        if (typeof body[name] === 'string') values.set(`<${name}>`, body[name])
      if (path.endsWith('/userinfo'))
        t.match(body, { preferred_username: alice.username, email: String, name: String }, 'UserInfo')
    }
  }
  t.ok(seen.includes('/api/oauth/token'))
  t.match(decodeJwt(values.get('<id_token>') ?? ''), { aud: client.id, sub: String })
}
