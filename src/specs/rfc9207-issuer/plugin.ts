import fp from 'fastify-plugin'
import type { AppDeps } from '../../feature/deps.ts'

/**
 * RFC 9207 §2: `iss` in every authorization response, success and error alike, and RFC 9207 §2.3: the metadata
 * advertises it.
 */
export const issuerIdentification = fp<AppDeps>(
  async (app, { service }) => {
    app.advertise({ authorization_response_iss_parameter_supported: true })
    app.addAuthorizationResponseMembers({ iss: service.issuer })
  },
  { name: 'issuer-identification', dependencies: ['authorization-response', 'metadata'] },
)
