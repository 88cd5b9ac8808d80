import fp from 'fastify-plugin'
import { lifetimesFor } from '../../domain/client-lifetimes.ts'
import type { GrantRule, GrantRules } from '../../domain/grant.ts'
import type { Client } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'

/** What applies to the grants of a client. */
export type RulesOfClient = GrantRules &
  Pick<GrantRule, 'accessTokenAlgorithm' | 'idTokenAlgorithms' | 'thinIdToken'>

declare module 'fastify' {
  interface FastifyInstance {
    /** The lifetimes of the settings, with the rules of features for this client. */
    grantRulesOf(client: Client): RulesOfClient
  }
}

/** The lifetimes of the settings and the rules of features, for one client. */
export const grantRules = fp<Needs<'config'>>(
  async (app, { config }) => {
    app.decorate('grantRulesOf', (client) => {
      const lifetimes = lifetimesFor(client, config.lifetimes)
      const demanded = app.seams.grantRules.collect(client)
      if (demanded === undefined) return lifetimes
      const { mostCodeSeconds: _, ...rules } = Object.assign({}, ...demanded) as GrantRule
      const codeSeconds = Math.min(
        lifetimes.codeSeconds,
        ...demanded.flatMap(({ mostCodeSeconds = [] }) => mostCodeSeconds),
      )
      return { ...lifetimes, codeSeconds, ...rules }
    })
  },
  { name: 'grant-rules' },
)
