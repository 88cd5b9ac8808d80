import texts from './clauses.json' with { type: 'json' }
import type { Lab } from './lab.ts'
import type { Judgement, Seen } from './observation.ts'
import type { Expected, Values } from './values.ts'

/** How the requirement levels of RFC 2119 count: what breaks a SHOULD is a warning. */
export type Level = 'MUST' | 'SHOULD'

export type Verdict = 'pass' | 'fail' | 'warning' | 'not applicable' | 'not testable' | 'not run'

/** One clause that can be observed from outside. */
export interface Check {
  /** The clause of the ledger, `test/requirements`; its beginning names the document and the section. */
  readonly id: string
  /** Tells checks of one clause apart: the clause is met if each of them passes. */
  readonly part?: string
  readonly level: Level
  /** What the clause wants, as a fact in the present tense. */
  readonly wants: string
  /** Sends requests and judges what came. May throw NotApplicable and NotTestable. */
  readonly run: (lab: Lab) => Promise<Judgement>
}

/** A request of a clause, and what comes. */
export interface Step {
  /** What is sent: a name of steps.ts, or an endpoint. */
  readonly send: string
  /** The client that sends it: by authentication method, or `confidential`, `public`, `other`, `nobody`. */
  readonly by?: string
  /** The client that sends the last request, if it is another. */
  readonly as?: string
  readonly how?: {
    readonly [option in 'deny' | 'dpop' | 'leave' | 'look' | 'plain' | 'post' | 'query']?: boolean
  }
  readonly url?: string
  /** Where a visit ends, if not at the redirect URI. */
  readonly to?: string
  readonly token?: string
  /** What the user types where a page asks for the code of a device. */
  readonly deviceCode?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Parameters of the authorization request before it. */
  readonly asked?: Values
  readonly with?: Values
  readonly gets?: string
  /** The error codes of which one comes. */
  readonly errors?: readonly string[]
  readonly expect?: Expected
  /** Members of the response that later steps use as `$name`. */
  readonly keep?: readonly string[]
}

/** A clause in clauses.json. With `send` or `steps` its check is there, too; table.ts runs it. */
export interface Row extends Partial<Omit<Step, 'with'>> {
  readonly level: string
  readonly wants: string
  /** Members of the metadata without which the clause does not apply; after a space a value in its list. */
  readonly needs?: readonly string[]
  /** Metadata that its client is registered with. */
  readonly registers?: Values
  /** Its browser has no session. */
  readonly fresh?: boolean
  /** Each entry of a list is sent in a separate run. */
  readonly with?: Values | readonly Values[]
  readonly steps?: readonly Step[]
}

/** What each clause wants, by the name of its check: the id, and after a slash the part of it. */
export const clauses: Readonly<Record<string, Row>> = texts

/** Makes checks of their requests and judgements, by name; clauses.json has what they want. */
export function checksBy(runs: Readonly<Record<string, Check['run']>>): readonly Check[] {
  return Object.entries(runs).map(([name, run]) => {
    const clause = clauses[name]
    if (clause === undefined) throw new Error(`clauses.json has no ${name}`)
    const [id = '', part] = name.split('/')
    const level = clause.level === 'MUST' ? 'MUST' : 'SHOULD'
    return { id, ...(part !== undefined && { part }), level, wants: clause.wants, run }
  })
}

/** The result of a check, for the reports. */
export interface Result {
  readonly check: Check
  readonly verdict: Verdict
  /** Why the verdict is not pass. */
  readonly because?: string
  readonly seen: readonly Seen[]
  readonly milliseconds: number
}

/** The name of a check in reports and baselines. */
export function nameOf({ id, part }: Check): string {
  return part === undefined ? id : `${id}/${part}`
}

const documents: readonly (readonly [prefix: RegExp, title: string, url: string])[] = [
  [/^oidc-core-/, 'OpenID Connect Core', 'https://openid.net/specs/openid-connect-core-1_0.html'],
  [/^oidc-disc-/, 'OpenID Connect Discovery', 'https://openid.net/specs/openid-connect-discovery-1_0.html'],
  [/^oidc-rpl-/, 'RP-Initiated Logout', 'https://openid.net/specs/openid-connect-rpinitiated-1_0.html'],
  [/^oidc-bcl-/, 'Back-Channel Logout', 'https://openid.net/specs/openid-connect-backchannel-1_0.html'],
  [/^fapi2-ms-/, 'FAPI 2.0 Message Signing', 'https://openid.net/specs/fapi-message-signing-2_0.html'],
  [/^fapi2-/, 'FAPI 2.0 Security Profile', 'https://openid.net/specs/fapi-security-profile-2_0-final.html'],
  [/^jarm-/, 'JARM', 'https://openid.net/specs/oauth-v2-jarm.html'],
  [/^oauth21-/, 'OAuth 2.1', 'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-v2-1'],
  [/^rfc7523bis-/, 'RFC 7523bis', 'https://datatracker.ietf.org/doc/html/draft-ietf-oauth-rfc7523bis'],
  [
    /^cimd-/,
    'Client ID Metadata Document',
    'https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/',
  ],
  [
    /^mcp-/,
    'MCP authorization',
    'https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization',
  ],
]

/** The place of a clause in its text: `RFC 7636 §4.6`, and where to read it. */
export function placeOf(id: string): { readonly title: string; readonly url: string } {
  const rfc = /^rfc(\d+)-([\dA-Z][\d.]*)-/.exec(id)
  if (rfc !== null) {
    const [, number, section = ''] = rfc
    const anchor = `${/^[A-Z]/.test(section) ? 'appendix' : 'section'}-${section}`
    return {
      title: `RFC ${number} §${section}`,
      url: `https://www.rfc-editor.org/rfc/rfc${number}.html#${anchor}`,
    }
  }
  const [prefix, title, url] = documents.find(([known]) => known.test(id)) ?? [/^/, id, '']
  const section = /^([\d.]+)-/.exec(id.replace(prefix, ''))?.[1]
  return { title: section === undefined ? title : `${title} §${section}`, url }
}
