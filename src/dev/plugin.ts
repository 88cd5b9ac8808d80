/**
 * The development server, which adds its parts to the application. No production server loads it, and the application
 * does not know it. The routes below /_dev are in one scope that accepts only JSON, and only requests from this
 * computer.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { buildApp } from '../app/app.ts'
import type { Config } from '../config/schema.ts'
import type { AppDeps, AppOptions, Development } from '../feature/deps.ts'
import { features } from '../features.ts'
import { acceptOnlyJson } from '../http/json-bodies.ts'
import { formBodies } from '../http/parameters.ts'
import { keyPolicy } from '../keys/key-policy.ts'
import { openKeyRing } from '../keys/key-ring.ts'
import { showErrorsAsPages } from '../pages/page-errors.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { isMovable, type MovableClock, movableClock } from './clock.ts'
import { clockRoutes } from './clock-routes.ts'
import { devPages } from './dev-pages.ts'
import { docsPage } from './docs.ts'
import { documentRoutes } from './documents.ts'
import { faultHooks, faultRoutes } from './faults.ts'
import { withRecording } from './flows/recorder.ts'
import { flowRoutes } from './flows/routes.ts'
import { misbehavingIssuers } from './issuers/plugin.ts'
import { bodyBytes } from './json-body.ts'
import { tokenRoutes } from './mint.ts'
import { mounts } from './mount.ts'
import { onlyKnownHosts, onlyLocal } from './only-local.ts'
import type { DevDeps } from './part.ts'
import { shortcutsOf } from './shortcuts.ts'
import { requestHold, snapshotRoutes } from './snapshots.ts'
import { startPage } from './start-page.ts'
import { tryRoutes } from './try/routes.ts'
import { withKnownPasswords } from './users.ts'

/** Decorators and hooks of the development server, and its routes. */
const plugin = fp<AppDeps>(
  async (app, { clock, ...rest }) => {
    if (!isMovable(clock)) throw new TypeError('a development server needs a clock that can be moved')
    const deps: DevDeps = {
      ...rest,
      clock,
      isNested: rest.service.prefix.includes('/_dev/'),
      buildNested: (own) => buildApp(own, { development, logTo: { write: () => {} } }),
    }
    const repeated = new Set<() => Promise<void>>()
    app.decorate('repeated', repeated)
    const forget = clock.whenMoved(async () => {
      for (const work of repeated) await work()
    })
    app.addHook('onClose', async () => forget())
    app.addHook('onRequest', onlyKnownHosts(deps.config))
    app.decorate('shortcuts', shortcutsOf(deps))
    await app.register(requestHold)
    if (!deps.isNested) await app.register(mounts, deps)
    await app.register(faultHooks, deps)

    await app.register(
      async (scope) => {
        acceptOnlyJson(scope, deps.config, bodyBytes)
        scope.addHook('onRequest', onlyLocal(deps.config))
        await scope.register(clockRoutes, deps)
        await scope.register(tokenRoutes, deps)
        await scope.register(documentRoutes, deps)
        await scope.register(faultRoutes, deps)
        await scope.register(snapshotRoutes, deps)
        for (const { loadDevelopment } of features) {
          if (loadDevelopment !== undefined) await scope.register(await loadDevelopment(), deps)
        }
        if (!deps.isNested) await scope.register(misbehavingIssuers, deps)
      },
      { prefix: `${deps.service.prefix}/_dev` },
    )

    // Pages for a browser on this computer.
    const { prefix } = deps.service
    await app.register(devPages, { prefix })
    await app.register(
      async (scope) => {
        showErrorsAsPages(scope)
        scope.addHook('onRequest', onlyLocal(deps.config))
        await scope.register(formBodies, deps)
        await scope.register(startPage, deps)
        await scope.register(flowRoutes, deps)
        await scope.register(tryRoutes, deps)
        await scope.register(docsPage, deps)
      },
      { prefix },
    )
  },
  { name: 'development' },
)

/** What `buildApp` needs to build a development server. */
export const development: Development = { withKnownPasswords, withRecording, plugin }

/** What a development server is built from. */
interface DevelopmentParts {
  readonly config: Config
  readonly store: Store
  /** What the keys are sealed with: a secret, or the key derived from one. */
  readonly secret: string | Promise<Buffer>
  readonly clock?: MovableClock
  readonly logTo?: AppOptions['logTo']
}

/** Builds a development server that does not listen yet, with the keys of this store or new ones. */
export async function openDevelopmentApp({
  config,
  store,
  secret,
  clock = movableClock(systemClock),
  logTo,
}: DevelopmentParts): Promise<FastifyInstance> {
  const random = systemRandom
  const sources = { store, secret, policy: keyPolicy(config), clock, random, server: 'development' } as const
  const { keys, opened } = openKeyRing(sources)
  const [app] = await Promise.all([
    buildApp({ config, store, keys, clock, random }, { development, ...(logTo && { logTo }) }),
    opened,
  ])
  return app
}
