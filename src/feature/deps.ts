import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync, FastifyPluginCallback } from 'fastify'
import type { DeclaredClientMember, OperatorClientMembers } from '../clients/core-members.ts'
import type { ClientDeclarations } from '../clients/members.ts'
import type { Config } from '../config/schema.ts'
import type { Origins, Setting } from '../config/setting.ts'
import type { AccessRule } from '../domain/access.ts'
import type { AuditContext } from '../domain/audit.ts'
import type { GuardedScope } from '../domain/bearer.ts'
import type { ClientDocument } from '../domain/client-document.ts'
import type { DeclaredBindings } from '../domain/confirmation.ts'
import type { Write } from '../domain/decision.ts'
import type { Finding } from '../domain/finding.ts'
import type { Client, Scope, Seconds, StoredKey } from '../domain/model.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { GuardedFetch } from '../outbound/guarded-fetch.ts'
import type { Store } from '../storage/store.ts'
import type { Peers } from '../system/peers.ts'
import type { Clock, RandomSource } from '../system/system.ts'
import type { LiveDefinitions } from './definitions.ts'
import type { DeclaredScopes, Service } from './service.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Absent: no client is known by a document. */
    readonly publishedClients?: PublishedClients
  }
}

/** Everything the application needs from outside; a plugin takes `Plugin<…>` of it, see below. */
export interface Deps {
  readonly config: Config
  readonly store: Store
  readonly keys: KeyRing
  readonly clock: Clock
  readonly random: RandomSource
  /** The other workers of this server; absent: it is one process. */
  readonly peers?: Peers
}

/** Whether the password is that of the hash; for an undefined hash false, after the same time. */
export type PasswordCheck = (password: string, phc: string | undefined) => Promise<boolean>

/** The clients that are known by the URL at which they publish their metadata. */
export interface PublishedClients {
  /**
   * Returns the client as its document says now; fetches it when it is not fresh.
   * @param from The network of the request, see address-prefix.ts.
   */
  current(clientId: string, from: string): Promise<Client>
  /** Returns the client of a pending request; fetches it only where nothing of it is stored, and this node forgot it. */
  pending(clientId: string, from: string): Promise<Client>
  /** Returns a client of which nothing is stored, if this node remembers it. */
  seen(clientId: string, from: string): Client | undefined
  /**
   * Returns the stored client that a request is from; undefined if there is none. A public client stays what it was
   * when the user approved it; the keys of another are those of its document.
   */
  known(clientId: string): Promise<Client | undefined>
  /**
   * Returns a client of which nothing is stored, as its document says now, if this node remembers it: it may
   * authenticate, for which nothing is fetched or stored of its document.
   */
  remembered(clientId: string, from: string): Promise<Client | undefined>
  /**
   * Fetches the document of a client, fresh or not and whatever the settings accept, and stores the client.
   * @param context Who does so, for the event of what differs.
   * @param also What to write with it.
   */
  refresh(
    clientId: string,
    context: AuditContext,
    also?: (stored: { readonly client: Client; readonly document: ClientDocument }) => readonly Write[],
  ): Promise<Client>
  /** Stores a client that a signed-in user approves; returns the one that is stored then. */
  keep(client: Client): Promise<Client>
  /** Forgets what this node remembers of a document. */
  forget(clientId: string): void
}

/** What it takes to fetch such clients. */
export type PublishedClientDeps = Pick<Deps, 'config' | 'store' | 'clock'> &
  Pick<AppDeps, 'fetchUrl' | 'declared'> & { readonly keys: Pick<KeyRing, 'algorithms'> }

/** Deps, and what buildApp computes from them once. */
export interface AppDeps extends Deps {
  readonly service: Service
  /** The scopes and resources that operators store; those in force are in `config` and `service`. */
  readonly definitions: LiveDefinitions
  readonly checkPassword: PasswordCheck
  /** Every setting and where it comes from, passwords masked. */
  readonly settings: () => readonly Setting[]
  readonly declared: Declared
  /** Fetches every URL that a client names. */
  readonly fetchUrl: GuardedFetch
  /**
   * The findings of `lychgate doctor` that take no connection, those about clients, and when they were found. No
   * caller waits for that.
   */
  readonly examine: (
    ring: readonly StoredKey[],
    now: Seconds,
  ) => { readonly findings: readonly Finding[]; readonly clientsAt?: Seconds }
  /** Guards the routes that are registered in the same scope with this server's own tokens, RFC 6750. */
  readonly guard: FastifyPluginCallback<OwnGuardOptions>
}

/** How routes are guarded with this server's own tokens. */
export interface OwnGuardOptions extends GuardedScope {
  /** Whether the routes need the user and the client of the token: `access.owners`. */
  readonly readsOwners?: boolean
  /** Verifies a personal token, which only routes that say so accept; undefined for any other text. */
  readonly verifyPersonalToken?: (
    token: string,
  ) => Promise<PersonalAccess | { readonly rejected: string }> | undefined
}

/** The owner of a personal token, and what it is limited to. */
export interface PersonalAccess {
  readonly sub: string
  readonly scope: Scope
  readonly personalTokenId: string
}

/** What a part of the application takes of it, by name. */
export type Needs<K extends keyof AppDeps> = Pick<AppDeps, K>

/** What the operations of operators, their pages and those of users take. */
export type PageDeps = Omit<AppDeps, 'fetchUrl' | 'guard'>

/** A plugin that takes only what it names. */
export type Plugin<K extends keyof AppDeps> = FastifyPluginAsync<Needs<K>>

/** Schemas by the names that clients use. */
export type Schemas = Readonly<Record<string, TSchema>>

/** How a grant type is declared. */
export type DeclaredGrantType = ClientDeclarations['grantTypes'][string] & {
  /** Names the option that keeps it from clients that no operator added; undefined: they can use it. */
  readonly closedBy?: (config: Config) => string | undefined
  /** What the development server calls a token request. Absent: token. */
  readonly title?: string
  /** The parameters of its token request, without those of every token request. */
  readonly parameters: Schemas
}

/** How a client authentication method is declared. */
export type DeclaredAuthentication = ClientDeclarations['clientAuthentication'][string] & {
  /** The form parameters that it reads; absent: it reads the Authorization header. */
  readonly parameters?: Schemas
  /** By which algorithms its assertions can be signed, RFC 8414 §2. */
  readonly signingAlgorithms?: readonly string[]
}

/** What all features declare (see feature.ts), each name once. */
export interface Declared extends ClientDeclarations {
  readonly clientMetadata: Readonly<Record<string, DeclaredClientMember>>
  readonly grantTypes: Readonly<Record<string, DeclaredGrantType>>
  readonly clientAuthentication: Readonly<Record<string, DeclaredAuthentication>>
  readonly authorizationParameters: Schemas
  /** The parameters of token requests, of all grant types. */
  readonly tokenParameters: Schemas
  /** The form parameters of all client authentication methods. */
  readonly authenticationParameters: Schemas
  /** Response modes that features add to those of the core, each with the mode that carries it. */
  readonly responseModes: Readonly<Record<string, 'query' | 'form_post'>>
  readonly tokenBindings: DeclaredBindings
  readonly tokenMembers: Schemas
  readonly signInClaims: Schemas
  readonly tokenClaims: Service['tokenClaims']
  readonly scopes: DeclaredScopes
  /** The rules about who may use a client, with the settings of a server. */
  readonly accessRules: readonly ((config: Config) => AccessRule)[]
  /** The profiles that operators choose clients for. */
  readonly clientProfiles: Readonly<Record<string, ClientProfile>>
  /** Headers of responses that pages of other origins may read. */
  readonly exposedHeaders: readonly string[]
}

/** A profile that narrows several specifications, as an operator sees it. */
export interface ClientProfile {
  /**
   * Returns what to change about a client that an operator chooses.
   * @throws {OAuthError} for a client that cannot conform to it.
   */
  readonly put: (client: Client) => OperatorClientMembers
  /** Returns what to change about a client that has it and is to have another one, or none; undefined for any other. */
  readonly take: (client: Client) => OperatorClientMembers | undefined
  /** Returns what of it a configuration and clients fall short of, for `lychgate doctor`. */
  readonly shortcomings: (config: Config, clients: readonly Client[]) => readonly Shortcoming[]
}

/** A requirement of a profile that a configuration or some clients miss. */
export interface Shortcoming {
  readonly said: string
  readonly expected: string
  readonly found: readonly string[]
  /** The option to set, and its value. */
  readonly setting?: readonly [path: string, value: string]
  /** The commands to run. */
  readonly change?: readonly string[]
}

export interface AppOptions {
  /** Receives every route when it is registered; scripts/openapi.ts writes the API description with it. */
  readonly observe?: (app: FastifyInstance) => Promise<void>
  /** Where the settings come from; absent: they are those of a program. */
  readonly origins?: Origins
  /** Where log lines go instead of standard output. */
  readonly logTo?: { write(line: string): void }
  /** What makes it a development server; a production configuration rejects it. */
  readonly development?: Development
}

/** What a development server adds to the application, which does not know it otherwise. */
export interface Development {
  readonly withKnownPasswords: (check: PasswordCheck) => PasswordCheck
  readonly withRecording: (deps: Deps) => {
    readonly deps: Deps
    readonly observe: (app: FastifyInstance) => Promise<void>
  }
  readonly plugin: FastifyPluginAsync<AppDeps> | FastifyPluginCallback<AppDeps>
}
