/**
 * What only `lychgate dev` has. No production server loads it, and the application does not know it. Everything that answers JSON lives
 * below /_dev in one scope that takes JSON only and answers this computer only; each part registers itself there.
 */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { buildApp, type Development } from '../app.ts'
import type { AppDeps, Deps } from '../deps.ts'
import { formBodies } from '../http/parameters.ts'
import { showErrorsAsPages } from '../pages/page-errors.ts'
import { isMovable, type MovableClock } from './clock.ts'
import { clockRoutes } from './clock-routes.ts'
import { devPages } from './dev-pages.ts'
import { docsPage } from './docs/plugin.ts'
import { faultHooks, faultRoutes } from './fault-routes.ts'
import { withRecording } from './flows/recorder.ts'
import { flowRoutes } from './flows/routes.ts'
import { misbehavingIssuers } from './issuers/plugin.ts'
import { acceptOnlyJson } from './json-body.ts'
import { mounts } from './mount.ts'
import { onlyKnownHosts, onlyLocal } from './only-local.ts'
import { shortcutsOf } from './shortcuts.ts'
import { requestHold, snapshotRoutes } from './snapshot-routes.ts'
import { startPage } from './start-page.ts'
import { tokenRoutes } from './token-routes.ts'
import { tryRoutes } from './try/routes.ts'
import { withKnownPasswords } from './users.ts'

/**
 * The dependencies of the parts of a development server: those of the application, and a clock that can be moved.
 */
export interface DevDeps extends AppDeps {
  readonly clock: MovableClock
  /** It is mounted below /_dev of another development server, with a store of its own. */
  readonly isNested: boolean
  /** Builds another development server, to be mounted below this one. Its requests are lines of the outer log. */
  buildNested(deps: Deps): Promise<FastifyInstance>
}

/** A part of the development server with JSON routes; its paths are below `/_dev`. */
export type DevPart = FastifyPluginAsync<DevDeps>

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
        acceptOnlyJson(scope)
        scope.addHook('onRequest', onlyLocal(deps.config))
        await scope.register(clockRoutes, deps)
        await scope.register(tokenRoutes, deps)
        await scope.register(faultRoutes, deps)
        await scope.register(snapshotRoutes, deps)
        if (!deps.isNested) await scope.register(misbehavingIssuers, deps)
      },
      { prefix: `${deps.service.prefix}/_dev` },
    )

    // What a developer looks at, in a browser on this computer.
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

/** What makes an application a development server. */
export const development: Development = { withKnownPasswords, withRecording, plugin }
