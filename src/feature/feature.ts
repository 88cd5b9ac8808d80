import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync, FastifyPluginCallback } from 'fastify'
import { coreMembers, type DeclaredClientMember } from '../clients/core-members.ts'
import { readFlag } from '../clients/members.ts'
import type { Config } from '../config/schema.ts'
import type { Client } from '../domain/model.ts'
import type { AppDeps, Declared, PublishedClientDeps, PublishedClients, Schemas } from './deps.ts'

/**
 * A specification as one folder. What is needed before the application exists (options, client metadata, grant types,
 * parameters) is data, which the command line reads too; the rest is a Fastify plugin, loaded with the application.
 */
export interface Feature {
  /** The document that it implements: `RFC 9126`. */
  readonly spec: string
  /**
   * Its section of the configuration, or its one option, by name. The folder also declares it in `FeatureSettings` of
   * config/schema.ts, so that `config.<name>` has a type.
   */
  readonly settings?: Readonly<Record<string, TSchema>>
  /** Yields a line for each of its settings that is well-formed, but wrong by itself or together with another one. */
  readonly faults?: (config: Config) => Iterable<string>
  /** Its rule about who may use a client, as operators see it; its plugin checks the same of requests. */
  readonly accessRule?: Declared['accessRules'][number]
  /** Client metadata that it adds (RFC 7591 §2): registration, updates and `lychgate client` accept it. */
  readonly clientMetadata?: Declared['clientMetadata']
  /** Grant types that it adds (RFC 6749 §4.5); its plugin adds each to `app.seams.grantTypes`. */
  readonly grantTypes?: Declared['grantTypes']
  /**
   * Client authentication methods that it adds (RFC 7591 §2); its plugin adds each to
   * `app.seams.clientAuthentication`.
   */
  readonly clientAuthentication?: Declared['clientAuthentication']
  /** Token request parameters that several grant types read, each declared by one feature. */
  readonly tokenParameters?: Schemas
  /** Parameters that it adds to the authorization request (RFC 6749 §3.1), for the description of the API. */
  readonly authorizationParameters?: Declared['authorizationParameters']
  /**
   * Response modes that it adds (OAuth 2.0 Multiple Response Type Encoding Practices §2.1), each with the one that
   * carries it; its plugin adds each to `app.seams.responseModes`.
   */
  readonly responseModes?: Declared['responseModes']
  /**
   * How it binds tokens to keys of their clients (RFC 7800 §3.1), by the member of `cnf`; its plugin adds
   * it to `app.seams.tokenBindings`.
   */
  readonly tokenBindings?: Declared['tokenBindings']
  /** Members that it adds to the token response (RFC 6749 §5.1); its plugin adds each to `app.seams.tokenMembers`. */
  readonly tokenMembers?: Declared['tokenMembers']
  /** Claims about the sign-in that it adds to ID Tokens; its plugin adds each to `app.seams.signInClaims`. */
  readonly signInClaims?: Declared['signInClaims']
  /**
   * Claims of access tokens that follow from their grant, by name: JWTs, introspection and `lychgate explain` have them.
   */
  readonly tokenClaims?: Declared['tokenClaims']
  /** Scopes that it adds to the catalogue, with the claims that they open. */
  readonly scopes?: Declared['scopes']
  /** Headers of its responses that pages of other origins may read. */
  readonly exposedHeaders?: Declared['exposedHeaders']
  /**
   * Who calls its endpoints. `clients`: from any origin, and errors are JSON. `browsers`: from the same origin, and
   * errors are pages. Absent: it has none, and decorates the application before the others are registered.
   */
  readonly callers?: 'clients' | 'browsers'
  /** Its paths begin at the origin; those of other features begin at the path of the issuer. */
  readonly atOrigin?: true
  load(): Promise<FeaturePlugin>
  /** How clients that publish their metadata are fetched, for `lychgate client document`. */
  readonly loadPublishedClients?: () => Promise<(deps: PublishedClientDeps) => PublishedClients>
  /** The profiles that operators choose clients for by `lychgate client profile`. */
  readonly clientProfiles?: Declared['clientProfiles']
  /** The URLs that its settings have the server fetch: `lychgate doctor` tries them if an operator set any of these. */
  readonly fetches?: (config: Config) => readonly string[]
  /** What `lychgate doctor` sends through the proxy in front of the app of a client that an operator added. */
  readonly clientProbe?: ClientProbe
  /** Its pages, if it has both endpoints for clients and pages for browsers. */
  loadPages?(): Promise<FeaturePlugin>
  /** What it adds to a development server below `/_dev`, where bodies are JSON. */
  loadDevelopment?(): Promise<FeaturePlugin>
}

/** A Fastify plugin; one that is wrapped by fastify-plugin decorates the application. */
export type FeaturePlugin = FastifyPluginAsync<AppDeps> | FastifyPluginCallback<AppDeps>

/** Registers plugins in this order. */
export async function registerAll<Options extends object>(
  scope: FastifyInstance,
  options: Options,
  plugins: readonly (FastifyPluginAsync<Options> | FastifyPluginCallback<Options>)[],
): Promise<void> {
  // `as`: one of both kinds, which Fastify tells apart.
  for (const plugin of plugins) await scope.register(plugin as FastifyPluginAsync<Options>, options)
}

/** A request that shows whether a proxy does what this server relies on. */
export interface ClientProbe {
  /** Returns undefined for a client without such a proxy. */
  requestOf(
    client: Client,
  ): { readonly url: string; readonly headers: Readonly<Record<string, string>> } | undefined
  /** Returns what is wrong with the JSON of the response, which is undefined if it has none or is an error. */
  faultOf(json: unknown): { readonly said: string; readonly found: string } | undefined
  /** Where it is written how to configure the proxy. */
  readonly change: string
}

/** How a section of the configuration is described: it is optional, and accepts no other option. */
export function section(description: string) {
  return { additionalProperties: false, default: {}, description } as const
}

/** Declares a parameter that may be repeated. */
export function repeatable(description: string): TSchema {
  return Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())], { description }))
}

/** Names the parameters that may be repeated. */
export function repeatableOf(parameters: Schemas): readonly string[] {
  const isRepeatable = ({ anyOf = [] }: TSchema) => anyOf.some(({ type }: TSchema) => type === 'array')
  return Object.keys(parameters).filter((name) => parameters[name] && isRepeatable(parameters[name]))
}

/** Declares a boolean member of client metadata; undefined if the client does not send it. */
export function flag(description: string) {
  return {
    schema: Type.Boolean({ description }),
    read: (members, name) =>
      (members[name] ?? undefined) === undefined ? undefined : readFlag(members, name),
  } satisfies DeclaredClientMember
}

/**
 * Joins what features add under one heading to what the core has.
 * @throws {Error} if two features add the same name, or one that the core has.
 */
export function joined<T>(
  features: readonly Feature[],
  heading: (feature: Feature) => Readonly<Record<string, T>> | undefined,
  core: Readonly<Record<string, T>> = {},
): Readonly<Record<string, T>> {
  const all: Record<string, T> = { ...core }
  for (const feature of features) {
    for (const [name, value] of Object.entries(heading(feature) ?? {})) {
      if (name in all) throw new Error(`${feature.spec}: another feature has ${name}, too`)
      all[name] = value
    }
  }
  return all
}

/**
 * Joins everything that features declare.
 * @throws {Error} if two features declare the same name.
 */
export function declarationsOf(features: readonly Feature[]): Declared {
  const parametersOf = (
    declared: Readonly<Record<string, { readonly parameters?: Schemas }>> = {},
  ): Schemas => Object.assign({}, ...Object.values(declared).map(({ parameters }) => parameters))
  return {
    clientMetadata: joined<DeclaredClientMember>(features, (feature) => feature.clientMetadata, coreMembers),
    grantTypes: joined(features, (feature) => feature.grantTypes),
    clientAuthentication: joined(features, (feature) => feature.clientAuthentication),
    authorizationParameters: joined(features, (feature) => feature.authorizationParameters),
    tokenParameters: joined(features, ({ grantTypes, tokenParameters }) => ({
      ...parametersOf(grantTypes),
      ...tokenParameters,
    })),
    responseModes: joined(features, (feature) => feature.responseModes),
    authenticationParameters: joined(features, (feature) => parametersOf(feature.clientAuthentication)),
    tokenBindings: joined(features, (feature) => feature.tokenBindings),
    tokenMembers: joined(features, (feature) => feature.tokenMembers),
    signInClaims: joined(features, (feature) => feature.signInClaims),
    tokenClaims: joined(features, (feature) => feature.tokenClaims),
    scopes: joined(features, (feature) => feature.scopes),
    clientProfiles: joined(features, (feature) => feature.clientProfiles),
    accessRules: features.flatMap(({ accessRule }) => accessRule ?? []),
    exposedHeaders: [...new Set(features.flatMap((feature) => feature.exposedHeaders ?? []))],
  }
}
