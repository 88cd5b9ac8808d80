import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyInstance } from 'fastify'
import { arrival } from '../doctor/arrival.ts'
import { forwarding } from '../doctor/forwarding.ts'
import { openDefinitions } from '../feature/definitions.ts'
import type { AppOptions, Deps } from '../feature/deps.ts'
import { registerAll } from '../feature/feature.ts'
import { closeSeams, createSeams } from '../feature/seams.ts'
import { declared, registerFeatures } from '../features.ts'
import { protectedApi } from '../guard/protected-api/plugin.ts'
import { adminListener } from '../http/admin-listener.ts'
import { tracedWork } from '../http/after-response.ts'
import { clientAuthentication } from '../http/client-authentication.ts'
import { clientKeys } from '../http/client-keys.ts'
import { cookies } from '../http/cookies.ts'
import { anyOrigin, openToAnyOrigin } from '../http/cross-origin.ts'
import { currentDefinitions } from '../http/current-definitions.ts'
import { documentsFirst } from '../http/documents-first.ts'
import { drain, health } from '../http/drain.ts'
import { endpoints } from '../http/endpoints.ts'
import { errorMapper, notFound, sendError } from '../http/errors.ts'
import { securityHeaders } from '../http/headers.ts'
import { jsonBodies } from '../http/json-bodies.ts'
import { loadShedding } from '../http/load-shedding.ts'
import { logLines, requestLog } from '../http/log.ts'
import { wellFormedHttp } from '../http/malformed-http.ts'
import { methods } from '../http/methods.ts'
import { apiDescription } from '../http/openapi.ts'
import { parameterParser } from '../http/parameters.ts'
import { rateLimits } from '../http/rate-limits.ts'
import { serverOptions } from '../http/server-options.ts'
import { rejectionRecord } from '../observability/rejection-record.ts'
import { accountPages } from '../pages/account/plugin.ts'
import { clientLogo } from '../pages/client-logo.ts'
import { announcing } from '../pages/emails/notices.ts'
import { emails } from '../pages/emails/plugin.ts'
import { homePage } from '../pages/home.ts'
import { languageChoice } from '../pages/language-choice.ts'
import { oneTimeLinks } from '../pages/links/plugin.ts'
import { errorPage, showErrorsAsPages } from '../pages/page-errors.ts'
import { pages } from '../pages/pages.ts'
import { interactionStarter } from '../pages/sign-in/pending.ts'
import { interaction } from '../pages/sign-in/plugin.ts'
import { authorize } from '../specs/rfc6749-authorization/authorize.ts'
import { token } from '../specs/rfc6749-authorization/token.ts'
import { metadataDocuments } from '../specs/rfc8414-metadata/plugin.ts'
import { publishedKeys } from '../specs/rfc8414-metadata/published-keys.ts'
import { browser } from '../users/browser.ts'
import { failedSignIns } from '../users/failed-sign-ins.ts'
import { appDepsOf } from './app-deps.ts'
import { keyUpkeep, sweeper } from './maintenance.ts'

/**
 * Builds the application: the core in the order of its dependencies, and the features of features.ts. Endpoints are
 * below the path of the issuer; well-known documents choose their own paths.
 */
export async function buildApp(baseDeps: Deps, options: AppOptions = {}): Promise<FastifyInstance> {
  const { development, observe, logTo: lines = logLines(), origins } = options
  const definitions = await openDefinitions(baseDeps.store, baseDeps.config, declared.scopes)
  const currentDeps = { ...baseDeps, config: definitions.config }
  const recorded = development?.withRecording(currentDeps)
  const base = recorded?.deps ?? currentDeps
  const notices = announcing(base.config, base.store, (line) => app.log.error(line), tracedWork)
  const deps = appDepsOf(
    notices ? { ...base, store: notices.store } : base,
    definitions,
    development,
    origins,
  )
  const { config, service } = deps
  const below = { ...deps, prefix: service.prefix }
  const app = Fastify(
    serverOptions(config, parameterParser(config.limits), lines),
  ).withTypeProvider<TypeBoxTypeProvider>()
  app.decorate('seams', createSeams(deps.declared))
  if (notices !== undefined) app.addHook('onClose', notices.settled)
  await observe?.(app)
  await recorded?.observe(app)

  // Decorators and hooks that everything else builds on.
  await registerAll(app, deps, [methods, errorMapper, clientAuthentication])
  await app.register(requestLog, { lines })
  await app.register(currentDefinitions, deps)
  await app.register(rejectionRecord, deps)
  await app.register(drain, { seconds: config.drainSeconds })
  await app.register(loadShedding)
  await registerAll(app, deps, [
    jsonBodies,
    securityHeaders,
    anyOrigin,
    arrival,
    forwarding,
    wellFormedHttp,
    adminListener,
  ])
  await registerAll(app, below, [failedSignIns, rateLimits, pages, endpoints, cookies, browser])
  await registerAll(app, deps, [clientKeys, interactionStarter, emails])
  await registerFeatures(app, deps)
  if (development !== undefined) await app.register(development.plugin, deps)

  // Pages for users: no cross-origin calls, and every error is a page.
  await app.register(async (scope) => {
    showErrorsAsPages(scope)
    app.rejectPagesLast(scope)
    scope.addHook('preHandler', app.browser.replaceFormerCookies)
    await registerAll(scope, below, [
      authorize,
      clientLogo,
      interaction,
      oneTimeLinks,
      accountPages,
      languageChoice,
    ])
    await registerFeatures(scope, deps, 'browsers')
    if (development === undefined) await scope.register(homePage, below)
  })

  // Endpoints for clients, from any origin.
  await app.register(async (scope) => {
    await scope.register(openToAnyOrigin)
    if (development === undefined) await scope.register(documentsFirst, deps)
    await scope.register(token, below)
    await registerFeatures(scope, deps, 'clients')
    await registerAll(scope, below, [publishedKeys, apiDescription, protectedApi])
    await scope.register(metadataDocuments, deps)
  })

  await registerAll(app, deps, [health, sweeper, keyUpkeep])
  app.setNotFoundHandler((request, reply) => {
    if (app.anyOrigin?.isPreflight(request)) return app.anyOrigin.preflight(request, reply)
    app.anyOrigin?.shareError(reply)
    const error = notFound(app, request)
    const fromBrowser = request.headers.accept?.includes('text/html') ?? false
    return fromBrowser ? errorPage(error, reply) : sendError(error, reply)
  })
  app.addHook('onReady', async () => closeSeams(app.seams))
  app.log.debug({ issuer: service.issuer }, 'composed')
  return app
}
