import type { FastifyInstance } from 'fastify'
import type { Scope, Seconds } from '../../domain/model.ts'
import { every, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { ago } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import {
  idOfPersonalToken,
  personalTokenKind,
  personalTokenSeconds,
} from '../../users/rules/personal-token.ts'
import { isOffered, scopes } from '../operations/api-scopes.ts'
import { createPersonalToken, endPersonalToken } from '../operations/personal-tokens.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt, wasFound } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/user-tokens': AdminModel & {
      readonly name: string
      readonly tokens: readonly {
        readonly id: string
        readonly name: string
        readonly scope: Scope
        /** Absent: it was never used. */
        readonly usedAgoSeconds?: Seconds
        readonly expiresAt: Seconds
      }[]
      /** The token that was just created: it is shown this once. */
      readonly created?: string
      /** Absent where none can be created: they are those of another user, or the admin API is off. */
      readonly creation?: {
        readonly typed: { readonly name: string; readonly scope: Scope; readonly days: number }
        readonly scopes: readonly string[]
        readonly days: readonly number[]
      }
      readonly userUrl: string
    }
  }
}

/** How long a token may be used, as the form offers it. */
const offeredDays = [7, 30, 90, 365]
const secondsPerDay = 86_400

/** The personal tokens of an administrator: every administrator can revoke them, and the owner creates them. */
export function userTokensPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store } = deps
  const show = async (visit: AdminVisit, problem?: Text, created?: string) => {
    const { param, form, user, now, render } = visit
    const owner = requireFound(await store.find('user', param('id')), 'user')
    const tokens = await store.listOf(personalTokenKind, owner.id)
    const days = Number(single(form, 'days'))
    const typed = {
      name: single(form, 'name') ?? '',
      scope: every(form, 'scope'),
      days: offeredDays.includes(days) ? days : personalTokenSeconds.usual / secondsPerDay,
    }
    const creation = {
      typed: created === undefined ? typed : { ...typed, name: '', scope: [] },
      scopes: Object.keys(scopes),
      days: offeredDays,
    }
    return render(
      'admin/user-tokens',
      {
        name: owner.username,
        tokens: tokens
          .filter(({ expiresAt }) => now < expiresAt)
          .map((token) => ({
            id: idOfPersonalToken(token),
            name: token.name,
            scope: token.scope,
            ...(token.usedAt !== undefined && { usedAgoSeconds: ago(token.usedAt, now) }),
            expiresAt: token.expiresAt,
          })),
        ...(created !== undefined && { created }),
        ...(owner.id === user.id && isOffered(config) && { creation }),
        userUrl: `${service.prefix}${adminPath('users')}/${encodeURIComponent(owner.id)}`,
      },
      problem,
    )
  }
  return {
    path: '/users/:id/tokens',
    section: 'users',
    isForm: true,
    needsRecentSignIn: true,
    kept: { name: msg('admin.tokens.name'), scope: msg('admin.tokens.scope'), days: undefined },
    repeats: ['scope'],
    show: (visit) => show(visit),
    submit: async (visit) => {
      const { form, param, done } = visit
      const sub = param('id')
      const ended = single(form, 'revoke')
      if (ended !== undefined) {
        const isEnded = await wasFound(performAt(deps, visit, endPersonalToken, { sub, token_id: ended }))
        return done(isEnded ? 'token-revoked' : 'gone', `/users/${encodeURIComponent(sub)}/tokens`)
      }
      const name = (single(form, 'name') ?? '').trim()
      const scope = every(form, 'scope')
      if (name === '') return show(visit, msg('admin.tokens.noName'))
      if (scope.length === 0) return show(visit, msg('admin.tokens.noScope'))
      const expires_in = Number(single(form, 'days')) * secondsPerDay
      const body = { name, scope: scope.join(' '), expires_in }
      if (!offeredDays.includes(expires_in / secondsPerDay)) return done('gone', `/users/${sub}/tokens`)
      const { token } = await performAt(deps, visit, createPersonalToken, { sub }, body)
      return show(visit, undefined, String(token))
    },
  }
}
