import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyInstance } from 'fastify'
import { accountPages } from './account/plugin.ts'
import type { AppDeps, Deps } from './deps.ts'
import { type Access, guard, type Refused } from './guard/guard.ts'
import { browser } from './http/browser.ts'
import { clientAuthentication } from './http/client-authentication.ts'
import { drain } from './http/drain.ts'
import { endpoints } from './http/endpoints.ts'
import { errorMapper, notFound, sendError } from './http/errors.ts'
import { anyOrigin, securityHeaders } from './http/headers.ts'
import { health } from './http/health.ts'
import { homePage } from './http/home.ts'
import { keyUpkeep } from './http/key-upkeep.ts'
import { requestLog } from './http/log.ts'
import { methods } from './http/methods.ts'
import { apiDescription } from './http/openapi.ts'
import { errorPage, showErrorsAsPages } from './http/page-errors.ts'
import { pages } from './http/pages.ts'
import { parameterParser } from './http/parameters.ts'
import { probes } from './http/probe.ts'
import { rateLimits } from './http/rate-limits.ts'
import { rejectionRecord } from './http/rejection-record.ts'
import { serverOptions } from './http/server-options.ts'
import { interactionStarter } from './http/start-interaction.ts'
import { sweeper } from './http/sweeper.ts'
import { tokenReader } from './http/token-reader.ts'
import { wellFormedHttp } from './http/well-formed-http.ts'
import { interaction } from './interaction/plugin.ts'
import { emails } from './mail/plugin.ts'
import { publishedKeys } from './oidc-core/keys.ts'
import { userInfo } from './oidc-core/userinfo.ts'
import { logout } from './oidc-logout/plugin.ts'
import { oneTimeLinks } from './one-time-links/plugin.ts'
import { createPasswordQueue } from './passwords.ts'
import { protectedApi } from './protected-api/plugin.ts'
import { approval } from './rfc6749-authorization/approval.ts'
import { authorize } from './rfc6749-authorization/authorize.ts'
import { authorizationCodeGrant } from './rfc6749-authorization/grants/authorization-code.ts'
import { refreshTokenGrant } from './rfc6749-authorization/grants/refresh-token.ts'
import { grantTypes, token } from './rfc6749-authorization/token.ts'
import { revocation } from './rfc7009-revocation/plugin.ts'
import { registration } from './rfc7591-registration/plugin.ts'
import { introspection } from './rfc7662-introspection/plugin.ts'
import { metadata, metadataDocuments } from './rfc8414-metadata/plugin.ts'
import { issuerIdentification } from './rfc9207-issuer/plugin.ts'
import { resourceMetadata } from './rfc9728-resource-metadata/plugin.ts'
import { describeService } from './service.ts'

export interface AppOptions {
  /** Sees every route as it is registered; scripts/openapi.ts writes the API description with it. */
  readonly observe?: (app: FastifyInstance) => Promise<void>
  /** Where log lines go instead of standard output. */
  readonly logTo?: { write(line: string): void }
}

/**
 * The composition root: the only place that knows every part, one line each. Endpoints live below the path of the
 * issuer; well-known documents know their own places.
 */
export async function buildApp(given: Deps, options: AppOptions = {}): Promise<FastifyInstance> {
  const { config } = given
  const service = describeService(config)
  // What only a development server has: no other loads it.
  const dev = config.mode === 'dev' ? await import('./dev/plugin.ts') : undefined
  const checkHash = createPasswordQueue(config.passwordQueue)
  const checkPassword = dev?.withKnownPasswords(checkHash) ?? checkHash
  const recorded = dev?.withRecording(given)
  const deps: AppDeps = { ...(recorded?.deps ?? given), service, checkPassword }
  const { prefix, https, issuer, resources, resourceMetadataUrl } = service

  const app = Fastify(
    serverOptions(config, parameterParser(config.limits), options.logTo),
  ).withTypeProvider<TypeBoxTypeProvider>()
  await options.observe?.(app)
  await recorded?.observe(app)

  // Decorators and hooks everything else builds on.
  await app.register(methods)
  await app.register(errorMapper)
  await app.register(clientAuthentication)
  await app.register(requestLog)
  await app.register(rejectionRecord, deps)
  await app.register(probes, deps)
  await app.register(drain, { seconds: config.drainSeconds })
  await app.register(securityHeaders, { https })
  await app.register(wellFormedHttp)
  await app.register(rateLimits, { config, prefix })
  await app.register(pages, { config, prefix })
  await app.register(metadata)
  await app.register(endpoints, deps)
  await app.register(issuerIdentification, deps)
  await app.register(browser, deps)
  await app.register(interactionStarter, deps)
  await app.register(emails, deps)
  await app.register(approval, deps)
  await app.register(grantTypes)
  if (dev !== undefined) await app.register(dev.development, deps)

  // What users see: no cross-origin calls, and every rejection is a page.
  await app.register(async (scope) => {
    showErrorsAsPages(scope)
    await scope.register(authorize, { ...deps, prefix })
    await scope.register(interaction, { ...deps, prefix })
    await scope.register(logout, { ...deps, prefix })
    await scope.register(oneTimeLinks, { ...deps, prefix })
    await scope.register(accountPages, { ...deps, prefix })
    if (dev === undefined) await scope.register(homePage, { ...deps, prefix })
  })

  // What clients call, from any origin.
  await app.register(async (scope) => {
    await scope.register(anyOrigin)
    await scope.register(token, { ...deps, prefix })
    await scope.register(authorizationCodeGrant, deps)
    await scope.register(refreshTokenGrant, deps)
    await scope.register(registration, { ...deps, prefix })
    await scope.register(revocation, { ...deps, prefix })
    await scope.register(introspection, { ...deps, prefix })
    await scope.register(publishedKeys, { ...deps, prefix })
    await scope.register(apiDescription, { ...deps, prefix })

    const readToken = tokenReader(deps)
    const verifyToken = async (text: string): Promise<Access | Refused> => {
      const facts = await readToken(text, deps.clock())
      if (facts.kind === 'dead') return { refused: facts.why }
      if (facts.kind === 'refresh') return { refused: 'it is a refresh token' }
      const { grant, scope, resource: audience } = facts
      return {
        sub: grant.userId,
        clientId: grant.clientId,
        scope,
        audience,
        requestedClaims: grant.claims,
      }
    }
    const guarded = { verifyToken, resource: resources.own.identifier, resourceMetadata: resourceMetadataUrl }
    await scope.register(async (person) => {
      await person.register(guard, { ...guarded, anonymous: 'challenge', formToken: true })
      await person.register(userInfo, { ...deps, prefix })
    })
    await scope.register(async (api) => {
      await api.register(guard, { ...guarded, anonymous: 'allow' })
      await api.register(protectedApi, { ...deps, prefix })
    })
    await scope.register(resourceMetadata, deps)
    await scope.register(metadataDocuments, deps)
  })

  await app.register(health, deps)
  await app.register(sweeper, deps)
  await app.register(keyUpkeep, deps)
  app.setNotFoundHandler((request, reply) => {
    const rejection = notFound(app, request)
    const fromBrowser = request.headers.accept?.includes('text/html') ?? false
    return fromBrowser ? errorPage(rejection, reply) : sendError(rejection, reply)
  })
  app.log.debug({ issuer }, 'composed')
  return app
}
