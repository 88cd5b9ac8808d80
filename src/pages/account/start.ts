import type { FastifyInstance } from 'fastify'
import type { MemberStart } from '../../clients/members.ts'
import type { AccessFacts } from '../../domain/access.ts'
import { accept } from '../../domain/decision.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Client } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { parametersOf } from '../../http/parameters.ts'
import { factorsOf, userCredentials } from '../../users/factors.ts'
import { groupsOf } from '../../users/groups.ts'
import { endSessions } from '../../users/rules/operator-acts.ts'
import { clientLogoUrl } from '../client-logo.ts'
import { startUrl } from '../describe.ts'
import { type AccountModel, type AccountPage, sectionPath, type Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-start': AccountModel & {
      /** By name. */
      readonly apps: readonly StartableApp[]
      /** Where the user sets up the factor that further apps require; absent: none does. */
      readonly securityUrl?: string
      readonly nextUrl?: string
    }
  }
}

/** An app that the user may open. */
interface StartableApp {
  /** That of its host if it has none. */
  readonly name: string
  readonly url: string
  readonly host: string
  /** Its logo, from this server. */
  readonly logoUrl?: string
}

/** How many clients a page looks at, so that no number of them makes it slow. */
const clientsOnPage = 200

/**
 * The apps that a user may open: those that an operator added and gave a page to start at, which are not locked, and
 * which the rules of access let this user use. No client that registered itself is among them: it chose its name and
 * its links itself. Also ends every session of the user.
 */
export function startPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { config, declared, service, store } = deps
  const path = sectionPath('start')
  const rules = declared.accessRules.map((ruleOf) => ruleOf(config))

  const started = Object.entries(declared.clientMetadata).filter(([, { startOf }]) => startOf !== undefined)
  /** Returns where a member of a client says that it is opened, such as the host that it protects. */
  const memberStart = ({ extra }: Client, facts: AccessFacts): MemberStart | undefined => {
    const [name, member] = started.find(([name]) => extra?.[name] !== undefined) ?? []
    return name === undefined ? undefined : member?.startOf?.(extra?.[name], facts)
  }
  /** Judges a client as `lychgate explain access` does. `lacking`: a factor is all that is missing. */
  const judge = (client: Client, facts: AccessFacts): 'open' | 'closed' | 'lacking' => {
    const failed = rules.map((rule) => rule.judge({ ...facts, client })).filter(({ passed }) => !passed)
    if (failed.length === 0) return 'open'
    return failed.every(({ lacks }) => lacks !== undefined) ? 'lacking' : 'closed'
  }
  const describe = async (client: Client, url: URL, language: string): Promise<StartableApp> => {
    const logoUrl = await clientLogoUrl(app, deps, client)
    const { name = url.host } = clientWords(client, language)
    return { name, url: url.href, host: url.host, ...(logoUrl !== undefined && { logoUrl }) }
  }

  const show = async ({ user, now, request, render }: Visit) => {
    const { language } = request
    const [groups, factors, rows] = await Promise.all([
      groupsOf(store, user.id),
      factorsOf(deps, user.id),
      store.page('client', {
        limit: clientsOnPage + 1,
        after: readCursor(single(parametersOf(request.query), 'after')),
        only: 'integration',
      }),
    ])
    const shown = rows.slice(0, clientsOnPage)
    const startable = shown.flatMap(({ row: client }) => {
      const facts = { groups, factors, now }
      const start = memberStart(client, facts)
      const url = startUrl(client, language, service.issuer) ?? (start && new URL(start.url))
      if (url === undefined || client.lockedAt !== undefined || client.redirectUris.length === 0) return []
      const access = judge(client, facts)
      return [{ client, url, access: access === 'open' ? (start?.access ?? 'open') : access }]
    })
    const open = startable.filter(({ access }) => access === 'open')
    const apps = await Promise.all(open.map(({ client, url }) => describe(client, url, language)))
    const last = shown.at(-1)
    return render('account-start', {
      apps: apps.toSorted((one, other) => one.name.localeCompare(other.name, language)),
      ...(startable.some(({ access }) => access === 'lacking') && {
        securityUrl: service.prefix + sectionPath('security'),
      }),
      ...(rows.length > shown.length &&
        last !== undefined && { nextUrl: `${service.prefix}${path}?after=${cursorOf(last.seq)}` }),
    })
  }

  return {
    path,
    section: 'start',
    show,
    submit: async ({ user, form, context, reply, done }) => {
      if (single(form, 'everywhere') === undefined) return done('gone')
      await store.transact(userCredentials, user.id, (credentials) =>
        credentials === undefined ? accept(0) : endSessions(credentials.user, credentials.sessions, context),
      )
      app.browser.dropSession(reply)
      // Without a session it says that the user is signed out.
      return reply.redirect(`${service.prefix}/oauth/logout`, 303)
    },
  }
}
