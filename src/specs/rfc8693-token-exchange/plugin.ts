import { noteUse } from '../../clients/use.ts'
import { type Condition, withWrites } from '../../domain/decision.ts'
import { mintGrantId } from '../../domain/grant.ts'
import type { Plugin } from '../../feature/deps.ts'
import { tokenClaimsOf } from '../../feature/service.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { isWholeNow, stateOfToken, tokenOpener } from '../../http/token-reader.ts'
import { grantLimit } from '../../users/sessions.ts'
import { exchangeToken, readExchange, unacceptable } from './rules.ts'
import { accessTokenType, tokenExchange } from './schema.ts'

/**
 * RFC 8693 §2: the token request of grant type `token-exchange`. What is exchanged has a grant of its own, which names
 * the subject token: a token is read together with the one that it was exchanged for. rules.ts decides.
 */
export const exchangeOfTokens: Plugin<'config' | 'service' | 'store' | 'keys' | 'clock' | 'random'> = async (
  app,
  deps,
) => {
  const { config, service, store, clock, random } = deps
  const openToken = tokenOpener(deps)
  const limitGrants = grantLimit(config)
  const issuedTokenType = Promise.resolve({ issued_token_type: accessTokenType })
  app.seams.tokenMembers.add('issued_token_type', ({ grant }) =>
    grant.exchangedFrom === undefined ? undefined : issuedTokenType,
  )
  app.seams.grantTypes.add(tokenExchange, async (client, parameters, { ip, confirmation }) => {
    const now = clock()
    const request = readExchange(parameters)
    const opened = await openToken(request.subjectToken)
    if (opened === undefined) throw unacceptable('it is no token of this server')
    const exchanger = { client, confirmation, from: addressPrefix(ip) }
    const fresh = { id: mintGrantId(random(8), now), secret: random(16).toString('base64url') }
    // Whatever ends the subject token waits for this transaction, or is seen in it.
    const issued = await store.transact('grantOfToken', opened.key, (grant) => {
      const facts = stateOfToken(opened, grant, service, now)
      if (facts.kind === 'dead') throw unacceptable(facts.why)
      const { may_act: mayAct } = tokenClaimsOf(service, facts.grant, facts.grant.client) ?? {}
      const claims = [mayAct, opened.claims?.['may_act']].filter((claim) => claim !== undefined)
      const decision = exchangeToken(facts, claims, request, exchanger, service, fresh, now)
      if ('rejection' in decision) return decision
      const { grant: exchanged } = decision.result
      const why = 'its client, or a token of its chain, has lost what it had'
      const condition: Condition = {
        rule: 'rfc8693-2.2.2-invalid-subject',
        why,
        holds: (read) => isWholeNow(read, exchanged, service),
        error: () => unacceptable(why),
      }
      const writes = [...limitGrants(exchanged), ...(app.seams.exchanges.collect(exchanged, client) ?? [])]
      return noteUse(withWrites(decision, { op: 'require', condition }, ...writes), client, now)
    })
    return app.issueTokens(issued, { client, now, confirmation })
  })
}
