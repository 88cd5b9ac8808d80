import type { Client } from '../../domain/model.ts'
import type { Plugin } from '../../feature/deps.ts'
import { clientOf } from '../../http/client-authentication.ts'
import { parametersOf } from '../../http/parameters.ts'
import {
  assertAuthentication,
  assertBound,
  assertRequest,
  extraOfPush,
  grantRule,
  isProfiled,
  narrowMetadata,
  profileName,
  signsMessages,
} from './rules.ts'

/**
 * FAPI 2.0 Security Profile §5.3.2 and §5.4 for the clients that must conform to it. Each request is checked as it
 * comes, whatever the client was when an operator chose it: who authenticates, what is pushed, and what proves a key.
 * The rest of the profile is how this server treats every client.
 */
export const securityProfile: Plugin<'config' | 'service'> = async (app, { config, service }) => {
  const isConcerned = (client: Client) => isProfiled(client, config.profile)
  app.seams.authenticatedClient.add((authenticated) => {
    if (isConcerned(authenticated.client)) assertAuthentication(authenticated, service.issuer)
  })
  app.seams.pushReaders.add((request) =>
    isConcerned(clientOf(request))
      ? extraOfPush(parametersOf(request.body), signsMessages(clientOf(request)))
      : undefined,
  )
  app.seams.requestChecks.add((client, extra, parameters) => {
    if (isConcerned(client)) assertRequest(client, extra, parameters)
  })
  app.seams.confirmationChecks.add((client, confirmation) => {
    if (isConcerned(client)) assertBound(confirmation)
  })
  if (config.profile === profileName) app.seams.publishedMetadata.add(narrowMetadata)
  app.seams.grantRules.add((client) => (isConcerned(client) ? grantRule : undefined))
}
