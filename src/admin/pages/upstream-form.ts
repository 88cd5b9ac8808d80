import { omitUndefined } from '../../domain/omit-undefined.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { type Upstream, upstreamDefaults, upstreamMembers } from '../../users/upstream-members.ts'
import { describeUpstream } from '../../users/upstreams.ts'

/** The fields of an upstream as they are typed, by their names in the admin API. */
export type TypedUpstream = Readonly<Record<string, string>>

/** The fields with a label made for them. That of the secret is not here: what is typed into it is not kept. */
const labels = {
  upstream_id: msg('admin.upstream.id'),
  name: msg('admin.name'),
  issuer: msg('admin.upstream.issuer'),
  client_id: msg('admin.upstream.client'),
  first_sign_in: msg('admin.upstream.firstSignIn'),
  domains: msg('admin.upstream.domains'),
  groups: msg('admin.upstream.groups'),
}

const { clientAuthentication, signingAlgorithm, scope, multiFactor, groupsClaim, maxAgeSeconds } =
  upstreamMembers

const choicesOf = ({ anyOf }: { readonly anyOf: readonly { readonly const: string }[] }) =>
  anyOf.map((value) => value.const)

/** The fields that few need, described as the admin API does. */
export const rareFields = [
  { name: 'client_authentication', ...clientAuthentication, choices: choicesOf(clientAuthentication) },
  { name: 'signing_algorithm', ...signingAlgorithm, choices: choicesOf(signingAlgorithm) },
  { name: 'scope', ...scope },
  { name: 'multi_factor', ...multiFactor, choices: choicesOf(multiFactor) },
  { name: 'groups_claim', ...groupsClaim },
  { name: 'max_age_seconds', ...maxAgeSeconds },
].map(({ name, description = '', ...rest }) => ({
  name,
  description,
  ...('choices' in rest && { choices: rest.choices }),
}))

/** What is kept of a form that comes too late. */
export const keptUpstream = {
  version: undefined,
  enabled: undefined,
  ...labels,
  ...Object.fromEntries(rareFields.map(({ name }) => [name, name])),
}

/** Returns what the form shows of an upstream; of a new one, the defaults. */
export function typedOf(upstream: Partial<Upstream>): TypedUpstream {
  const whole = { id: '', name: '', issuer: '', clientId: '', ...upstreamDefaults, ...upstream }
  const { redirect_uri: _, source: __, ...members } = describeUpstream(whole, { issuer: '' })
  const lines = Object.entries(members.groups).map(([there, here]) => `${there} = ${here}`)
  const texts = { ...members, domains: members.domains.join(' '), groups: lines.join('\n') }
  return {
    ...Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, String(value)])),
    enabled: members.enabled ? 'on' : '',
  }
}

/** Returns the same with what was typed into a form that comes back. */
export function typedAgain(shown: TypedUpstream, form: Parameters): TypedUpstream {
  if (single(form, 'name') === undefined) return shown
  return Object.fromEntries(
    Object.entries(shown).map(([name, value]) => [
      name,
      name === 'enabled' ? (single(form, name) ?? '') : (single(form, name) ?? value),
    ]),
  )
}

/** Returns the body of an operation that the form says. Whether its values can be is for the operation. */
export function bodyOf(form: Parameters): Readonly<Record<string, unknown>> {
  const text = (name: string) => single(form, name)?.trim()
  const secret = single(form, 'client_secret')
  const rare = Object.fromEntries(rareFields.map(({ name }) => [name, text(name) || undefined]))
  const seconds = rare['max_age_seconds']
  return omitUndefined({
    name: text('name'),
    client_id: text('client_id'),
    client_secret: secret === '' ? undefined : secret,
    first_sign_in: text('first_sign_in'),
    domains: text('domains')
      ?.split(/[\s,]+/)
      .filter((domain) => domain !== ''),
    groups: groupsOf(text('groups')),
    enabled: single(form, 'enabled') !== undefined,
    ...rare,
    max_age_seconds: seconds === undefined ? undefined : Number(seconds),
  })
}

/** Reads lines such as `teachers = Staff`; a line without a sign gives no group, which the operation rejects. */
function groupsOf(text: string | undefined): Readonly<Record<string, string>> | undefined {
  if (text === undefined) return undefined
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf('=')
      return [line.slice(0, Math.max(at, 0)).trim(), line.slice(at + 1).trim()]
    }),
  )
}
