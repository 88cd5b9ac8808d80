import { parseJws } from '../domain/jws.ts'
import { type Control, fieldsOf, formsOf, linkOf, type PageForm } from './forms.ts'
import { NotApplicable, NotTestable, type Seen, type Sent } from './observation.ts'
import type { Recording } from './presets.ts'
import type { Wire } from './wire.ts'

/** What the user decides about a request. */
export type Decision = 'approve' | 'deny' | 'sign out'

/** How an authorization request ended. */
export type Ended =
  | { readonly kind: 'callback'; readonly params: URLSearchParams; readonly seen: Seen }
  | { readonly kind: 'page'; readonly seen: Seen; readonly isPush?: boolean }

/** How a visit goes on. */
export interface Visit {
  readonly redirectUri: string
  readonly decision?: Decision
  /** The code that a device shows, for the page that asks for one. */
  readonly deviceCode?: string
  /** Ends at the first page that asks the user for something. */
  readonly stopsAtPage?: boolean
}

/** A browser of a user, with its cookies. */
export interface Browser {
  /** Sends a request, follows redirects, and does on pages what the user would do. */
  readonly visit: (request: Pick<Sent, 'url'> & Partial<Sent>, visit: Visit) => Promise<Ended>
  /** The responses to the forms of the last visit. */
  readonly afterForms: () => readonly Seen[]
  /** Sends the form of a page that another browser was shown, and goes on. */
  readonly decide: (page: Seen, redirectUri: string) => Promise<Ended>
}

export interface Credentials {
  readonly username: string
  readonly password: string
}

const mostSteps = 25
const yes = /\b(allow|approve|accept|authori[sz]e|agree|continue|confirm|consent|grant|yes)\b/i
const leave = /\b(sign|log)[ -]?(out|off)\b|^yes\b/i
const no = /\b(deny|decline|reject|cancel|refuse|disagree|no)\b|\babort$/i

/** What all browsers of a run share. */
export interface BrowserOptions {
  readonly wire: Pick<Wire, 'send' | 'allows'>
  readonly recordings: readonly Recording[]
  readonly credentials: Credentials | undefined
  /** Set when the server did not take the password: it is not sent again. */
  failedSignIn?: NotTestable
}

/** Opens a browser without cookies. */
export function openBrowser(options: BrowserOptions): Browser {
  const { wire, recordings, credentials } = options
  const cookies = new Map<string, string>()
  let afterForms: Seen[] = []
  /** Whether the password was sent in this visit. */
  let hasSignedIn = false

  async function load(request: Pick<Sent, 'url'> & Partial<Sent>): Promise<Seen> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'text/html', ...request.headers, ...(cookie !== '' && { cookie }) }
    const seen = await wire.send({ ...request, headers })
    for (const line of seen.headers['set-cookie'] ?? []) store(line)
    return seen
  }

  function store(line: string): void {
    const [pair = '', ...attributes] = line.split(';')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
    const isExpired = attributes.some((text) => /^\s*(max-age=\s*0|expires=.*\b1970\b)/i.test(text))
    if (isExpired || value === '') cookies.delete(name)
    else cookies.set(name, value)
  }

  async function visit(request: Pick<Sent, 'url'> & Partial<Sent>, how: Visit): Promise<Ended> {
    afterForms = []
    hasSignedIn = false
    let hasTyped = false
    let hasDecided = false
    let next: (Pick<Sent, 'url'> & Partial<Sent>) | undefined = request
    for (let step = 0; next !== undefined && step < mostSteps; step += 1) {
      const seen = await load(next)
      if (step > 0 && next.method === 'POST') afterForms.push(seen)
      const ended = endOf(seen, how)
      if (ended !== undefined) {
        const isGranted = ended.kind === 'callback' && ended.params.has('code')
        if (how.decision === 'deny' && !hasDecided && isGranted)
          throw new NotApplicable('no page of the server asks the user for a decision')
        return ended
      }
      const location = redirectOf(seen)
      if (location !== undefined) {
        // Nothing goes there: it is for the check to judge.
        if (!wire.allows(location)) return { kind: 'page', seen }
        const keepsBody = [307, 308].includes(seen.status)
        next = { ...(keepsBody ? next : { headers: {} }), url: location }
        continue
      }
      if (how.stopsAtPage === true) return { kind: 'page', seen }
      next = actOn(seen, how.decision ?? 'approve', hasTyped ? undefined : how.deviceCode)
      hasTyped = true
      hasDecided ||= next?.secretField === undefined
      if (next === undefined) return { kind: 'page', seen }
    }
    throw new NotTestable(`the browser took ${mostSteps} steps and did not arrive (--forms FILE)`)
  }

  /** What the user sends from a page; undefined if it asks for nothing that is known. */
  function actOn(
    page: Seen,
    decision: Decision,
    code?: string,
  ): (Pick<Sent, 'url'> & Partial<Sent>) | undefined {
    const forms = formsOf(page.body, page.sent.url)
    const has = (name: string) => (form: PageForm) => form.controls.some((control) => control.name === name)
    for (const form of code === undefined ? [] : forms) {
      const field = form.controls.find(({ name, type }) => /code/i.test(name) && type === 'text')
      if (code !== undefined && field !== undefined) return submit(form, { [field.name]: code })
    }
    for (const recording of recordings) {
      const { signIn, consent } = recording
      const entry = forms.find((form) => has(signIn.username)(form) && has(signIn.password)(form))
      if (entry !== undefined) return signInBy(entry, signIn, credentials ?? recording.user)
      if (decision === 'sign out') continue
      const asked = forms.find(
        (form) => has(consent.has)(form) && (!consent.approve || has(consent.approve.name)(form)),
      )
      if (asked === undefined) continue
      const press = decision === 'approve' ? consent.approve : consent.deny
      if (press === undefined || !('link' in press)) return submit(asked, {}, press)
      const link = linkOf(page.body, page.sent.url, new RegExp(press.link))
      if (link !== undefined) return { url: link }
    }
    return guess(forms, page, decision)
  }

  function signInBy(form: PageForm, names: Recording['signIn'], user: Credentials | undefined) {
    if (options.failedSignIn !== undefined) throw options.failedSignIn
    if (user === undefined) throw new NotTestable('no user to sign in (--username, --password-file)')
    if (hasSignedIn) {
      options.failedSignIn = new NotTestable(`the server does not sign in ${user.username}`)
      throw options.failedSignIn
    }
    hasSignedIn = true
    const pressed = form.controls.find(({ name }) => name !== '' && name === names.press)
    const filled = { [names.username]: user.username, [names.password]: user.password }
    return { ...submit(form, filled, pressed), secretField: names.password }
  }

  /** For servers without a recording: the form with a password, or the button whose text decides. */
  function guess(forms: readonly PageForm[], page: Seen, decision: Decision) {
    for (const form of forms) {
      const password = form.controls.find(({ type }) => type === 'password')
      const username = form.controls.find(({ tag, type }) => tag === 'input' && /^(text|email)$/.test(type))
      if (password !== undefined && username !== undefined)
        return signInBy(form, { username: username.name, password: password.name }, credentials)
    }
    const wanted = { approve: yes, deny: no, 'sign out': leave }[decision]
    for (const form of forms) {
      const button = form.controls.find((control) => isButton(control) && wanted.test(wordsOf(control)))
      if (button !== undefined) return submit(form, {}, button)
    }
    const link = decision === 'deny' ? linkOf(page.body, page.sent.url, no) : undefined
    return link === undefined ? undefined : { url: link }
  }

  async function decide(page: Seen, redirectUri: string): Promise<Ended> {
    const next = actOn(page, 'approve')
    return next === undefined ? { kind: 'page', seen: page } : visit(next, { redirectUri, stopsAtPage: true })
  }

  return { visit, afterForms: () => afterForms, decide }
}

/** The end of a request: a redirect to the client, or a form that posts there (OAuth 2.0 Form Post Response Mode §2). */
function endOf(seen: Seen, { redirectUri }: Visit): Ended | undefined {
  const isClient = (url: string) =>
    url === redirectUri || (/^[?&#]/.test(url.slice(redirectUri.length)) && url.startsWith(redirectUri))
  const location = redirectOf(seen)
  if (location !== undefined && isClient(location)) {
    const url = new URL(location)
    // A token of the implicit grant comes in the fragment.
    return {
      kind: 'callback',
      params: opened(new URLSearchParams(url.search + url.hash.replace('#', '&'))),
      seen,
    }
  }
  const posted = formsOf(seen.body, seen.sent.url).find(({ action }) => isClient(action))
  return posted === undefined ? undefined : { kind: 'callback', params: opened(fieldsOf(posted, {})), seen }
}

/** Adds the parameters of a response that is a JWT, JARM §2.1. */
function opened(params: URLSearchParams): URLSearchParams {
  const { claims = {} } = parseJws(params.get('response') ?? '') ?? {}
  for (const [name, value] of Object.entries(claims)) params.append(name, String(value))
  return params
}

/** Whether a page has a field for a password. */
export function asksForPassword({ body, sent }: Seen): boolean {
  return formsOf(body, sent.url).some(({ controls }) => controls.some(({ type }) => type === 'password'))
}

/** Where a response redirects to, as text: a URL that is parsed and written again is another text. */
export function redirectOf({ status, headers, sent }: Seen): string | undefined {
  const { location } = headers
  if (status < 300 || status > 399 || location === undefined) return undefined
  return /^[a-z][a-z\d+.-]*:/i.test(location) ? location : URL.parse(location, sent.url)?.href
}

function submit(
  form: PageForm,
  filled: Readonly<Record<string, string>>,
  pressed?: Pick<Control, 'name' | 'value'>,
) {
  const fields = fieldsOf(form, filled, pressed)
  if (form.method === 'GET') {
    const url = new URL(form.action)
    url.search = fields.toString()
    return { url: url.href }
  }
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    origin: new URL(form.action).origin,
  }
  return { url: form.action, method: 'POST', headers, body: fields.toString() }
}

function isButton({ tag, type }: Control): boolean {
  return type === 'submit' && (tag === 'button' || tag === 'input')
}

function wordsOf({ name, value, text }: Control): string {
  return `${text} ${value} ${name}`
}
