import { type CookieKind, cookieName } from '../../src/http/cookies.ts'
import { keepCookies } from './cookie-jar.ts'

/** A page as a user's browser sees it. */
export interface Page {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly html: string
  readonly forms: readonly Form[]
  /** The choice of a language below the page. */
  readonly languageForm: Form | undefined
}

export interface Form {
  readonly action: string
  readonly method: string
  readonly fields: readonly Field[]
  readonly buttons: readonly { readonly name: string; readonly value: string }[]
}

export interface Field {
  readonly name: string
  readonly value: string
  readonly type: string
  readonly checked: boolean
}

/** Where a browser ended: on a page of the server, or redirected to another URL. */
export type Landing =
  | { readonly at: 'page'; readonly page: Page }
  | { readonly at: 'redirect'; readonly location: URL; readonly status: number }

/** A browser without script: keeps cookies, follows redirects within the server, fills in forms. */
export class UserAgent {
  readonly cookies = new Map<string, string>()
  readonly #origin: string

  readonly #headers: Readonly<Record<string, string>>

  /** @param headers Sent with every request. */
  constructor(origin: string, headers: Readonly<Record<string, string>> = {}) {
    this.#origin = new URL(origin).origin
    this.#headers = headers
  }

  /** Returns the value of a cookie of the server, whose name depends on the issuer. */
  cookie(kind: CookieKind): string | undefined {
    return this.cookies.get(this.#nameOf(kind) ?? '')
  }

  /** @param issuer Needed if the browser has no such cookie yet. */
  setCookie(kind: CookieKind, value: string, issuer = this.#origin): void {
    this.cookies.set(this.#nameOf(kind) ?? cookieName(issuer, kind), value)
  }

  deleteCookie(kind: CookieKind): void {
    this.cookies.delete(this.#nameOf(kind) ?? '')
  }

  #nameOf(kind: CookieKind): string | undefined {
    return [...this.cookies.keys()].find((name) => name.includes(`lychgate_${kind}_`))
  }

  /** Opens a URL and follows redirects as long as they stay on the server. */
  async open(url: string, init: RequestInit = {}): Promise<Landing> {
    let [next, request] = [url, init]
    for (let hops = 0; hops < 20; hops += 1) {
      const response = await this.send(next, request)
      const location = response.headers.get('location')
      if (response.status < 300 || response.status > 399 || location === null) {
        return { at: 'page', page: readPage(next, response, await response.text()) }
      }
      const target = new URL(location, next)
      if (target.origin !== this.#origin) return { at: 'redirect', location: target, status: response.status }
      next = target.href
      request = {}
    }
    throw new Error(`too many redirects from ${url}`)
  }

  /** One request with this browser's cookies; stores what the response sets. */
  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers({ ...this.#headers, ...Object.fromEntries(new Headers(init.headers)) })
    if (this.cookies.size > 0)
      headers.set('cookie', [...this.cookies].map((pair) => pair.join('=')).join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    keepCookies(this.cookies, response.headers.getSetCookie())
    return response
  }

  /**
   * Submits a form of the page with one of its buttons.
   * @param changes Field values to type in; for checkboxes of one name the list of values to leave ticked.
   */
  submit(
    page: Page,
    changes: Readonly<Record<string, string | readonly string[]>>,
    form = only(page.forms),
  ): Promise<Landing> {
    const body = new URLSearchParams()
    for (const { name, value, type, checked } of form.fields) {
      const change = changes[name]
      if (type === 'checkbox') {
        if (Array.isArray(change) ? change.includes(value) : checked) body.append(name, value)
      } else if (type === 'radio') {
        if (typeof change === 'string' ? change === value : checked) body.append(name, value)
      } else body.append(name, typeof change === 'string' ? change : value)
    }
    for (const [name, value] of Object.entries(changes)) {
      if (typeof value === 'string' && !body.has(name)) body.append(name, value)
    }
    return this.open(new URL(form.action, page.url).href, { method: form.method.toUpperCase(), body })
  }
}

function only(forms: readonly Form[]): Form {
  const [form] = forms
  if (form === undefined) throw new Error('the page has no form')
  return form
}

function readPage(url: string, response: Response, html: string): Page {
  const forms = [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)].map(
    ([, head = '', content = '']) => ({
      action: attribute(head, 'action') ?? url,
      method: attribute(head, 'method') ?? 'get',
      fields: [...content.matchAll(/<input\b([^>]*)>/g)]
        .map(([, tag = '']) => ({
          name: attribute(tag, 'name') ?? '',
          value: attribute(tag, 'value') ?? (attribute(tag, 'type') === 'checkbox' ? 'on' : ''),
          type: attribute(tag, 'type') ?? 'text',
          checked: /\schecked\b/.test(tag),
          disabled: /\sdisabled\b/.test(tag),
        }))
        .filter(({ name, disabled }) => name !== '' && !disabled),
      buttons: [...content.matchAll(/<button\b([^>]*)>/g)].map(([, tag = '']) => ({
        name: attribute(tag, 'name') ?? '',
        value: attribute(tag, 'value') ?? '',
      })),
    }),
  )
  const isChoice = ({ action }: Form) => action.endsWith('/language')
  return {
    url,
    status: response.status,
    headers: response.headers,
    html,
    forms: forms.filter((form) => !isChoice(form)),
    languageForm: forms.find(isChoice),
  }
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
  return value === undefined ? undefined : decodeEntities(value)
}

function decodeEntities(text: string): string {
  const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_entity, name: string) => named[name] ?? '')
}
