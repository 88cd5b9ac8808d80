import type { FastifyInstance } from 'fastify'
import { recipeOf, settingsOf } from '../../clients/recipes.ts'
import type { Client } from '../../domain/model.ts'
import type { ClientKind } from './client-form.ts'

/** What an app needs to know of this server, and how its settings are filled in. */
export interface ClientValues {
  readonly values: readonly { readonly name: string; readonly value: string }[]
  /** Present: its recipe is known. */
  readonly settings?: {
    readonly where: string
    readonly lines: readonly string[]
    readonly notes: readonly string[]
  }
}

/** The endpoints that a kind of app uses, by their names in the metadata. */
const endpoints: Readonly<Record<ClientKind, readonly string[]>> = {
  web: atBrowser(),
  native: atBrowser(),
  machine: ['token_endpoint'],
  device: ['device_authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'],
  api: ['introspection_endpoint', 'jwks_uri'],
}

function atBrowser(): readonly string[] {
  return ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri', 'end_session_endpoint']
}

/**
 * Returns the values of an app.
 * @param secret Shown this once, if there is a new one.
 */
export function valuesOf(
  app: FastifyInstance,
  issuer: string,
  client: Client,
  kind: ClientKind,
  secret?: string,
): ClientValues {
  const metadata = new Map<string, unknown>(
    Object.entries(app.seams.publishedMetadata.apply(app.seams.metadata.all())),
  )
  const values = [
    ['client_id', client.id],
    ['client_secret', secret],
    ['issuer', issuer],
    ['discovery', `${issuer}/.well-known/openid-configuration`],
    ...endpoints[kind].map((name) => [name, metadata.get(name)] as const),
  ] as const
  const filled = recipeOf(client)
  return {
    values: values.flatMap(([name, value]) => (typeof value === 'string' ? [{ name, value }] : [])),
    ...(filled && {
      settings: {
        where: filled.recipe.settings.where,
        lines: settingsOf(filled.recipe, {
          issuer,
          url: filled.url,
          client_id: client.id,
          client_secret: secret,
        }),
        notes: filled.recipe.notes ?? [],
      },
    }),
  }
}
