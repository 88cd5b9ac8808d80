import { Type } from '@sinclair/typebox'
import { recipeOf, settingsOf } from '../../clients/recipes.ts'
import type { Client, Rejection } from '../../domain/model.ts'
import { boundedText } from '../../http/log.ts'
import { explainRejection } from '../../observability/explain.ts'
import type { Store } from '../../storage/store.ts'
import { clientUrl } from './clients.ts'
import type { Operation } from './operation.ts'
import { requireFound } from './rules.ts'
import { RejectionResource } from './schema.ts'

const [mostRejections, atOnce] = [2000, 500]

/** Finds the last rejected request of a client among the newest ones. */
export async function lastRejectionOf(
  store: Pick<Store, 'rejections'>,
  { id }: Client,
): Promise<Rejection | undefined> {
  const client = boundedText(id)
  let before: number | undefined
  for (let read = 0; read < mostRejections; read += atOnce) {
    const rows = await store.rejections({ limit: atOnce, before })
    const found = rows.find(({ row }) => row.client === client)
    if (found !== undefined || rows.length < atOnce) return found?.row
    before = rows.at(-1)?.seq
  }
  return undefined
}

/** What would let a request of a client pass: something in the app, or about the client. */
const remedies = {
  'rfc7636-4.4.1-challenge-required': 'pkce',
  'rfc9700-2.1.1-confidential-recommended': 'pkce',
  'rfc6749-3.1.2.3-simple-string-match': 'redirect',
  'rfc6749-4.1.2.1-invalid-scope': 'scope',
  'rfc6749-5.2-invalid-client-400-or-401': 'secret',
} as const
export type Remedy = (typeof remedies)[keyof typeof remedies]

/** Returns what would let a rejected request of a client pass, if an operator can do something about it. */
export function remedyOf({ rule }: Rejection, { origin }: Client): Remedy | undefined {
  if (origin === 'registered') return undefined
  return new Map<string, Remedy>(Object.entries(remedies)).get(rule)
}

/** Returns the settings of the app that concern PKCE, from its recipe. */
export function pkceSettings(client: Client, issuer: string): readonly string[] {
  const found = recipeOf(client)
  if (found === undefined) return []
  const lines = settingsOf(found.recipe, { issuer, url: found.url, client_id: client.id })
  return lines.filter((line) => /pkce/i.test(line))
}

/** Whether an operator can let a client leave PKCE out. */
export function mayLeavePkceOut({ authenticationMethod, pkceOptional }: Client): boolean {
  return authenticationMethod !== 'none' && !pkceOptional
}

function changesFor(remedy: Remedy | undefined, client: Client, issuer: string): readonly string[] {
  const set = `lychgate client set ${client.id}`
  switch (remedy) {
    case 'pkce':
      return [
        'switch PKCE on in the app',
        ...pkceSettings(client, issuer).map((line) => `in the app: ${line}`),
        ...(mayLeavePkceOut(client)
          ? [`${set} --pkce optional; an attacker can then redeem a leaked code with the secret of the app`]
          : []),
      ]
    case 'redirect':
      return [`${set} --redirect-uri URI, for each one, if the address belongs to the app`]
    case 'scope':
      return [
        `${set} --scope NAMES, if the app may have the scope`,
        'take it out of the settings of the app, if the server does not know it (the option scopes)',
      ]
    case 'secret':
      return [
        'copy the client id and the secret into the app again',
        `lychgate client rotate-secret ${client.id}`,
      ]
    default:
      return []
  }
}

export const readClientRejection: Operation = {
  operationId: 'readClientRejection',
  area: 'clients',
  kind: 'read',
  url: `${clientUrl}/rejection`,
  delegates: false,
  summary: 'Read why a request of a client was rejected last, and what would change that',
  response: Type.Object(
    {
      ...RejectionResource.properties,
      change: Type.Array(Type.String(), { description: 'What would let such a request pass.' }),
    },
    { title: 'ClientRejection', additionalProperties: false },
  ),
  async perform({ deps, param }) {
    const client = requireFound(await deps.store.find('client', param('client_id')), 'client')
    const rejection = requireFound(
      await lastRejectionOf(deps.store, client),
      'rejected request of this client',
    )
    const { issuer } = deps.config
    const change = changesFor(remedyOf(rejection, client), client, issuer)
    return { body: { ...explainRejection(rejection).json, change } }
  },
}
