import { Type } from '@sinclair/typebox'
import { requireBody } from '../json-body.ts'
import type { DevPart } from '../plugin.ts'
import type { Issuers } from './issuers.ts'

const Outcome = Type.Object(
  {
    outcome: Type.Union([Type.Literal('rejected'), Type.Literal('fooled')]),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { additionalProperties: false },
)

/**
 * Issuers that lie: `/issuers` lists them, `/issuers/{profile}` is one of them, `/issuers/report` says what clients made
 * of their lies, and `/issuers/{profile}/outcome` takes a client's own word.
 */
export const misbehavingIssuers: DevPart = async (app, deps) => {
  const { config, service } = deps
  let made: Promise<Issuers> | undefined
  // Most development servers never use misbehaving issuers: they are loaded on first use.
  const issuers = () => {
    made ??= import('./issuers.ts').then(
      (module) => new module.Issuers(deps, `${config.issuer}/_dev/issuers`, app.mounts.outer),
    )
    return made
  }
  app.addHook('onClose', async () => (await made)?.close())
  app.mounts.add(`${service.prefix}/_dev/issuers`, async (name, rest) =>
    name === 'report' || rest === '/outcome' ? undefined : (await issuers()).app(name),
  )

  app.get('/issuers', async () => ({ issuers: (await issuers()).list() }))
  app.get('/issuers/report', async () => (await issuers()).report())
  app.delete('/issuers/report', async (_request, reply) => {
    ;(await made)?.forget()
    return reply.code(204).send()
  })
  app.post<{ Params: { profile: string } }>('/issuers/:profile/outcome', async ({ params, body }, reply) => {
    const told = requireBody(Outcome, body)
    const all = await issuers()
    all.tell(params.profile, told)
    return reply.code(204).send()
  })
}
