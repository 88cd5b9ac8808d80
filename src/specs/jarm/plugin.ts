import { offeredAlgorithms } from '../../domain/key-term.ts'
import type { Plugin } from '../../feature/deps.ts'
import { assertMode, registeredAlgorithm, responseClaims, responseModes } from './rules.ts'

/**
 * JARM §2: authorization responses as one JWT, signed by this server. Its `iss` takes the place of the parameter of
 * RFC 9207.
 */
export const jarm: Plugin<'config' | 'keys' | 'clock' | 'service'> = async (
  app,
  { config, keys, clock, service },
) => {
  app.seams.metadata.add({ authorization_signing_alg_values_supported: offeredAlgorithms(config.keys) })
  app.seams.requestChecks.add((client, _extra, parameters) => assertMode(client, parameters))
  for (const mode of Object.keys(responseModes))
    app.seams.responseModes.add(mode, async (members, client) => {
      const usual = app.grantRulesOf(client).idTokenAlgorithms?.[0]
      const algorithm = keys.usable(registeredAlgorithm(client) ?? usual ?? 'RS256', usual)
      const claims = responseClaims(members, service.issuer, client, clock())
      return { response: await keys.sign(algorithm, 'JWT', claims) }
    })
}
