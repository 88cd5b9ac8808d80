import type { Authenticated, ClientAuthentication } from '../domain/client-authentication.ts'
import type { Write } from '../domain/decision.ts'
import type { GrantRule } from '../domain/grant.ts'
import type { UserDenial } from '../domain/interaction.ts'
import type { Client, Grant, User, UserClaims } from '../domain/model.ts'
import type {
  ApprovalAddition,
  ApprovalHook,
  ClientResolver,
  ConfirmationCheck,
  GrantedClaims,
  GrantHandler,
  Members,
  OtherSignIns,
  PreviewOf,
  PushReader,
  RequestCheck,
  RequestEnd,
  RequestExtra,
  RequestLoader,
  RequestReader,
  ResponseEncoder,
  SessionEnd,
  SignInClaim,
  SignInWays,
  TokenBinding,
  TokenConditions,
  TokenMembersOf,
  UserCheck,
} from './contributions.ts'
import type { Declared } from './deps.ts'
import {
  choice,
  condition,
  contribution,
  declaredContribution,
  members,
  merged,
  named,
  transformation,
} from './shapes.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** All that a feature can add to the core. */
    readonly seams: Seams
  }
}

/** What features add to the core, in the order in which a request meets it. */
export type Seams = ReturnType<typeof createSeams>

/** Returns the seams of one application. What is added by name has been declared, see feature.ts. */
export function createSeams(declared: Declared) {
  return {
    // The metadata documents, RFC 8414 §2: each endpoint advertises itself.
    metadata: members('metadata'),
    /** What is withheld of the documents, once all members are there. */
    publishedMetadata: transformation<Members>('transformation of the metadata'),

    // The client.
    /** Where else clients are found than in the store: the resolver that finds all clients of a kind of identifier. */
    clientResolvers: choice<(clientId: string) => ClientResolver | undefined>('client resolver'),
    /** The methods of `clientAuthentication`, which verify a client (RFC 6749 §2.3). */
    clientAuthentication: named<ClientAuthentication>(
      'client authentication method',
      declared.clientAuthentication,
    ),
    /** Throws `invalid_client` for a client that must authenticate in another way. */
    authenticatedClient: condition<(authenticated: Authenticated) => void>('check of authenticated clients'),

    // The session of a browser.
    /** Ends a session whose beginning has ended, such as the sign-in at another server. */
    sessionEnds: contribution<SessionEnd, boolean>('end of sessions', (all) => all.includes(true)),

    // The authorization request, from a browser, a device or a push (RFC 6749 §4.1.1, RFC 8628 §3.1, RFC 9126 §2).
    requestLoaders: choice<RequestLoader>('request loader'),
    /** What is stored with a request that its client pushes, from the HTTP request. */
    pushReaders: contribution<PushReader, RequestExtra>('push reader', merged),
    /** Checks a request whose client and redirect URI are proven. Its errors are redirects. */
    requestChecks: condition<RequestCheck>('request check'),
    requestReaders: contribution<RequestReader, RequestExtra>('request reader', merged),
    /** Where else users may sign in, for the sign-in page. */
    signInWays: contribution<SignInWays, OtherSignIns | undefined>('way to sign in', ([first]) => first),
    userChecks: contribution<UserCheck, UserDenial | undefined>('user check', ([first]) => first),
    approvals: contribution<ApprovalHook, Required<ApprovalAddition>>('addition to grants', joinApprovals),
    requestEnds: contribution<RequestEnd, readonly Write[]>('request end', (all) => all.flat()),
    /** Members of every authorization response, success and error alike. */
    responseMembers: members<string>('member of the authorization response'),
    /** The modes of `responseModes`, which encode all of these members. */
    responseModes: named<ResponseEncoder>('response mode', declared.responseModes),

    // The token request, and what is issued.
    /** The grant types of `grantTypes` (RFC 6749 §4.5). */
    grantTypes: named<GrantHandler>('grant type', declared.grantTypes),
    /** How tokens are bound by the members of `cnf` of `tokenBindings` (RFC 7800 §3.1). */
    tokenBindings: named<TokenBinding>('token binding', declared.tokenBindings),
    /** Checks the key that a token request proves, or its absence. */
    confirmationChecks: condition<ConfirmationCheck>('check of a proven key'),
    /** What is demanded of the grants of some clients. It applies when it is used: nothing is stored. */
    grantRules: contribution<(client: Client) => GrantRule | undefined, readonly GrantRule[]>(
      'grant rule',
      (all) => all,
    ),
    tokenConditions: contribution<TokenConditions, readonly Write[]>('token condition', (all) => all.flat()),
    /** What the exchange of a token depends on, RFC 8693: it takes the new grant, with the sign-in of the subject's. */
    exchanges: contribution<(grant: Grant, client: Client) => readonly Write[] | undefined, readonly Write[]>(
      'condition of exchanges',
      (all) => all.flat(),
    ),
    /** The members of `tokenMembers`, by their names on the wire. */
    tokenMembers: declaredContribution<TokenMembersOf, Members>(
      'member of the token response',
      declared.tokenMembers,
      merged,
    ),
    /** What operators see of it before anything is issued. */
    previews: contribution<PreviewOf, Readonly<Record<string, Members>>>('preview', merged),

    // Claims.
    /** Claims about a user, for UserInfo and ID Tokens. The scope catalogue decides which scope opens them. */
    userClaims: contribution<(user: User) => UserClaims, UserClaims>('source of claims', merged),
    grantedClaims: contribution<GrantedClaims, Members>('source of claims of a grant', merged),
    /** The claims of `signInClaims`, for ID Tokens. */
    signInClaims: declaredContribution<SignInClaim, Readonly<Record<string, string>>>(
      'claim about the sign-in',
      declared.signInClaims,
      merged,
    ),
  }
}

/**
 * Ends the time in which plugins may add.
 * @throws {Error} for a name that a feature declares and no plugin adds.
 */
export function closeSeams(seams: Seams): void {
  for (const { close } of Object.values(seams)) close()
}

/** Joins what features add to a grant. */
function joinApprovals(additions: readonly ApprovalAddition[]): Required<ApprovalAddition> {
  const extra = Object.assign({}, ...additions.map((one) => one.extra))
  return { extra, writes: additions.flatMap(({ writes = [] }) => writes) }
}
