/** The clause of a document: its usual name, and its URL if it has one. */
export interface Clause {
  readonly name: string
  readonly url?: string
}

const openid = 'https://openid.net/specs/openid-connect'
const documents: readonly {
  readonly prefix: string
  readonly name: string
  readonly url?: string
  /** Whether a section has its own anchor, `#section-4.1`. */
  readonly sections?: true
}[] = [
  { prefix: 'oidc-core', name: 'OpenID Connect Core', url: `${openid}-core-1_0.html` },
  { prefix: 'oidc-disc', name: 'OpenID Connect Discovery', url: `${openid}-discovery-1_0.html` },
  { prefix: 'oidc-reg', name: 'OpenID Connect Registration', url: `${openid}-registration-1_0.html` },
  { prefix: 'oidc-rpl', name: 'OpenID Connect RP-Initiated Logout', url: `${openid}-rpinitiated-1_0.html` },
  { prefix: 'oidc-bcl', name: 'OpenID Connect Back-Channel Logout', url: `${openid}-backchannel-1_0.html` },
  {
    prefix: 'oauth21',
    name: 'OAuth 2.1',
    url: 'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-v2-1',
    sections: true,
  },
  {
    prefix: 'rfc7523bis',
    name: 'RFC 7523bis',
    url: 'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-rfc7523bis',
    sections: true,
  },
  {
    prefix: 'fapi2',
    name: 'FAPI 2.0 Security Profile',
    url: 'https://openid.net/specs/fapi-security-profile-2_0-final.html',
  },
  { prefix: 'cimd', name: 'OAuth Client ID Metadata Document' },
  { prefix: 'mcp', name: 'MCP authorization' },
  { prefix: 'service', name: 'the service specification' },
  // The ids in records of an older version.
  { prefix: 'seed', name: 'the service specification' },
]

/** The clause a rule id names: `rfc6749-4.1.2-code-single-use` is RFC 6749 §4.1.2. */
export function clauseOf(rule: string): Clause {
  const [, rfc, section = ''] = /^rfc(\d{4})-([\dA-Z][\d.]*)-/.exec(rule) ?? []
  if (rfc !== undefined) {
    const anchor = /^[A-Z]/.test(section) ? `appendix-${section}` : `section-${section}`
    return {
      name: `RFC ${rfc} ${/^[A-Z]/.test(section) ? `appendix ${section}` : `§${section}`}`,
      url: `https://www.rfc-editor.org/rfc/rfc${rfc}#${anchor}`,
    }
  }
  const document = documents.find(({ prefix }) => rule.startsWith(`${prefix}-`))
  if (document === undefined) return { name: 'a rule of this server' }
  const { prefix, name, url, sections } = document
  const [, at] = /^([\d.]+)-/.exec(rule.slice(prefix.length + 1)) ?? []
  return {
    name: at === undefined ? name : `${name} §${at}`,
    ...(url !== undefined && { url: sections && at !== undefined ? `${url}#section-${at}` : url }),
  }
}
