import fp from 'fastify-plugin'
import type { GrantRule, GrantRules } from '../../domain/grant.ts'
import { mapDefined } from '../../domain/map-defined.ts'
import type { Client } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'

/** What applies to the grants of a client. */
export type RulesOfClient = GrantRules & Pick<GrantRule, 'accessTokenAlgorithm' | 'idTokenAlgorithms'>

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds what a feature demands of the grants of some clients; undefined: nothing of this client. */
    addGrantRule(ruleOf: (client: Client) => GrantRule | undefined): void
    /** The lifetimes of the settings, with the rules of features for this client. */
    grantRulesOf(client: Client): RulesOfClient
  }
}

/** The extension point for rules about the grants of a client. They apply when they are used: nothing is stored. */
export const grantRules = fp<Pick<AppDeps, 'config'>>(
  async (app, { config: { lifetimes } }) => {
    const added: ((client: Client) => GrantRule | undefined)[] = []
    app.decorate('addGrantRule', (ruleOf) => void added.push(ruleOf))
    app.decorate('grantRulesOf', (client) => {
      const demanded = mapDefined(added, (ruleOf) => ruleOf(client))
      if (demanded.length === 0) return lifetimes
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
