import type { TObject, TSchema } from '@sinclair/typebox'
import type { FastifyPluginAsync, FastifyPluginCallback } from 'fastify'
import type { ClientMetadataMember } from './clients/feature-member.ts'
import type { AppDeps } from './deps.ts'

/**
 * A specification as one folder. What is needed before the application exists (the options, the client metadata, the
 * parameters) is data, which the command line reads too; the rest is a Fastify plugin, loaded with the application.
 */
export interface Feature {
  /** The document that it implements: `RFC 9126`. */
  readonly spec: string
  /**
   * Its section of the configuration, by name. The folder also declares it in `FeatureSettings` of config/schema.ts, so
   * that `config.<name>` has a type.
   */
  readonly settings?: Readonly<Record<string, TObject>>
  /** Client metadata that it adds (RFC 7591 §2): registration, updates and `lychgate client` accept it. */
  readonly clientMetadata?: Readonly<Record<string, ClientMetadataMember>>
  /** Parameters that it adds to the authorization request (RFC 6749 §3.1), for the description of the API. */
  readonly authorizationParameters?: Readonly<Record<string, TSchema>>
  /** Members that it adds to the token response (RFC 6749 §5.1). */
  readonly tokenMembers?: Readonly<Record<string, TSchema>>
  /**
   * Who calls its endpoints. `clients`: from any origin, and errors are JSON. `browsers`: from the same origin, and errors
   * are pages. Absent: it has none, and decorates the application before the others are registered.
   */
  readonly callers?: 'clients' | 'browsers'
  /** Its paths begin at the origin; those of other features begin at the path of the issuer. */
  readonly atOrigin?: true
  load(): Promise<FeaturePlugin>
}

/** A Fastify plugin; one that is wrapped by fastify-plugin decorates the application. */
export type FeaturePlugin = FastifyPluginAsync<AppDeps> | FastifyPluginCallback<AppDeps>

/** How a section of the configuration is described: it is optional, and accepts no other option. */
export function section(description: string) {
  return { additionalProperties: false, default: {}, description } as const
}

/**
 * Joins what features add under one heading.
 * @throws {Error} if two features add the same name.
 */
export function joined<T>(
  features: readonly Feature[],
  heading: (feature: Feature) => Readonly<Record<string, T>> | undefined,
): Readonly<Record<string, T>> {
  const all: Record<string, T> = {}
  for (const feature of features) {
    for (const [name, value] of Object.entries(heading(feature) ?? {})) {
      if (name in all) throw new Error(`${feature.spec}: another feature has ${name}, too`)
      all[name] = value
    }
  }
  return all
}
