/** What every page that asks for consent shows, reads and records: that of a browser and that of a device. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type AuditContext, auditEvent } from '../domain/audit.ts'
import type { Write } from '../domain/decision.ts'
import { narrowByUser, type UserDenial } from '../domain/interaction.ts'
import { clientWords } from '../domain/localized.ts'
import type { AuthorizationRequest, Client, Scope, Seconds, User } from '../domain/model.ts'
import { every, type Parameters, single } from '../domain/parameters.ts'
import type { CatalogueScope } from '../domain/scope-catalogue.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { clientLogoUrl } from './client-logo.ts'
import {
  type ClientLink,
  clientLinks,
  type DescribedClient,
  describeClient,
  displayName,
  foreignResources,
  type NamedResource,
  type NamedUser,
} from './describe.ts'
import type { FormModel } from './forms.ts'
import { layOutScope, type OfferedScopes, scopesFor } from './scopes.ts'

/** What a page shows of a client and of what it asks for. */
export interface ConsentModel extends FormModel, OfferedScopes {
  /** The same page with only the read scopes ticked; absent if there is nothing to change. */
  readonly onlyReadUrl?: string
  readonly allUrl?: string
  readonly user: NamedUser
  /** Switches to another user. */
  readonly switchUrl: string
  readonly client: DescribedClient & {
    readonly id: string
    /** http(s) links, shown with their host and never fetched. */
    readonly links: readonly ClientLink[]
    /** Its logo, from this server. */
    readonly logoUrl?: string
  }
  /** The resources that the client asks to use, if it is not only the service itself. */
  readonly resources: readonly NamedResource[]
  /** Whether the client changed what this page shows since the user saw it. */
  readonly changed: boolean
  /** How long the client stays connected; absent if nothing outlives the access token. */
  readonly accessLastsSeconds?: Seconds
  /** Where the user disconnects the client; absent if there is no account page. */
  readonly accountUrl?: string
}

declare module './pages.ts' {
  interface Pages {
    denied: FormModel & {
      readonly clientName: string
      readonly user: NamedUser
      /** Switches to another user, who may be allowed to use it. */
      readonly switchUrl: string
      /** A contact; absent: the operator of the service. */
      readonly contact?: string
    }
  }
}

/** A user who decides about the request of a client. */
interface ConsentVisit {
  readonly client: Client
  readonly user: User
  readonly reply: FastifyReply
}

/** Where the form of the page goes; `pageUrl` has a query. */
interface ConsentForm extends Pick<FormModel, 'action' | 'hidden'> {
  readonly pageUrl: string
  readonly switchUrl: string
}

/** What the client asks for. */
interface AskedConsent {
  readonly scope: Scope
  readonly resource: readonly string[]
  /** Whether anything outlives the access token. */
  readonly outlives: boolean
  /** No authorization request came first, with which the logo of a client's document is fetched. */
  readonly isDevice?: true
}

/** Returns a function that returns the model of a page that asks for consent, RFC 6749 §10.2. */
export function consentModel(app: FastifyInstance, deps: Needs<'config' | 'clock' | 'service' | 'declared'>) {
  const { config, service, declared } = deps
  const scopesIn = scopesFor(service, app.texts, declared.scopes)
  return async (
    { client, user, reply, sent, now }: ConsentVisit & { readonly sent: Parameters; readonly now: Seconds },
    { scope, resource, outlives, isDevice }: AskedConsent,
    { action, hidden, pageUrl, switchUrl }: ConsentForm,
  ): Promise<ConsentModel> => {
    const { request } = reply
    const onlyRead = single(sent, 'only') === 'read'
    const isChecked = ({ access }: CatalogueScope) => !onlyRead || access !== 'write'
    const { identity, areas } = layOutScope(scope, scopesIn(request.language), isChecked)
    const canChange = areas.some(({ write }) => write !== undefined)
    const logoUrl = await clientLogoUrl(app, deps, client, isDevice)
    return {
      action,
      hidden: { ...hidden, shown: shownOf(client) },
      ...(canChange && !onlyRead && { onlyReadUrl: `${pageUrl}&only=read` }),
      ...(canChange && onlyRead && { allUrl: pageUrl }),
      user: displayName(user),
      switchUrl,
      client: {
        ...describeClient(client, request, service, now),
        id: client.id,
        links: clientLinks(client, request.language),
        ...(logoUrl !== undefined && { logoUrl }),
      },
      resources: foreignResources(resource, service, request.language),
      identity,
      areas,
      changed: single(sent, 'changed') !== undefined,
      ...(outlives && { accessLastsSeconds: config.lifetimes.refreshTokenAbsoluteSeconds }),
      accountUrl: `${service.prefix}/account/apps`,
    }
  }
}

/**
 * Reads the decision of a form: the scope that the user allows, none if they deny; undefined if they have to be asked
 * again. A client that registered itself can rename itself while its page is open: consent is for what the page showed.
 * @param asked The scopes the page asked about.
 */
export function readConsent(
  sent: Parameters,
  client: Client,
  request: AuthorizationRequest,
  asked: Scope,
): Scope | undefined {
  if (!isApproved(sent)) return []
  // The page always sends `shown`; a script that leaves it out has shown no page.
  const shown = single(sent, 'shown') ?? shownOf(client)
  return shown === shownOf(client) ? narrowByUser(request, asked, every(sent, 'scope')) : undefined
}

/** Whether the user pressed the button that allows. */
export function isApproved(sent: Parameters): boolean {
  return single(sent, 'decision') === 'approve'
}

/** Identifies what the page shows of a client: it differs as soon as the client changes any of it. */
function shownOf(client: Client): string {
  const { name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes, published } = client
  const shown = [name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes]
  return hashSecret(JSON.stringify(published === undefined ? shown : [...shown, published.digest]))
}

/** Returns the audit event of a decision. `denial`: why the user has none. */
export function consentEvent(
  context: AuditContext,
  parties: { readonly userId: string; readonly clientId: string },
  scope: Scope,
  denial?: UserDenial,
): Write {
  if (denial !== undefined)
    return auditEvent('client-access-denied', context, { ...parties, rule: denial.rule })
  if (scope.length === 0) return auditEvent('consent-refused', context, parties)
  return auditEvent('consent', context, { ...parties, scope: scope.join(' ') })
}

/** Shows a user that they may not use a client, and names a contact. Its form leads back to the client. */
export function showDenial(
  { client, user, reply }: ConsentVisit,
  { contact }: UserDenial,
  { action, hidden, switchUrl }: Omit<ConsentForm, 'pageUrl'>,
): FastifyReply {
  const model = {
    action,
    hidden,
    clientName: clientWords(client, reply.request.language).name ?? client.id,
    user: displayName(user),
    switchUrl,
    ...(contact !== undefined && { contact }),
  }
  return reply.page('denied', model, { status: 403 })
}
