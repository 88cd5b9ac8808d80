/** Renders pages and sets their headers. The route that calls `reply.page` decides what a page shows. */
import { hash } from 'node:crypto'
import fastifyView from '@fastify/view'
import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { chooseLanguage } from '../domain/language.ts'
import type { User } from '../domain/model.ts'
import type { Text } from '../domain/text.ts'
import { allowCaching } from '../http/response.ts'
import { readAsset } from '../system/assets.ts'
import { createI18n, type I18n, msg } from './i18n/i18n.ts'
import { type Image, loadTheme } from './theme/theme.ts'

/**
 * What each page shows; the file of a page declares it. Values are plain text: the templates escape them.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the modules of the pages add their members
export interface Pages {}

/** What the pages need to know of the installation. */
export interface PagesOptions {
  readonly config: Pick<Config, 'service' | 'issuer' | 'views' | 'texts'>
  /** Path of the issuer, '' for none: assets are served below it. */
  readonly prefix: string
}

/** The form by which users choose a language. */
export interface LanguageForm {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly options: readonly { readonly language: string; readonly name: string }[]
}

/** How a page is sent. */
export interface PageOptions {
  /** 200 if absent. */
  readonly status?: number
  /** What it says has happened is not there when it is asked for again: it has no choice of a language. */
  readonly isOnce?: true
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The texts of pages, in each language. */
    readonly texts: I18n
    /** Where the admin pages are; a feature sets it. */
    readonly adminPages: { url?: string }
    /** The language that users choose on a page; a plugin sets it. */
    readonly languageChoice: {
      read?(request: FastifyRequest): string | undefined
      /** Takes the choice of a user who signs in, from the profile, unless this browser has another one. */
      follow?(reply: FastifyReply, user: User): void
      form?(request: FastifyRequest, hidden?: LanguageForm['hidden'], isError?: boolean): LanguageForm
    }
  }
  interface FastifyRequest {
    /** `ui_locales` of the authorization request, set by the route that knows it, OpenID Connect Core §3.1.2.1. */
    uiLocales: readonly string[] | undefined
    /** Whether a request of a client waits for this page, so that its form may end in a redirect to the client. */
    leadsToClient: boolean
    /** Where the page of the response is found again, if not at the address of the request. */
    pageUrl: string | undefined
    /** The language of the page in the response. */
    readonly language: string
  }
  interface FastifyReply {
    /** Sends a page as HTML with the headers of every page, RFC 6749 §10.13 and RFC 9700 §4.16. */
    page<K extends keyof Pages>(name: K, model: Pages[K], options?: PageOptions): FastifyReply
  }
}

/** A page is not cached, framed, sniffed or named to another server, RFC 6749 §10.13, RFC 9700 §4.2.4 and §4.16. */
const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

const javascript = 'text/javascript; charset=utf-8'

/**
 * The pages with a script. Each but the form post works without it, apart from passkeys. Those of administration are
 * declared by features that can be taken out.
 */
const scripted: ReadonlySet<string> = new Set([
  'form-post',
  'login',
  'link-password',
  'second-factor',
  'account-passkeys',
  'account-one-time-codes',
  'admin/client',
  'admin/client-secret',
  'admin/user-tokens',
])

/** Decorates `reply.page`, and serves stylesheet, images and scripts from memory, RFC 9700 §4.2.4. */
export const pages = fp<PagesOptions>(
  async (app, { config, prefix }) => {
    const { service } = config
    const theme = loadTheme(config)
    const serve = (name: string, type: string, body: Buffer) =>
      serveAsset(app, `${prefix}/assets/${name}`, type, body)
    const serveLogo = (name: string, image: Image | undefined) =>
      image && serve(`${name}.${image.extension}`, image.type, image.body)
    const site = {
      name: service.name,
      account: `${prefix}/account`,
      links: serviceLinks(service),
      style: serve('style.css', 'text/css; charset=utf-8', theme.style),
      icon: serve('icon.svg', 'image/svg+xml', theme.icon),
      formPost: serve('form-post.js', javascript, readAsset('views/form-post.js')),
      passkeys: serve('passkeys.js', javascript, readAsset('views/passkeys.js')),
      recoveryCodes: serve('recovery-codes.js', javascript, readAsset('views/recovery-codes.js')),
      copy: serve('copy.js', javascript, readAsset('views/copy.js')),
      logo: serveLogo('logo', theme.logo),
      logoDark: serveLogo('logo-dark', theme.logoDark),
      logoHasName: theme.logo !== undefined && service.logoName === 'inside',
    }
    // Browsers ask for it wherever a document names no icon, such as JSON.
    app.get('/favicon.ico', { schema: { hide: true } }, (_, reply) => reply.redirect(site.icon, 303))
    const texts = createI18n({ service: service.name }, config.texts)
    app.decorate('texts', texts)
    app.decorate('adminPages', {})
    app.decorate('languageChoice', {})
    app.decorateRequest('uiLocales', undefined)
    app.decorateRequest('leadsToClient', false)
    app.decorateRequest('pageUrl', undefined)
    app.decorateRequest('language', {
      getter() {
        const requested = { uiLocales: this.uiLocales, acceptLanguage: this.headers['accept-language'] }
        const chosen = app.languageChoice.read?.(this)
        return chosen ?? chooseLanguage(requested, texts.languages, service.language)
      },
    })
    // Declared here, the library needs no hook for it on each request.
    app.decorateReply('locals', undefined)
    await app.register(fastifyView, { engine: { eta: theme.eta } })
    app.decorateReply('page', function (this: FastifyReply, name, model, options = {}) {
      const script = scripted.has(name) ? "'self'" : "'none'"
      this.code(options.status ?? 200)
        .headers(pageHeaders)
        .header('content-security-policy', contentSecurityPolicy(script, this.request.leadsToClient))
      const translator = texts.in(this.request.language)
      this.header('content-language', translator.language).header('vary', 'Accept-Language')
      const { method } = this.request
      // What a form showed once, such as recovery codes, would not be there in another language.
      const isOnce = options.isOnce || (method === 'POST' && this.statusCode < 400)
      const choice = isOnce
        ? undefined
        : app.languageChoice.form?.(this.request, hiddenOf(model), name === 'error')
      this.viewAsync(`@${name}.eta`, { page: model, site, choice, ...translator }).then(
        (html) => void this.send(html),
        (error: unknown) => void this.send(error),
      )
      return this
    })
  },
  { name: 'pages', fastify: '5.x' },
)

function hiddenOf(model: object): LanguageForm['hidden'] | undefined {
  // `hidden` of FormModel: not every page has a form.
  return 'hidden' in model ? (model.hidden as LanguageForm['hidden']) : undefined
}

/**
 * Browsers apply `form-action` to every redirect after the POST, also to those of the client's callback, which may lead
 * on to another origin or to an app. A page that leads to a client has none, therefore; its forms are only ours.
 */
function contentSecurityPolicy(script: string, leadsToClient: boolean): string {
  return [
    "default-src 'none'",
    `script-src ${script}`,
    "style-src 'self'",
    "img-src 'self'",
    ...(leadsToClient ? [] : ["form-action 'self'"]),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
}

/** Serves a file from memory. Returns its address, which names its version and may be cached for a year. */
function serveAsset(app: FastifyInstance, path: string, type: string, body: Buffer): string {
  const version = hash('sha256', body, 'base64url').slice(0, 16)
  const etag = `"${version}"`
  app.get<{ Querystring: { v?: string } }>(path, { schema: { hide: true } }, async (request, reply) => {
    // Another version's address must not keep this content: during an upgrade it would stay wrong for a year.
    const lasting = request.query.v === version
    allowCaching(reply, lasting ? 'public, max-age=31536000, immutable' : 'no-cache')
      .header('etag', etag)
      .header('x-content-type-options', 'nosniff')
      .header('cross-origin-resource-policy', 'same-origin')
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    return reply.type(type).send(body)
  })
  return `${path}?v=${version}`
}

function serviceLinks(service: Config['service']): readonly { label: Text; url: string }[] {
  return [
    { label: msg('site.help'), url: service.help },
    { label: msg('site.documentation'), url: service.documentation },
    { label: msg('site.privacy'), url: service.policy },
    { label: msg('site.terms'), url: service.terms },
  ].flatMap(({ label, url }) => (url === undefined ? [] : [{ label, url }]))
}
