import { Type } from '@sinclair/typebox'
import { requireBody } from '../json-body.ts'
import { listFor } from '../list-page.ts'
import type { NestedIssuer } from '../mount.ts'
import { type DevPart, missing } from '../part.ts'
import { profiles } from './catalogue.ts'
import { Conduct } from './conduct.ts'
import { openIssuer } from './open.ts'
import { listed, report } from './report.ts'

const Outcome = Type.Object(
  {
    outcome: Type.Union([Type.Literal('rejected'), Type.Literal('fooled')]),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { additionalProperties: false },
)

/**
 * Misbehaving issuers: `/issuers` lists them, `/issuers/{profile}` is one of them, `/issuers/report` shows what
 * clients did there, and `/issuers/{profile}/outcome` takes a client's own report.
 */
export const misbehavingIssuers: DevPart = async (app, deps) => {
  const { config, service } = deps
  const root = `${config.issuer}/_dev/issuers`
  const watched = profiles.map((profile) => ({ profile, conduct: new Conduct(profile.fooledWhen) }))
  const watchedAt = (id: string) => watched.find(({ profile }) => profile.id === id)
  const opened = new Map<string, Promise<NestedIssuer>>()

  /** The application of a profile, built at its first request. */
  const appOf = async (id: string) => {
    const found = watchedAt(id)
    if (found === undefined) return undefined
    const opening = opened.get(id) ?? openIssuer(found, `${root}/${id}`, deps, app.mounts.outer)
    opened.set(id, opening)
    // A later request tries again.
    opening.catch(() => opened.delete(id))
    return (await opening).app
  }
  app.mounts.add(`${service.prefix}/_dev/issuers`, async (name, rest) =>
    name === 'report' || rest === '/outcome' ? undefined : appOf(name),
  )
  app.addHook('onClose', async () => {
    for (const opening of opened.values()) await (await opening).close()
  })

  app.get('/issuers', async (_request, reply) => {
    const issuers = profiles.map((profile) => listed(profile, root))
    return listFor(reply, { issuers }, () => ({
      title: 'Misbehaving issuers',
      lead: 'Each breaks one rule. A client that follows the specifications notices; the report says which ones it believed.',
      items: issuers.map(({ id, title, issuer }) => ({
        name: id,
        text: title,
        note: issuer,
        url: `${issuer}/_dev/try`,
      })),
      empty: '',
      example: `curl -s ${root}/report`,
    }))
  })
  app.get('/issuers/report', async () => report(config.issuer, root, watched))
  app.delete('/issuers/report', async (_request, reply) => {
    for (const { conduct } of watched) conduct.clear()
    return reply.code(204).send()
  })
  app.post<{ Params: { profile: string } }>('/issuers/:profile/outcome', async ({ params, body }, reply) => {
    const outcome = requireBody(Outcome, body)
    const found = watchedAt(params.profile)
    if (found === undefined) throw missing('lychgate-dev-profile', 'there is no such profile')
    found.conduct.addOutcome(outcome)
    return reply.code(204).send()
  })
}
