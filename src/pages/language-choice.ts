/** The choice of a language at the foot of every page, which a cookie keeps, and the profile of who is signed in. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import { accept } from '../domain/decision.ts'
import { chooseLanguage } from '../domain/language.ts'
import type { User } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import { isSameText } from '../domain/secret.ts'
import type { Plugin } from '../feature/deps.ts'
import { userContext } from '../http/address-prefix.ts'
import { parametersOf } from '../http/parameters.ts'
import { editProfile } from '../users/rules/edit-profile.ts'
import { acceptOwnForms } from './forms.ts'
import { findSignedIn } from './kit.ts'
import type { LanguageForm } from './pages.ts'

const path = '/language'
const purpose = 'language'
const yearSeconds = 365 * 86_400
/** Pages with longer addresses are returned to without their query. */
const longestReturn = 2000

/** Serves the form, and sets `app.languageChoice`, from which pages take it. */
export const languageChoice: Plugin<'config' | 'store' | 'clock' | 'service'> = async (app, deps) => {
  const { service, store, clock } = deps
  const { languages } = app.texts
  const origin = new URL(service.issuer).origin
  const nameOf = (language: string) => {
    const name = new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language
    return name.charAt(0).toLocaleUpperCase(language) + name.slice(1)
  }
  // At the first page: loading the names of languages is 4 % of a start.
  let options: LanguageForm['options'] | undefined
  const named = () => {
    options ??= languages.map((language) => ({ language, name: nameOf(language) }))
    return options
  }
  const csrfOf = (request: FastifyRequest) =>
    app.browser.csrfToken(app.browser.secret(request) ?? '', purpose)

  Object.assign(app.languageChoice, {
    read: (request: FastifyRequest) => {
      const chosen = app.cookies.read(request, 'language')
      return languages.find((language) => language === chosen)
    },
    follow: (reply: FastifyReply, { claims }: User) => {
      const language = languages.find((each) => each === claims['locale'])
      const isChosen = app.cookies.read(reply.request, 'language') !== undefined
      if (language !== undefined && !isChosen) app.cookies.set(reply, 'language', language, yearSeconds)
    },
    form: (request: FastifyRequest, hidden: LanguageForm['hidden'] = {}, isError = false): LanguageForm => ({
      action: service.prefix + path,
      hidden: {
        to: request.pageUrl ?? (isError ? pathOf(request) : addressOf(request, hidden)),
        csrf: csrfOf(request),
      },
      options: named(),
    }),
  })

  await acceptOwnForms(app, deps)
  app.post(path, { schema: { hide: true } }, async (request, reply) => {
    const form = parametersOf(request.body)
    const language = languages.find((each) => each === single(form, 'language'))
    const to = localUrl(single(form, 'to') ?? '')
    if (language !== undefined) {
      app.cookies.set(reply, 'language', language, yearSeconds)
      const now = clock()
      // Without the token the form may be another site's: then the cookie is all that changes.
      const isOurs =
        app.browser.secret(request) !== undefined && isSameText(single(form, 'csrf'), csrfOf(request))
      const signedIn = isOurs ? await findSignedIn(app, deps, request, now) : undefined
      if (signedIn !== undefined) await keepOnProfile(request, signedIn.user, language, now)
    }
    return reply.redirect(to, 303)
  })

  /** Keeps a region: British English stays where English is chosen. */
  const keepOnProfile = (request: FastifyRequest, user: User, language: string, now: number) =>
    store.transact('user', user.id, (current) => {
      if (current === undefined || current.lockedAt !== undefined) return accept(undefined)
      const uiLocales = [String(current.claims['locale'] ?? '').replaceAll('_', '-')]
      if (chooseLanguage({ uiLocales, acceptLanguage: undefined }, languages, '') === language)
        return accept(undefined)
      const decision = editProfile(current, { claims: { locale: language } }, userContext(request, now))
      return { ...decision, result: undefined }
    })

  /** Only pages of this server are returned to; anything else leads to its first page. */
  const localUrl = (to: string): string => {
    const first = `${origin}${service.prefix}/`
    const url = URL.canParse(to, first) ? new URL(to, first) : new URL(first)
    return url.origin === origin && url.href.startsWith(first) ? url.href : first
  }
}

/** The page of an error repeats nothing else of its request. */
function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? ''
}

/** Returns the address that shows a page again: the page of a rejected form is found by the form's own fields. */
function addressOf(request: FastifyRequest, hidden: LanguageForm['hidden']): string {
  const { method, url } = request
  const pathname = pathOf(request)
  if (method !== 'POST') return url.length > longestReturn ? pathname : url
  const { csrf: _, shown: __, ...named } = hidden
  const query = new URLSearchParams(named).toString()
  return query === '' ? pathname : `${pathname}?${query}`
}
