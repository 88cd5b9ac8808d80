import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client } from '../../domain/model.ts'
import type { DocumentPolicy } from './rules.ts'

/**
 * Checks that this server accepts the document.
 * @param stored The client that is stored of it.
 * @throws {OAuthError} `invalid_client`
 */
export function assertAllowed(
  clientId: string,
  isDenied: boolean,
  policy: DocumentPolicy,
  stored?: UsedClient,
): void {
  const setting =
    policy.mode === 'off'
      ? 'this server accepts no client metadata documents (clientDocuments.mode)'
      : 'this server does not accept this client metadata document; its operator can add the URL or its host (clientDocuments.allowed)'
  check(isAccepted(clientId, policy, stored), 'lychgate-client-document-allowed', 'invalid_client', setting, {
    status: 400,
    stored: policy.mode === 'off' ? 'off' : policy.allowed,
    received: clientId.slice(0, 100),
    passed: 'client_id is a URL that is allowed',
  })
  check(!isDenied, deniedRule, 'invalid_client', deniedText, {
    status: 400,
    passed: 'no operator denied the URL',
  })
}

const deniedRule = 'lychgate-client-document-denied'
const deniedText = 'an operator denied this client (lychgate client document deny)'

/** Returns the error of a document that an operator denied. */
export function denied(): OAuthError {
  return new OAuthError('invalid_client', deniedText, { rule: deniedRule, status: 400 })
}

type UsedClient = Pick<Client, 'issuedAt' | 'usedAt'>

/** Whether the settings accept the document of a client. */
export function isAccepted(clientId: string, policy: DocumentPolicy, stored?: UsedClient): boolean {
  if (isListed(clientId, policy)) return true
  const isUsed = stored !== undefined && stored.usedAt > stored.issuedAt
  return isUsed && policy.mode === 'allow-list' && policy.formerHosts.includes(hostOf(clientId) ?? '')
}

/** Whether the settings accept the URL. */
export function isListed(
  clientId: string,
  { mode, allowed }: Pick<DocumentPolicy, 'mode' | 'allowed'>,
): boolean {
  if (mode !== 'allow-list') return mode === 'any'
  const host = hostOf(clientId)
  return allowed.some((one) => one === clientId || one === host)
}

/** Whether the settings name this very document. */
export function isNamed(clientId: string, { allowed }: Pick<DocumentPolicy, 'allowed'>): boolean {
  return allowed.includes(clientId)
}

function hostOf(clientId: string): string | undefined {
  return URL.parse(clientId)?.host
}
