import { isRetired } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { wellKnownUrl } from '../../domain/well-known.ts'
import { type Answer, ask, NoAnswer } from './ask.ts'
import { type Difference, differenceOf, excerpt, membersOf } from './difference.ts'
import { type Finding, ok, problem, setting, unchecked, warning } from './finding.ts'
import type { Reference } from './reference.ts'
import type { ExaminedServer } from './server.ts'
import { isDirect, type Setup, upstreamOf } from './setup.ts'
import { explainTls } from './tls.ts'

/** What the issuer answers, as its clients see it. */
export interface ExaminedIssuer {
  /** Whether it answers as this server: only then is there more to ask. */
  readonly isReached: boolean
  readonly findings: readonly Finding[]
}

/** Every document a client may begin with, fetched where it will look: RFC 8414 §3.1, RFC 9728 §3.1, OpenID Connect Discovery §4. */
export async function examineIssuer(
  setup: Setup,
  server: ExaminedServer['state'],
  reference: Reference,
): Promise<ExaminedIssuer> {
  const { issuer, resources } = setup.config
  const names = ['openid-configuration', 'oauth-authorization-server', 'oauth-protected-resource']
  const { origin } = new URL(issuer)
  const others = resources.flatMap(({ identifier }) =>
    URL.parse(identifier)?.origin === origin ? wellKnownUrl(identifier, 'oauth-protected-resource') : [],
  )
  const urls = names.flatMap((name) => [`${issuer}/.well-known/${name}`, wellKnownUrl(issuer, name)])
  const findings: Finding[] = []
  for (const url of new Set([...urls, ...others])) {
    const answer = await askOrSay(setup, url, server)
    if ('level' in answer) return { isReached: false, findings: [answer] }
    const difference = differenceOf(answer, await reference.answer(url))
    if (difference === undefined) {
      findings.push(ok('issuer', `${url} is what it should be`))
      continue
    }
    if (server === 'silent' && difference.kind === 'status' && answer.status >= 500) {
      const said = `the proxy at ${origin} answers ${answer.status}, as it does while the server does not run`
      return { isReached: false, findings: [unchecked('issuer', said)] }
    }
    findings.push(inWords(setup, url, difference))
    // The same error for the other documents would add nothing.
    if (url === urls[0]) return { isReached: isStillOurs(difference), findings }
  }
  return { isReached: true, findings }
}

/** The keys clients verify with have to be those the server signs with. */
export async function examinePublishedKeys(
  { config }: Setup,
  ring: readonly StoredKey[],
  now: Seconds,
): Promise<Finding> {
  const url = `${config.issuer}/api/oauth/jwks`
  const answer = await ask(url)
  const keys = membersOf(answer.body)?.['keys']
  if (answer.status !== 200 || !Array.isArray(keys)) {
    return problem('published keys', `${url} does not answer with keys`, {
      expected: '200 and a JWK Set',
      found: `${answer.status}: ${excerpt(answer)}`,
      change: [`location ${new URL(url).pathname} { proxy_pass ${upstreamOf({ config })}; }   (in nginx)`],
    })
  }
  const found = keys.map((key: { kid?: unknown }) => String(key?.kid))
  const lag = config.keys.reloadSeconds + config.lifetimes.metadataCacheSeconds
  const published = ring.filter((key) => key.kind === 'signing' && !isRetired(key, now))
  const missing = published.filter(({ id, createdAt }) => !found.includes(id) && createdAt + lag < now)
  const foreign = found.filter((kid) => !ring.some(({ id }) => id === kid))
  if (missing.length === 0 && foreign.length === 0) {
    return ok('published keys', `${url} has the keys of the store`)
  }
  return problem('published keys', 'are not those of this store: another server answers, or an old copy', {
    expected: published.map(({ id }) => id).join(', '),
    found: found.join(', ') || 'none',
    change: [
      `proxy_pass ${upstreamOf({ config })};   (in nginx: to the server of this store)`,
      'proxy_cache off;',
    ],
  })
}

/** The response, or why there is none. */
async function askOrSay(
  setup: Setup,
  url: string,
  server: ExaminedServer['state'],
): Promise<Answer | Finding> {
  const { issuer } = setup.config
  try {
    return await ask(url)
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const tls = await explainTls(issuer, error)
    if (tls !== undefined) return tls
    const { origin, host } = new URL(issuer)
    if (server === 'silent' && isDirect(setup)) return unchecked('issuer', 'the server does not run')
    const isUnknown = ['ENOTFOUND', 'EAI_AGAIN'].includes(error.code)
    const said = isUnknown ? `the name ${host} has no address` : `nothing answers at ${origin}`
    return problem('issuer', said, {
      expected: `an answer at ${url}`,
      found: `${error.message} (${error.code})`,
      change: isUnknown
        ? [`add ${host} to the DNS, or to /etc/hosts for a trial`, ...setting('issuer', issuer)]
        : [`start the proxy and open its port; it passes requests on to ${upstreamOf(setup)}`],
    })
  }
}

function isStillOurs({ kind }: Difference): boolean {
  return ['slash', 'scheme', 'members', 'type'].includes(kind)
}

function inWords(setup: Setup, url: string, { kind, said, expected, found }: Difference): Finding {
  const report = kind === 'type' ? warning : problem
  return report('issuer', `${url} ${said}`, {
    expected,
    found,
    change: remedies(setup, url, { kind, found }),
  })
}

function remedies(setup: Setup, url: string, { kind, found }: Pick<Difference, 'kind' | 'found'>) {
  const { issuer } = setup.config
  const { pathname } = new URL(url)
  const upstream = upstreamOf(setup)
  switch (kind) {
    case 'redirect':
      return [
        `location ${pathname} { proxy_pass ${upstream}; }   (in nginx: no return, no rewrite, no added slash)`,
        `or make the issuer the address it leads to: ${setting('issuer', 'https://…').join('   ')}`,
      ]
    case 'status':
      return [`location ${pathname} { proxy_pass ${upstream}; }   (in nginx: without a path after the port)`]
    case 'slash':
    case 'scheme':
      return [
        'sub_filter_types none;   (in nginx: the proxy must not rewrite what it passes on)',
        ...setting('issuer', issuer),
      ]
    case 'members':
    case 'type':
      return [
        'restart the server with this version and these settings',
        'proxy_cache off;   (in nginx, where it keeps an old copy)',
      ]
    case 'issuer':
    case 'other':
      return [
        `proxy_pass ${upstream};   (in nginx: to this server, without a path)`,
        ...setting('issuer', kind === 'issuer' && URL.canParse(found) ? found.replace(/\/+$/, '') : issuer),
      ]
  }
}
