/** What is known of well-known apps: `src/clients/recipes/`, a file an app. */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Client } from '../domain/model.ts'
import { assetNames, readTextAsset } from '../system/assets.ts'
import { coreMembers, type OperatorClientMembers } from './core-members.ts'
import { rejection } from './members.ts'

/** What a recipe may set. The rest of a client is left to the operator: who may use it, and whether they are asked. */
const settable = [
  'client_name',
  'redirect_uris',
  'post_logout_redirect_uris',
  'any_redirect_scheme',
  'token_endpoint_auth_method',
  'grant_types',
  'scope',
  'id_token_claims',
  'pkce',
] as const

const { client_name: name, redirect_uris: redirects, scope, ...optional } = coreMembers
const rest = Object.fromEntries(
  settable.flatMap((key) => (key in optional ? [[key, Type.Optional(coreMembers[key].schema)]] : [])),
)
/** What is asked before a client has it. */
const weak = [
  [
    'pkce',
    'optional',
    'PKCE is optional: the app does not send it, and anyone with its secret can redeem a leaked code',
  ],
  [
    'pkce',
    'auto',
    'PKCE is optional until the app has used it once: until then anyone with its secret can redeem a leaked code',
  ],
  ['any_redirect_scheme', true, 'a redirect scheme has no dot: another app on the device can take it'],
] as const
const strict = { additionalProperties: false } as const
const texts = Type.Array(Type.String({ minLength: 1 }))

/** One recipe. `{url}` is the base URL of the app; settings also have `{issuer}`, `{client_id}` and `{client_secret}`. */
export const Recipe = Type.Object(
  {
    name: Type.String({ description: 'The name of the app.' }),
    version: Type.String({ description: 'The version of the app that it needs, or a later one.' }),
    tried: Type.Optional(
      Type.Object(
        { version: Type.String(), on: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }) },
        { ...strict, description: 'The version that signed in, and when. Absent: not tried.' },
      ),
    ),
    source: Type.Array(Type.String({ pattern: '^https://' }), { description: 'Where its facts are from.' }),
    client: Type.Object(
      { client_name: name.schema, redirect_uris: redirects.schema, scope: scope.schema, ...rest },
      { ...strict, description: 'The metadata of its client.' },
    ),
    settings: Type.Object(
      { where: Type.String(), lines: texts },
      { ...strict, description: 'What to set in the app, and where.' },
    ),
    notes: Type.Optional(texts),
  },
  { ...strict, title: 'Recipe' },
)
export type Recipe = Static<typeof Recipe>

const folder = 'src/clients/recipes'
const scopes: readonly string[] = ['openid', 'profile', 'email', 'groups', 'offline_access']

/** Names the recipes, in the order of the alphabet. */
export function recipeIds(): readonly string[] {
  return assetNames(folder)
    .map((file) => file.replace(/\.json$/, ''))
    .sort()
}

/**
 * Reads a recipe.
 * @throws {OAuthError} `invalid_client_metadata` for a name without one.
 */
export function readRecipe(id: string): Recipe {
  if (!recipeIds().includes(id))
    throw rejection(`for must be an app with a recipe: ${recipeIds().join(', ')}`, {
      received: id.slice(0, 100),
    })
  return assertRecipe(JSON.parse(readTextAsset(`${folder}/${id}.json`)))
}

/**
 * Checks that a recipe sets nothing but what a recipe may set.
 * @throws {Error} if it does: it is a fault of the file.
 */
export function assertRecipe(json: unknown): Recipe {
  if (!Value.Check(Recipe, json)) throw new Error(`recipe: ${Value.Errors(Recipe, json).First()?.message}`)
  const wide = String(json.client.scope)
    .split(' ')
    .filter((one) => !scopes.includes(one))
  if (wide.length > 0) throw new Error(`recipe: the scope ${wide} is left to the operator`)
  return json
}

/** Whether a recipe needs the base URL of the app. */
export function needsUrl({ client }: Recipe): boolean {
  return JSON.stringify(client).includes('{url}')
}

/**
 * Returns the metadata of the client of an app, with its address, at which users open it; what the operator says counts
 * more.
 * @param url The base URL of the app: an https origin.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function clientOfRecipe(
  id: string,
  url: string | undefined,
  members: OperatorClientMembers = {},
): OperatorClientMembers {
  const recipe = readRecipe(id)
  const base = needsUrl(recipe) ? originOf(url) : ''
  // `as`: the schema has members of clients only.
  const client = JSON.parse(JSON.stringify(recipe.client).replaceAll('{url}', base)) as OperatorClientMembers
  return { ...(base !== '' && { client_uri: base }), ...client, ...members }
}

/**
 * Finds the recipe of a client that an operator added, and the base URL of the app: by its redirect URIs, and where several
 * apps have such, by its name.
 */
export function recipeOf({
  origin,
  name,
  redirectUris,
}: Client): { readonly recipe: Recipe; readonly url: string | undefined } | undefined {
  if (origin !== 'integration') return undefined
  const bases = [undefined, ...new Set(redirectUris.flatMap((uri) => URL.parse(uri)?.origin ?? []))]
  const recipes = recipeIds().flatMap((id) => {
    const recipe = readRecipe(id)
    const { redirect_uris: uris } = recipe.client
    const url = bases.find((base = '') =>
      uris.every((uri: string) => redirectUris.includes(uri.replaceAll('{url}', base))),
    )
    const isIts = needsUrl(recipe)
      ? url !== undefined
      : uris.every((uri: string) => redirectUris.includes(uri))
    return isIts && uris.length > 0 ? [{ recipe, url }] : []
  })
  return recipes.length > 1 ? recipes.find(({ recipe }) => recipe.client.client_name === name) : recipes[0]
}

/** Names what a recipe asks for that makes a client weaker than another one. */
export function weaknessesOf({ client }: Recipe): readonly string[] {
  return weaknessesIn(client)
}

/** Names what of the metadata of a client makes it weaker than another one. */
export function weaknessesIn(client: object): readonly string[] {
  const has = new Map<string, unknown>(Object.entries(client))
  return weak.flatMap(([member, value, what]) => (has.get(member) === value ? [what] : []))
}

/** Returns the settings of the app, filled in. */
export function settingsOf(
  { settings }: Recipe,
  values: {
    readonly issuer: string
    readonly url?: string | undefined
    readonly client_id: string
    readonly client_secret?: string | undefined
  },
): readonly string[] {
  const known = new Map(Object.entries(values))
  return settings.lines.map((line) =>
    line.replaceAll(/\{(issuer|url|client_id|client_secret)\}/g, (shown, key) => known.get(key) ?? shown),
  )
}

/** The text decides: it becomes a part of redirect URIs, which are compared as text. */
function originOf(url = ''): string {
  const origin = url.replace(/\/$/, '')
  if (URL.parse(origin)?.origin === origin && origin.startsWith('https://')) return origin
  throw rejection('url must be the https address of the app without a path, such as https://app.example.com')
}
