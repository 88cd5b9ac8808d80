import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance } from 'fastify'
import { rejectionRecord } from './audit/rejection-record.ts'
import type { AppDeps, Deps } from './deps.ts'
import { type FeaturePlugin, joined } from './feature.ts'
import { clientMembers, features } from './features.ts'
import { clientAuthentication } from './http/client-authentication.ts'
import { drain, health } from './http/drain.ts'
import { endpoints } from './http/endpoints.ts'
import { errorMapper, notFound, sendError } from './http/errors.ts'
import { anyOrigin, securityHeaders } from './http/headers.ts'
import { requestLog } from './http/log.ts'
import { wellFormedHttp } from './http/malformed-http.ts'
import { methods } from './http/methods.ts'
import { apiDescription } from './http/openapi.ts'
import { parameterParser } from './http/parameters.ts'
import { probes } from './http/probe.ts'
import { rateLimits } from './http/rate-limits.ts'
import { serverOptions } from './http/server-options.ts'
import { emails } from './mail/plugin.ts'
import { keyUpkeep, sweeper } from './maintenance.ts'
import { ownGuard } from './own-guard.ts'
import { accountPages } from './pages/account/plugin.ts'
import { homePage } from './pages/home.ts'
import { oneTimeLinks } from './pages/links/plugin.ts'
import { errorPage, showErrorsAsPages } from './pages/page-errors.ts'
import { pages } from './pages/pages.ts'
import { interaction } from './pages/sign-in/plugin.ts'
import { interactionStarter } from './pages/sign-in/start-interaction.ts'
import { protectedApi } from './protected-api/plugin.ts'
import { approval } from './rfc6749-authorization/approval.ts'
import { authorizationRequests } from './rfc6749-authorization/authorization-requests.ts'
import { authorizationResponse } from './rfc6749-authorization/authorization-response.ts'
import { authorize } from './rfc6749-authorization/authorize.ts'
import { authorizationCodeGrant } from './rfc6749-authorization/grants/authorization-code.ts'
import { refreshTokenGrant } from './rfc6749-authorization/grants/refresh-token.ts'
import { AuthorizationParameters } from './rfc6749-authorization/schema.ts'
import { grantTypes, token } from './rfc6749-authorization/token.ts'
import { metadata, metadataDocuments } from './rfc8414-metadata/plugin.ts'
import { publishedKeys } from './rfc8414-metadata/published-keys.ts'
import { describeService } from './service.ts'
import { browser } from './users/browser.ts'
import { createPasswordQueue, type PasswordCheck } from './users/passwords.ts'

export interface AppOptions {
  /** Sees every route as it is registered; scripts/openapi.ts writes the API description with it. */
  readonly observe?: (app: FastifyInstance) => Promise<void>
  /** Where log lines go instead of standard output. */
  readonly logTo?: { write(line: string): void }
  /** What makes it a development server; a production configuration rejects it. */
  readonly development?: Development
}

/** What a development server adds to the application. The application does not know it otherwise. */
export interface Development {
  readonly withKnownPasswords: (check: PasswordCheck) => PasswordCheck
  readonly withRecording: (deps: Deps) => {
    readonly deps: Deps
    readonly observe: (app: FastifyInstance) => Promise<void>
  }
  readonly plugin: FeaturePlugin
}

/**
 * The composition root: the core in the order in which it depends on each other, and the features of features.ts.
 * Endpoints live below the path of the issuer; well-known documents know their own places.
 */
export async function buildApp(given: Deps, options: AppOptions = {}): Promise<FastifyInstance> {
  const { config } = given
  const { development } = options
  if (development !== undefined && config.mode !== 'dev')
    throw new Error('a production server has nothing of a development server')
  const service = describeService(config)
  const checkHash = createPasswordQueue(config.passwordQueue)
  const recorded = development?.withRecording(given)
  const own = recorded?.deps ?? given
  const deps: AppDeps = {
    ...own,
    service,
    checkPassword: development?.withKnownPasswords(checkHash) ?? checkHash,
    clientMembers,
    authorizationParameters: Type.Object({
      ...AuthorizationParameters.properties,
      ...joined(features, ({ authorizationParameters }) => authorizationParameters),
    }),
    tokenMembers: joined(features, ({ tokenMembers }) => tokenMembers),
    guard: ownGuard({ ...own, service }),
  }
  const { prefix, https, issuer } = service

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
  await app.register(authorizationResponse)
  await app.register(authorizationRequests, deps)
  await app.register(browser, deps)
  await app.register(interactionStarter, deps)
  await app.register(emails, deps)
  await app.register(approval, deps)
  await app.register(grantTypes)
  if (development !== undefined) await app.register(development.plugin, deps)

  const registerFeatures = async (scope: FastifyInstance, callers?: 'clients' | 'browsers') => {
    for (const feature of features.filter((one) => one.callers === callers)) {
      const plugin = await feature.load()
      if (callers === undefined || feature.atOrigin) await scope.register(plugin, deps)
      else await scope.register(async (below) => below.register(plugin, deps), { prefix })
    }
  }
  await registerFeatures(app)

  // What users see: no cross-origin calls, and every rejection is a page.
  await app.register(async (scope) => {
    showErrorsAsPages(scope)
    await scope.register(authorize, { ...deps, prefix })
    await scope.register(interaction, { ...deps, prefix })
    await scope.register(oneTimeLinks, { ...deps, prefix })
    await scope.register(accountPages, { ...deps, prefix })
    await registerFeatures(scope, 'browsers')
    if (development === undefined) await scope.register(homePage, { ...deps, prefix })
  })

  // What clients call, from any origin.
  await app.register(async (scope) => {
    await scope.register(anyOrigin)
    await scope.register(token, { ...deps, prefix })
    await scope.register(authorizationCodeGrant, deps)
    await scope.register(refreshTokenGrant, deps)
    await registerFeatures(scope, 'clients')
    await scope.register(publishedKeys, { ...deps, prefix })
    await scope.register(apiDescription, { ...deps, prefix })
    await scope.register(protectedApi, { ...deps, prefix })
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
