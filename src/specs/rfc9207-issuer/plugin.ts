import type { Plugin } from '../../feature/deps.ts'

/**
 * RFC 9207 §2: `iss` in every authorization response, success and error alike, and RFC 9207 §2.3: the metadata
 * advertises it.
 */
export const issuerIdentification: Plugin<'service'> = async (app, { service }) => {
  app.seams.metadata.add({ authorization_response_iss_parameter_supported: true })
  app.seams.responseMembers.add({ iss: service.issuer })
}
